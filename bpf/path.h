/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Westwood+'s estimate of a path's rate, in bytes per tick: the kernel form of crates/control/src/westwood_rate.rs. */
#pragma once

#include "weir.h"

#define FIRST_RTT_SECONDS 20
#define LEAST_ROUND 20
#define LEAST_SEGMENTS 2
#define USEC_PER_SEC 1000000

/* Ticks per second; the kernel's own number may differ. */
PARAMETER(__u32, hz, 250);

struct path {
    /* The rate after the first and after both filters. */
    __u32 once;
    __u32 twice;
    /* The tick in which the round began, and the bytes acknowledged in it. */
    __u64 round_start;
    __u64 bytes;
    /* The sequence number up to which bytes have been counted, and the bytes counted for duplicates ahead of it. */
    __u32 counted;
    __u32 ahead;
    /* The newest RTT and the smallest, in ticks. */
    __u32 rtt;
    __u32 rtt_min;
    __u16 counts;
    __u16 forget_min;
};

INLINE __u64 ticks(void) { return now_ns() / NSEC_PER_USEC * hz / USEC_PER_SEC; }

INLINE void path_begins(struct path *path)
{
    path->once = 0;
    path->twice = 0;
    path->round_start = ticks();
    path->bytes = 0;
    path->counts = false;
    path->ahead = 0;
    path->rtt = FIRST_RTT_SECONDS * hz;
    path->rtt_min = path->rtt;
    path->forget_min = true;
}

/* Takes an RTT sample, in ticks rounded up. */
INLINE void path_sample(struct path *path, const struct ack_sample *sample)
{
    if (sample->rtt_us > 0)
        path->rtt = ((__u64)sample->rtt_us * hz + USEC_PER_SEC - 1) / USEC_PER_SEC;
}

INLINE __u32 low_pass(__u64 average, __u64 sample) { return (7 * average + sample) / 8; }

/* Filters the rate of the round if it has lasted longer than an RTT and the shortest round. */
INLINE void path_end_round(struct path *path)
{
    __u64 now = ticks(), lasted = now - path->round_start;
    if (lasted <= max_u32(path->rtt, hz / LEAST_ROUND))
        return;
    __u64 sample = path->bytes / lasted;
    if (path->once == 0 && path->twice == 0) {
        path->once = sample;
        path->twice = sample;
    } else {
        path->once = low_pass(path->once, sample);
        path->twice = low_pass(path->twice, path->once);
    }
    path->bytes = 0;
    path->round_start = now;
}

/* The bytes that count for an acknowledgement outside header prediction. */
INLINE __u32 path_count(struct path *path, __u32 advance, __u32 mss)
{
    if (advance == 0) {
        path->ahead += mss;
        return mss;
    }
    if (advance <= mss)
        return advance;
    if (path->ahead >= advance) {
        path->ahead -= advance;
        return mss;
    }
    __u32 news = advance - path->ahead;
    path->ahead = 0;
    return news;
}

INLINE void path_ack(struct path *path, struct tcp_sock *tp, __u32 flags)
{
    if (!path->counts) {
        path->counts = true;
        path->counted = tp->snd_una;
    }
    path_end_round(path);
    __u32 advance = tp->snd_una - path->counted;
    path->bytes += flags & CA_ACK_SLOWPATH ? path_count(path, advance, tp->mss_cache) : advance;
    path->counted = tp->snd_una;
    if (path->forget_min) {
        path->rtt_min = path->rtt;
        path->forget_min = false;
    }
    path->rtt_min = min_u32(path->rtt_min, path->rtt);
}

INLINE __u64 path_bytes(struct path *path) { return (__u64)path->twice * path->rtt_min; }

/* The estimated BDP in segments, at least LEAST_SEGMENTS. */
INLINE __u32 path_segments(struct path *path, struct tcp_sock *tp)
{
    __u64 segments = path_bytes(path) / max_u32(tp->mss_cache, 1);
    return max_u64(min_u64(segments, 0xffffffffU), LEAST_SEGMENTS);
}

/* Sets the window and its threshold to the estimated BDP. */
INLINE void path_fill(struct path *path, struct tcp_sock *tp)
{
    tp->snd_ssthresh = path_segments(path, tp);
    tp->snd_cwnd = tp->snd_ssthresh;
}

/* Sets the window to the estimated BDP after a reduction. A timeout sets the threshold to it, and resets the smallest RTT. */
INLINE void path_event(struct path *path, struct sock *sk, enum tcp_ca_event event)
{
    struct tcp_sock *tp = tcp_sk(sk);
    if (event == CA_EVENT_COMPLETE_CWR) {
        path_fill(path, tp);
    } else if (event == CA_EVENT_LOSS) {
        tp->snd_ssthresh = path_segments(path, tp);
        path->forget_min = true;
    }
}
