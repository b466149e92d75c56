/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * LEDBAT: the kernel form of crates/control/src/ledbat.rs and ledbat_delay.rs. A socket has room for so many minutes and
 * samples; longer histories count as these.
 */
#include "delay.h"

#define MOST_MINUTES 8
#define MOST_SAMPLES 4
#define MINUTE (60 * NSEC_PER_SEC)

PARAMETER(usecs, target, 100 * USEC_PER_MSEC);
PARAMETER(__u32, gain, 1);
PARAMETER(__u32, allowed_increase, 1);
PARAMETER(__u32, min_cwnd, 2);
PARAMETER(__u32, base_history, 2);
PARAMETER(__u32, current_filter, 2);
PARAMETER(bool, slow_start, true);

struct state {
    struct one_way way;
    /* When the newest minute began; 0 before any. */
    __u64 minute;
    /* Growth that is not yet a segment: segments times milliseconds. */
    __s64 credit;
    /* Smallest delay of each of the last minutes, and the newest delays; the newest first, what is not yet there largest. */
    __u32 base[MOST_MINUTES];
    __u32 current[MOST_SAMPLES];
};
STATE_FITS;

HOOK(void, ledbat_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    s->minute = 0;
    s->credit = 0;
    if (!slow_start)
        tp->snd_ssthresh = tp->snd_cwnd - 1;
}

/* Of so many of the newest the smallest. */
INLINE __u32 least(const __u32 *newest, __u32 count, __u32 most)
{
    __u32 least = newest[0];
    for (__u32 i = 1; i < most; i++)
        if (i < count)
            least = min_u32(least, newest[i]);
    return least;
}

INLINE void put_in_front(__u32 *newest, __u32 most, __u32 delay)
{
    for (__u32 i = most - 1; i > 0; i--)
        newest[i] = newest[i - 1];
    newest[0] = delay;
}

INLINE void forget(struct state *s)
{
    for (__u32 i = 0; i < MOST_MINUTES; i++)
        s->base[i] = 0xffffffffU;
    for (__u32 i = 0; i < MOST_SAMPLES; i++)
        s->current[i] = 0xffffffffU;
}

HOOK(void, ledbat_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (!stamped(tp))
        return;
    bool known = s->minute != 0;
    __s64 above = one_way_sample(&s->way, known, tp);
    __u32 delay = above > 0 ? above : 0;
    if (!known)
        forget(s);
    put_in_front(s->current, MOST_SAMPLES, delay);
    __u64 now = now_ns();
    if (!known || now - s->minute >= MINUTE) {
        s->minute = now;
        put_in_front(s->base, MOST_MINUTES, delay);
    } else {
        s->base[0] = min_u32(s->base[0], delay);
    }
}

INLINE __s64 queuing_delay(struct state *s)
{
    if (s->minute == 0)
        return 0;
    return (__s64)least(s->current, current_filter, MOST_SAMPLES) - least(s->base, base_history, MOST_MINUTES);
}

INLINE void steer(struct sock *sk, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    __s64 target_ms = max_u32(target / USEC_PER_MSEC, 1);
    __s64 cwnd = tp->snd_cwnd;
    s->credit += gain * (target_ms - queuing_delay(s)) * acked;
    __s64 segments = divided(s->credit, cwnd * target_ms);
    s->credit -= segments * cwnd * target_ms;
    cwnd += segments;
    __s64 most = (__s64)in_flight(tp) + acked + allowed_increase;
    __s64 fewest = max_u32(min_cwnd, 1);
    cwnd = cwnd < most ? cwnd : most;
    tp->snd_cwnd = cwnd > fewest ? cwnd : fewest;
    /* A window that delay has brought down is not to come back by slow start. */
    if (tp->snd_cwnd <= tp->snd_ssthresh)
        tp->snd_ssthresh = tp->snd_cwnd - 1;
}

HOOK(void, ledbat_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct tcp_sock *tp = tcp_sk(sk);
    if (!cwnd_limited(tp))
        return;
    if (tp->snd_cwnd <= tp->snd_ssthresh)
        acked = tcp_slow_start(tp, acked);
    if (acked > 0)
        steer(sk, acked);
}

HOOK(void, ledbat_set_state, struct sock *sk, __u8 new_state)
{
    if (reducing(new_state) && !reducing(phase_of(sk)))
        STATE_OF(sk)->credit = 0;
}

HOOK(__u32, ledbat_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, ledbat_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(ledbat,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)ledbat_init,
    .pkts_acked = (void *)ledbat_pkts_acked,
    .set_state = (void *)ledbat_set_state,
    .cong_avoid = (void *)ledbat_cong_avoid,
    .ssthresh = (void *)ledbat_ssthresh,
    .undo_cwnd = (void *)ledbat_undo_cwnd);
