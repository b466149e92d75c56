/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * LEDBAT++: the kernel form of crates/control/src/ledbat_plus_plus.rs. One difference: a connection that gets the control when it is
 * opened (`weir kernel use`) begins with the kernel's initial window, which the kernel sets later.
 */
#define MOST_MINUTES 10
#define MOST_SAMPLES 4

#include "filter.h"

PARAMETER(usecs, target, 60 * USEC_PER_MSEC);
PARAMETER(__u32, constant, 1);
PARAMETER(__u32, max_slower, 16);
PARAMETER(__u32, initial_window, 2);
PARAMETER(__u32, min_cwnd, 2);
PARAMETER(__u32, base_history, 10);
PARAMETER(__u32, current_filter, 4);
PARAMETER(bool, slowdowns, true);

#define HELD_ROUND_TRIPS 2
#define PAUSE 9

enum slowdown { NOT_YET, DUE, HELD, RAMP };

struct state {
    /* RTTs in microseconds. */
    struct filter filter;
    /* When the next slowdown begins, or when the current one stops holding the window; and when it began. In nanoseconds. */
    __u64 until;
    __u64 began;
    enum slowdown slowdown;
    __u32 back_to;
    /* Segments delivered in slow start for which the window has not grown yet, and above the target since the last cut. */
    __u32 started;
    __u32 over;
};
STATE_FITS;

HOOK(void, ledbatpp_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    filter_forget(&s->filter);
    s->slowdown = NOT_YET;
    s->started = 0;
    s->over = 0;
    tp->snd_cwnd = min_u32(tp->snd_cwnd, max_u32(initial_window, 1));
}

HOOK(void, ledbatpp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    if (sample->rtt_us >= 0)
        filter_take(&STATE_OF(sk)->filter, sample->rtt_us);
}

INLINE __s64 queuing(struct state *s) { return filter_queuing(&s->filter, base_history, current_filter); }
INLINE __u32 goal(void) { return max_u32(target, 1); }
INLINE __u32 fewest(void) { return max_u32(min_cwnd, 1); }

/* The factor by which the window grows slower than Reno's. */
INLINE __u32 slower(struct state *s)
{
    __u64 base = max_u32(filter_base(&s->filter, base_history), 1);
    __u64 times = (2ULL * goal() + base - 1) / base;
    return max_u32(min_u64(times, max_u32(max_slower, 1)), 1);
}

/* Slow start: the first ends at three quarters of the target, later ones at the target. */
INLINE void start(struct state *s, struct tcp_sock *tp, __u32 acked)
{
    __s64 most = s->slowdown == NOT_YET ? goal() / 4 * 3 : goal();
    if (queuing(s) > most) {
        tp->snd_ssthresh = tp->snd_cwnd;
        return;
    }
    __u32 times = slower(s);
    s->started += acked;
    tcp_slow_start(tp, s->started / times);
    s->started %= times;
}

/* Largest excess over the target, and largest window, that count: their product has 64 bits. */
#define MOST_EXCESS (1U << 26)
#define MOST_WINDOW (1U << 20)

/* The cut of the window for an excess over the target: the relative excess less a segment each `1 / GAIN` windows, at most half. */
INLINE __u32 cut(struct state *s, __u64 excess, __u64 cwnd)
{
    __u64 times = slower(s);
    __u64 whole = min_u64(excess, MOST_EXCESS) * min_u64(cwnd, MOST_WINDOW) * constant * times;
    if (whole <= goal())
        return 0;
    return min_u64((whole - goal()) / (goal() * times), cwnd / 2);
}

INLINE void avoid(struct state *s, struct tcp_sock *tp, __u32 acked)
{
    __s64 excess = queuing(s) - goal();
    if (excess <= 0) {
        tcp_cong_avoid_ai(tp, tp->snd_cwnd * slower(s), acked);
        return;
    }
    s->over += acked;
    if (s->over < tp->snd_cwnd)
        return;
    s->over = 0;
    tp->snd_cwnd = max_u32(tp->snd_cwnd - cut(s, excess, tp->snd_cwnd), fewest());
    tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
}

/* `count` smoothed RTTs in nanoseconds; `srtt_us` is in eighths. */
INLINE __u64 round_trips(struct tcp_sock *tp, __u64 count)
{
    return tp->srtt_us * count * NSEC_PER_USEC / 8;
}

/* Begins and ends slowdowns; returns whether the window is held. */
INLINE bool holds(struct state *s, struct tcp_sock *tp)
{
    __u64 now = now_ns();
    if (s->slowdown == NOT_YET) {
        if (!in_slow_start(tp) && slowdowns) {
            s->slowdown = DUE;
            s->until = now + round_trips(tp, HELD_ROUND_TRIPS);
        }
    } else if (s->slowdown == DUE && now >= s->until) {
        s->slowdown = HELD;
        s->began = now;
        s->until = now + round_trips(tp, HELD_ROUND_TRIPS);
        s->back_to = tp->snd_cwnd;
        tp->snd_cwnd = min_u32(tp->snd_cwnd, fewest());
        tp->snd_ssthresh = tp->snd_cwnd;
        s->started = 0;
        s->over = 0;
    } else if (s->slowdown == HELD && now >= s->until) {
        s->slowdown = RAMP;
        tp->snd_ssthresh = max_u32(s->back_to, tp->snd_cwnd);
    } else if (s->slowdown == RAMP && !in_slow_start(tp)) {
        s->slowdown = DUE;
        s->until = now + (now - s->began) * PAUSE;
    }
    return s->slowdown == HELD;
}

HOOK(void, ledbatpp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (holds(s, tp) || !cwnd_limited(tp))
        return;
    if (in_slow_start(tp))
        start(s, tp, acked);
    else
        avoid(s, tp, acked);
}

/* Half of the window; during a slowdown, the window to come back to is halved too. */
HOOK(__u32, ledbatpp_ssthresh, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    s->started = 0;
    s->over = 0;
    if (s->slowdown == HELD)
        s->back_to /= 2;
    return tcp_reno_ssthresh(sk);
}

HOOK(__u32, ledbatpp_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(ledbatpp,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)ledbatpp_init,
    .pkts_acked = (void *)ledbatpp_pkts_acked,
    .cong_avoid = (void *)ledbatpp_cong_avoid,
    .ssthresh = (void *)ledbatpp_ssthresh,
    .undo_cwnd = (void *)ledbatpp_undo_cwnd);
