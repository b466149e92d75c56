/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* LEDBAT: the kernel form of crates/control/src/ledbat.rs. */
#include "steer.h"

PARAMETER(usecs, target, 100 * USEC_PER_MSEC);
PARAMETER(__u32, gain, 1);
PARAMETER(__u32, allowed_increase, 1);
PARAMETER(__u32, min_cwnd, 2);
PARAMETER(__u32, base_history, 2);
PARAMETER(__u32, current_filter, 2);
PARAMETER(bool, slow_start, true);

struct state {
    struct queuing queuing;
    /* Change of the window that is not yet a whole segment, in segments times milliseconds. */
    __s64 credit;
};
STATE_FITS;

HOOK(void, ledbat_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    filter_forget(&s->queuing.filter);
    s->credit = 0;
    if (!slow_start)
        tp->snd_ssthresh = tp->snd_cwnd - 1;
}

INLINE void steer(struct sock *sk, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    __s64 target_ms = max_u32(target / USEC_PER_MSEC, 1);
    __s64 cwnd = tp->snd_cwnd;
    s->credit += gain * (target_ms - filter_queuing(&s->queuing.filter, base_history, current_filter)) * acked;
    __s64 segments = divided(s->credit, cwnd * target_ms);
    s->credit -= segments * cwnd * target_ms;
    bound(tp, cwnd + segments, acked, allowed_increase, min_cwnd);
}

HOOK(void, ledbat_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct tcp_sock *tp = tcp_sk(sk);
    /* Not called in recovery, where acknowledgements echo the timestamp from before the hole. */
    queuing_sample(&STATE_OF(sk)->queuing, tp);
    if (!cwnd_limited(tp))
        return;
    acked = started(tp, acked);
    if (acked > 0)
        steer(sk, acked);
}

HOOK(__u32, ledbat_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, ledbat_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(ledbat,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)ledbat_init,
    .cong_avoid = (void *)ledbat_cong_avoid,
    .ssthresh = (void *)ledbat_ssthresh,
    .undo_cwnd = (void *)ledbat_undo_cwnd);
