/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What LEDBAT and Apple's form of it share: the queuing delay of one way in milliseconds, and how far the window may be from what
 * is in flight. The kernel form of what crates/control/src/ledbat.rs lends, and of `QueuingDelay` in ledbat_delay.rs.
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

/* Takes the timestamps of an acknowledgement. A delay below the first counts as none. */
INLINE void queuing_sample(struct queuing *queuing, struct tcp_sock *tp)
{
    if (!stamped(tp))
        return;
    __s64 above = one_way_sample(&queuing->way, filter_knows(&queuing->filter), tp);
    filter_take(&queuing->filter, above > 0 ? above : 0);
}

/* Slow start as long as the window is not above its threshold; what it leaves of what was delivered. */
INLINE __u32 started(struct tcp_sock *tp, __u32 acked)
{
    return tp->snd_cwnd <= tp->snd_ssthresh ? tcp_slow_start(tp, acked) : acked;
}

/* Holds a window to so many segments more than were in flight before the acknowledgement, and to the smallest there may be. */
INLINE void bound(struct tcp_sock *tp, __s64 cwnd, __u32 acked, __u32 allowed_increase, __u32 min_cwnd)
{
    __s64 most = (__s64)in_flight(tp) + acked + allowed_increase;
    __s64 fewest = max_u32(min_cwnd, 1);
    cwnd = cwnd < most ? cwnd : most;
    tp->snd_cwnd = cwnd > fewest ? cwnd : fewest;
    /* A window that delay has brought down is not to come back by slow start. */
    if (tp->snd_cwnd <= tp->snd_ssthresh)
        tp->snd_ssthresh = tp->snd_cwnd - 1;
}
