/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* HyStart of CDG: the kernel form of crates/control/src/cdg/hystart.rs. Times are in microseconds. */
#pragma once

#include "weir.h"

#define TRAIN_GAP 3000
#define LEAST 125U
#define MIN_SAMPLES 8

enum detect { ack_train, delay, both };

struct trains {
    /* Smallest RTT; 0 before the first. */
    __u32 delay_min;
    /* The times of the train's first and newest acknowledgement, if `under_way`. */
    __u32 began;
    __u32 newest;
    __u16 under_way;
    __u16 samples;
};

INLINE void trains_next_round(struct trains *trains)
{
    trains->under_way = false;
    trains->samples = 0;
}

INLINE void trains_begin(struct trains *trains)
{
    trains->delay_min = 0;
    trains_next_round(trains);
}

INLINE bool train_is_long(struct trains *trains, bool limited)
{
    __u32 now = now_ns() / NSEC_PER_USEC;
    if (!trains->under_way || !limited) {
        trains->under_way = true;
        trains->began = now;
        trains->newest = now;
        return false;
    }
    if (now - trains->newest >= TRAIN_GAP)
        return false;
    trains->newest = now;
    return now - trains->began > max_u32(trains->delay_min / 2, LEAST);
}

INLINE bool delay_has_grown(struct trains *trains, __u32 round_min)
{
    if (trains->samples < MIN_SAMPLES) {
        trains->samples += 1;
        return false;
    }
    return round_min > max_u32(trains->delay_min + trains->delay_min / 8, LEAST);
}

/* Whether slow start ends here; `round_min` is the smallest RTT of the round, 0 before the first. */
INLINE bool trains_end_start(struct trains *trains, enum detect detect, bool limited, __u32 round_min)
{
    if (trains->delay_min == 0 || (round_min != 0 && round_min < trains->delay_min))
        trains->delay_min = round_min;
    if (trains->delay_min == 0)
        return false;
    return (detect != delay && train_is_long(trains, limited))
           || (detect != ack_train && delay_has_grown(trains, round_min));
}
