/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* One-way delays from TCP timestamps: the kernel form of crates/control/src/one_way_delay.rs. */
#pragma once

#include "weir.h"

struct clock {
    /* Ticks since the first, without wraps. */
    __s64 ticks;
    __u32 raw;
};

struct one_way {
    struct clock peer;
    struct clock own;
};

INLINE void clock_starts(struct clock *clock, __u32 raw)
{
    clock->ticks = 0;
    clock->raw = raw;
}

/* Milliseconds since the first tick, rounded down, with ticks of `tick` microseconds. */
INLINE __s64 clock_millis(struct clock *clock, __u32 raw, __u32 tick)
{
    clock->ticks += (__s32)(raw - clock->raw);
    clock->raw = raw;
    return divided_down(clock->ticks * tick, USEC_PER_MSEC);
}

/* Whether the acknowledgement carries timestamps. */
INLINE bool stamped(struct tcp_sock *tp)
{
    struct tcp_options_received *options = &tp->rx_opt;
    return BITS(options, saw_tstamp) && tp->rx_opt.rcv_tsecr != 0;
}

/* Length of a tick in microseconds. */
INLINE __u32 timestamp_tick(struct tcp_sock *tp) { return BITS(tp, tcp_usec_ts) ? 1 : USEC_PER_MSEC; }

/* The clock of our timestamps, in the unit of `rcv_tsecr`. */
INLINE __u32 timestamp_now(struct tcp_sock *tp) { return tp->tcp_mstamp / timestamp_tick(tp); }

/* The delay less the first one, in milliseconds. `known` is whether there was a sample before; the caller sets it afterwards. */
INLINE __s64 one_way_sample(struct one_way *way, bool known, struct tcp_sock *tp)
{
    __u32 peer = tp->rx_opt.rcv_tsval, own = tp->rx_opt.rcv_tsecr, tick = timestamp_tick(tp);
    if (!known) {
        clock_starts(&way->peer, peer);
        clock_starts(&way->own, own);
    }
    return clock_millis(&way->peer, peer, tick) - clock_millis(&way->own, own, tick);
}
