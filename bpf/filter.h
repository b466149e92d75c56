/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The smallest of the newest delays over the smallest of the last minutes: `DelayFilter` of crates/control/src/ledbat_delay.rs.
 * Before it is included, MOST_MINUTES and MOST_SAMPLES say for how many a socket has room beside the rest; longer histories count
 * as these.
 */
#pragma once

#include "weir.h"

#define MINUTE (60 * NSEC_PER_SEC)

struct filter {
    /* When the newest minute began; 0 before any. */
    __u64 minute;
    /* Smallest delay of each of the last minutes, and the newest delays; the newest first, what is not yet there largest. */
    __u32 base[MOST_MINUTES];
    __u32 current[MOST_SAMPLES];
};

INLINE void put_in_front(__u32 *newest, __u32 most, __u32 delay)
{
    for (__u32 i = most - 1; i > 0; i--)
        newest[i] = newest[i - 1];
    newest[0] = delay;
}

/* Of so many of the newest the smallest; none counts as one. */
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

/* The smallest delay of so many minutes; 0 before any. */
INLINE __u32 filter_base(struct filter *filter, __u32 minutes)
{
    return filter_knows(filter) ? least(filter->base, minutes, MOST_MINUTES) : 0;
}

/* How far the newest delays are above it. */
INLINE __s64 filter_queuing(struct filter *filter, __u32 minutes, __u32 samples)
{
    if (!filter_knows(filter))
        return 0;
    return (__s64)least(filter->current, samples, MOST_SAMPLES) - least(filter->base, minutes, MOST_MINUTES);
}
