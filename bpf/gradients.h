/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Delay gradients: the differences of the smallest and of the largest RTT between successive rounds, summed over the last rounds;
 * and the exponential function of the back-off probability: the kernel form of crates/control/src/cdg/gradients.rs and exponential.rs.
 */
#pragma once

#include "weir.h"

#define MAX_GRADIENTS 256U
#define EFFECTUAL 32
#define MOST_DELAYED 5

struct rtts {
    __s32 min;
    __s32 max;
};

/* RTTs are in microseconds. */
struct gradients {
    /* The current round, and the round before, if `knows_before`. */
    struct rtts round;
    struct rtts before;
    struct rtts sum;
    __u32 knows_before;
    __u32 delayed;
    /* Number of rounds that are summed; the parameter's value when the connection began. */
    __u32 window;
    __u32 oldest;
    __u32 filled;
    struct rtts last[MAX_GRADIENTS];
};

struct trend {
    __s64 gradient;
    __s32 min;
    __s32 max;
};

INLINE void gradients_begin(struct gradients *g, __u32 window)
{
    struct rtts none = { 0, 0 };
    g->round = none;
    g->sum = none;
    g->knows_before = false;
    g->delayed = 0;
    g->window = max_u32(min_u32(window, MAX_GRADIENTS), 1);
    g->oldest = 0;
    g->filled = false;
    for (__u32 i = 0; i < MAX_GRADIENTS; i++)
        g->last[i] = none;
}

/* A single segment after pairs has waited for the receiver's timer: its RTT can only lower the round's smallest one. */
INLINE void gradients_sample(struct gradients *g, const struct ack_sample *sample, __u32 sacked_out)
{
    __s32 rtt = sample->rtt_us;
    if (rtt <= 0)
        return;
    if (sacked_out == 0) {
        if (sample->pkts_acked == 1 && g->delayed > 0) {
            if (rtt < g->round.min)
                g->round.min = rtt;
            g->delayed -= 1;
            return;
        }
        if (sample->pkts_acked > 1 && g->delayed < MOST_DELAYED)
            g->delayed += 1;
    }
    if (g->round.min == 0 || rtt < g->round.min)
        g->round.min = rtt;
    if (rtt > g->round.max)
        g->round.max = rtt;
}

INLINE bool gradients_sampled(struct gradients *g) { return g->round.max != 0; }

INLINE struct rtts take_round(struct gradients *g)
{
    struct rtts round = g->round;
    g->round.min = 0;
    g->round.max = 0;
    return round;
}

/* Ends the round and computes the trend; false if there was no round before it. */
INLINE bool gradients_end_round(struct gradients *g, struct trend *trend)
{
    struct rtts round = take_round(g), before = g->before;
    bool known = g->knows_before;
    g->before = round;
    g->knows_before = true;
    if (!known)
        return false;
    struct rtts newest = { round.min - before.min, round.max - before.max };
    __u32 place = g->oldest & (MAX_GRADIENTS - 1);
    struct rtts oldest = g->last[place];
    g->last[place] = newest;
    g->sum.min += newest.min - oldest.min;
    g->sum.max += newest.max - oldest.max;
    g->oldest = place + 1;
    if (g->oldest >= g->window) {
        g->oldest = 0;
        g->filled = true;
    }
    trend->min = g->sum.min;
    trend->max = g->sum.max;
    trend->gradient = trend->min > 0 ? trend->min : trend->max;
    /* The rounds still missing are assumed to be like those so far. */
    if (!g->filled)
        trend->gradient = divided(trend->gradient * g->window, max_u32(g->oldest, 1));
    return true;
}

/* Ends the round without a gradient; the next round is compared with it. */
INLINE void gradients_skip_round(struct gradients *g)
{
    g->before = take_round(g);
    g->knows_before = g->before.max != 0;
}

/* A quotient rounded to the nearest integer, ties away from zero. */
INLINE __s32 div_round_closest(__s32 number, __u32 by)
{
    __s64 half = by / 2;
    return divided(number < 0 ? number - half : number + half, by);
}

/*
 * exp(-x) * 2^16 - 1 for x = 0.000256 and, element by element, twice the x before. Volatile, since clang would otherwise put it into
 * a section that loaders do not read.
 */
static const volatile __u16 factors[16] = { 65518, 65501, 65468, 65401, 65267, 65001, 64470, 63422,
                                   61378, 57484, 50423, 38795, 22965, 8047,  987,   14 };
#define LINEAR_BITS 8
#define MILLION 1000000

/* exp(-x) for x in millionths, times 2^32 - 1; 0 from 2^24 millionths on. */
INLINE __u32 negative_exponential(__u32 millionths)
{
    __u32 high = millionths >> LINEAR_BITS;
    __u64 result = 0xffffffffU - (millionths & ((1 << LINEAR_BITS) - 1)) * (0xffffffffU / MILLION);
    if (high >> 16)
        return 0;
    for (__u32 bit = 0; bit < 16; bit++)
        if (high >> bit & 1)
            result = result * (factors[bit] + 1U) >> 16;
    return result;
}
