/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The delay of TCP-LP in Linux, from clocks whose rate it estimates: the kernel form of
 * crates/control/src/low_priority/absolute.rs.
 */
#pragma once

#include "delay.h"

/* Delays are milliseconds. */
#define RESOLUTION 1000
#define USEC_PER_SEC 1000000
#define RATE_SHIFT 6
#define AVERAGE_SHIFT 3

struct absolute {
    __u32 peer_rate;
    /* The last values of the clocks; 0 before the first. */
    __u32 peer;
    __u32 own;
    /* The average delay times 8. */
    __u32 average;
    __u32 least;
    __u32 most;
    __u32 reserve;
};

INLINE void absolute_begins(struct absolute *a)
{
    a->peer_rate = 0;
    a->peer = 0;
    a->own = 0;
    a->average = 0;
    a->least = 0xffffffffU;
    a->most = 0;
    a->reserve = 0;
}

INLINE void guess_rate(struct absolute *a, __u32 peer, __u32 own, __u32 own_rate)
{
    __u32 peer_steps = peer - a->peer, own_steps = own - a->own;
    bool both = a->peer && a->own && peer_steps && own_steps;
    a->peer = peer;
    a->own = own;
    if (!both)
        return;
    __s64 seen = own_rate * peer_steps / own_steps, known = a->peer_rate;
    a->peer_rate = known == 0 ? seen : ((known << RATE_SHIFT) + seen - known) >> RATE_SHIFT;
}

/* Raises the largest delay: a new maximum is put aside, and the maximum before it counts. */
INLINE void raise_most(struct absolute *a, __u32 delay)
{
    if (delay <= a->most)
        return;
    a->most = delay;
    if (delay > a->reserve) {
        if (a->reserve != 0)
            a->most = a->reserve;
        a->reserve = delay;
    }
}

INLINE void absolute_sample(struct absolute *a, struct tcp_sock *tp)
{
    __u32 peer = tp->rx_opt.rcv_tsval, own = tp->rx_opt.rcv_tsecr;
    __u32 own_rate = USEC_PER_SEC / timestamp_tick(tp);
    guess_rate(a, peer, own, own_rate);
    if (a->peer_rate == 0)
        return;
    __u32 delay = peer * (RESOLUTION / a->peer_rate) - own * (RESOLUTION / own_rate);
    if (delay == 0)
        return;
    a->least = min_u32(a->least, delay);
    raise_most(a, delay);
    if (a->average == 0)
        a->average = delay << AVERAGE_SHIFT;
    else
        a->average += delay - (a->average >> AVERAGE_SHIFT);
}

INLINE bool absolute_is_above(struct absolute *a, __u32 percent)
{
    return a->average >> AVERAGE_SHIFT > a->least + percent * (a->most - a->least) / 100;
}

/* Resets the range after a reduction, from the average to twice that. */
INLINE void absolute_begin_range(struct absolute *a)
{
    a->least = a->average >> AVERAGE_SHIFT;
    a->most = a->average >> (AVERAGE_SHIFT - 1);
    a->reserve = a->most;
}
