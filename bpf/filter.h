/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The smallest of the newest delays less the smallest of the last minutes: `DelayFilter` of crates/control/src/ledbat_delay.rs. The
 * including file defines MOST_MINUTES and MOST_SAMPLES, for which a socket has room beside the other state; longer histories are
 * cut to these.
 */
#pragma once

#include "weir.h"

#define MINUTE (60 * NSEC_PER_SEC)

struct filter {
    /* When the newest minute began; 0 before the first. */
    __u64 minute;
    /* Smallest delay of each of the last minutes, and the newest delays; the newest first, missing ones have the largest value. */
    __u32 base[MOST_MINUTES];
    __u32 current[MOST_SAMPLES];
};

INLINE void put_in_front(__u32 *newest, __u32 most, __u32 delay)
{
    for (__u32 i = most - 1; i > 0; i--)
        newest[i] = newest[i - 1];
    newest[0] = delay;
}

/* The smallest of the `count` newest values; 0 counts as 1. */
INLINE __u32 least(const __u32 *newest, __u32 count, __u32 most)
{
    __u32 least = newest[0];
    for (__u32 i = 1; i < most; i++)
        if (i < count)
            least = min_u32(least, newest[i]);
    return least;
}

INLINE bool filter_knows(struct filter *filter) { return filter->minute != 0; }

INLINE void filter_forget(struct filter *filter)
{
    filter->minute = 0;
    for (__u32 i = 0; i < MOST_MINUTES; i++)
        filter->base[i] = 0xffffffffU;
    for (__u32 i = 0; i < MOST_SAMPLES; i++)
        filter->current[i] = 0xffffffffU;
}

INLINE void filter_take(struct filter *filter, __u32 delay)
{
    __u64 now = now_ns();
    put_in_front(filter->current, MOST_SAMPLES, delay);
    if (!filter_knows(filter) || now - filter->minute >= MINUTE) {
        filter->minute = now;
        put_in_front(filter->base, MOST_MINUTES, delay);
    } else {
        filter->base[0] = min_u32(filter->base[0], delay);
    }
}

/* The smallest delay of the last `minutes` minutes; 0 before the first sample. */
INLINE __u32 filter_base(struct filter *filter, __u32 minutes)
{
    return filter_knows(filter) ? least(filter->base, minutes, MOST_MINUTES) : 0;
}

/* The queuing delay: the smallest of the newest delays less the base delay. */
INLINE __s64 filter_queuing(struct filter *filter, __u32 minutes, __u32 samples)
{
    if (!filter_knows(filter))
        return 0;
    return (__s64)least(filter->current, samples, MOST_SAMPLES) - least(filter->base, minutes, MOST_MINUTES);
}
