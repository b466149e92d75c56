/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The common part of LEDBAT and Apple's LEDBAT: the one-way queuing delay in milliseconds, and how far the window may exceed the
 * flight size. The kernel form of the shared functions of crates/control/src/ledbat.rs, and of `QueuingDelay` in ledbat_delay.rs.
 */
#pragma once

#define MOST_MINUTES 8
#define MOST_SAMPLES 4

#include "delay.h"
#include "filter.h"

struct queuing {
    struct one_way way;
    struct filter filter;
};

/* Takes the timestamps of an acknowledgement. A delay below the first one counts as zero. */
INLINE void queuing_sample(struct queuing *queuing, struct tcp_sock *tp)
{
    if (!stamped(tp))
        return;
    __s64 above = one_way_sample(&queuing->way, filter_knows(&queuing->filter), tp);
    filter_take(&queuing->filter, above > 0 ? above : 0);
}

/* Slow start while the window is at most its threshold; returns the delivered segments that are left for congestion avoidance. */
INLINE __u32 started(struct tcp_sock *tp, __u32 acked)
{
    return tp->snd_cwnd <= tp->snd_ssthresh ? tcp_slow_start(tp, acked) : acked;
}

/* Limits a window to `allowed_increase` segments more than were in flight before the acknowledgement, and to at least `min_cwnd`. */
INLINE void bound(struct tcp_sock *tp, __s64 cwnd, __u32 acked, __u32 allowed_increase, __u32 min_cwnd)
{
    __s64 most = (__s64)in_flight(tp) + acked + allowed_increase;
    __s64 fewest = max_u32(min_cwnd, 1);
    cwnd = cwnd < most ? cwnd : most;
    tp->snd_cwnd = cwnd > fewest ? cwnd : fewest;
    /* A window that the delay has reduced must not grow by slow start again. */
    if (tp->snd_cwnd <= tp->snd_ssthresh)
        tp->snd_ssthresh = tp->snd_cwnd - 1;
}
