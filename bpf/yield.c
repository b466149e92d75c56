/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Yield: the kernel form of crates/control/src/yielding.rs. */
#include "delay.h"

#define RANGE_SHIFT 3
#define FIRST_REDUCTION 3
#define MAX_SHIFT 31
#define MAX_DELAY (1 << 15)

enum reading { paper, listing };

PARAMETER(__u32, beta, 15);
PARAMETER(__u32, min_reduction, 5);
PARAMETER(__u32, max_reduction, 3);
PARAMETER(__u32, maxc_reduction, 0);
PARAMETER(__s32, ct_thresh, 2);
PARAMETER(__u32, hist_factor, 2);
PARAMETER(__s32, trend_factor, 128);
PARAMETER(__s32, increase_threshold, 1);
PARAMETER(__s32, decrease_threshold, -1);
PARAMETER(__u32, min_cwnd, 2);
PARAMETER(enum reading, reading, listing);

/* Delays are in milliseconds, relative to the first. */
struct state {
    struct one_way way;
    __u32 known;
    __u32 delay;
    /* Extremes since the last decision. */
    __u32 delay_min;
    __u32 delay_max;
    /* The range of delays, times 8; 0 before the first. */
    __u32 delay_smin;
    __u32 delay_smax;
    /* Averages, times the divisors of their weights; 0 before the first. */
    __u32 prev_delay;
    __s32 delay_trend;
    __u32 reduction_factor;
    __u32 cross_traffic;
    __u32 round_end;
};
STATE_FITS;

INLINE void forget_extremes(struct state *s)
{
    s->delay_min = 0xffffffffU;
    s->delay_max = 0;
    s->cross_traffic = false;
}

HOOK(void, yield_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    s->known = false;
    s->delay = 0;
    s->delay_smin = 0;
    s->delay_smax = 0;
    s->prev_delay = 0;
    s->delay_trend = 0;
    s->reduction_factor = FIRST_REDUCTION;
    s->round_end = tcp_sk(sk)->snd_nxt;
    forget_extremes(s);
}

/* The next value of an average with a weight of 1/2^`shift`, stored times 2^`shift`. */
INLINE __u32 average(__u32 sample, __u32 stored, __u32 shift)
{
    return stored == 0 ? sample << shift : stored + sample - (stored >> shift);
}

/* The next value of an average with a weight of 1/`factor`, stored times `factor`. */
INLINE __s32 average_trend(__s32 sample, __s32 stored, __s32 factor)
{
    return stored == 0 ? sample * factor : stored + sample - (__s32)divided(stored, factor);
}

INLINE void observe_range(struct state *s)
{
    __u32 scaled = s->delay << RANGE_SHIFT;
    s->delay_min = min_u32(s->delay_min, s->delay);
    s->delay_max = max_u32(s->delay_max, s->delay);
    s->delay_smax = max_u32(s->delay_smax, scaled);
    if (scaled < s->delay_smin || s->delay_smin == 0)
        s->delay_smin = scaled;
}

/* The listing compares delays with multiples of delays; see the Rust form. */
INLINE void observe_range_as_listed(struct state *s)
{
    if (s->delay < s->delay_min)
        s->delay_min = s->delay;
    else if (s->delay > s->delay_max)
        s->delay_max = s->delay;
    __u32 least = s->delay_min << RANGE_SHIFT, most = s->delay_max << RANGE_SHIFT;
    if (least < s->delay_smin || s->delay_smin == 0)
        s->delay_smin = least;
    else if (s->delay_min > s->delay_smin)
        s->delay_smin = average(s->delay, s->delay_smin, RANGE_SHIFT);
    if (most > s->delay_smax || s->delay_smax == 0)
        s->delay_smax = most;
}

INLINE void observe_trend(struct state *s)
{
    __u32 hist = min_u32(hist_factor, 16);
    __s32 factor = trend_factor > 0 ? trend_factor : 1;
    __s32 trend = 0;
    if (s->prev_delay != 0) {
        trend = s->delay - (s->prev_delay >> hist);
        __s64 usual = divided(s->delay_trend, factor) * ct_thresh;
        if (s->delay_trend != 0 && trend > (usual > 1 ? usual : 1))
            s->cross_traffic = true;
    }
    if (trend >= increase_threshold) {
        __u32 least = s->cross_traffic ? maxc_reduction : max_reduction;
        s->reduction_factor = max_u32(s->reduction_factor ? s->reduction_factor - 1 : 0, least);
    } else if (trend <= decrease_threshold) {
        s->reduction_factor = min_u32(s->reduction_factor + 1, min_reduction);
    }
    s->prev_delay = average(s->delay, s->prev_delay, hist);
    s->delay_trend = average_trend(trend, s->delay_trend, factor);
}

HOOK(void, yield_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (!stamped(tp))
        return;
    __s64 delay = one_way_sample(&s->way, s->known, tp);
    s->known = true;
    /* A delay that is not above the first one is ignored; the last delay stays. */
    if (delay > 0)
        s->delay = min_u64(delay, MAX_DELAY);
    if (reading == paper)
        observe_range(s);
    else
        observe_range_as_listed(s);
    observe_trend(s);
}

INLINE bool above_target(struct state *s)
{
    __s64 queuing = s->delay_smin ? (__s64)s->delay - (s->delay_smin >> RANGE_SHIFT) : 0;
    /* Before the first largest delay this wraps as in the listing, and the target is out of reach. */
    __u32 range = s->delay_smax - s->delay_smin;
    if (reading == paper && s->delay_smax < s->delay_smin)
        range = 0;
    return queuing > (__s64)((__u64)beta * 100 * (range >> RANGE_SHIFT) / 10000);
}

/* Cuts the window by `reduction_factor`, and makes the next cut smaller. */
INLINE void cut(struct state *s, struct tcp_sock *tp)
{
    tp->snd_cwnd = tp->snd_cwnd - (tp->snd_cwnd >> (s->reduction_factor & MAX_SHIFT));
    s->reduction_factor = min_u32(s->reduction_factor + 1, reading == paper ? min_reduction : MAX_SHIFT);
}

INLINE void decided(struct state *s, struct tcp_sock *tp)
{
    tp->snd_cwnd = max_u32(tp->snd_cwnd, max_u32(min_cwnd, 1));
    forget_extremes(s);
}

/* The decision of the listing, at each acknowledgement. */
INLINE void decide_as_listed(struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (tp->snd_cwnd <= tp->snd_ssthresh) {
        acked = tcp_slow_start(tp, acked);
        if (acked == 0)
            return;
    }
    if (above_target(s))
        cut(s, tp);
    else
        tcp_reno_cong_avoid(sk, ack, acked);
    decided(s, tp);
}

/* The decision of the text, once each round trip. */
INLINE void decide_by_the_text(struct sock *sk, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (in_slow_start(tp) && tcp_slow_start(tp, acked) == 0)
        return;
    if (!after(tp->snd_una, s->round_end))
        return;
    s->round_end = tp->snd_nxt;
    if (s->delay_min != 0xffffffffU && s->delay_min << RANGE_SHIFT > s->delay_smin)
        s->delay_smin = average(s->delay_min, s->delay_smin, RANGE_SHIFT);
    if (above_target(s))
        cut(s, tp);
    else if (cwnd_limited(tp))
        tp->snd_cwnd = tp->snd_cwnd + 1;
    decided(s, tp);
}

HOOK(void, yield_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    if (reading == paper)
        decide_by_the_text(sk, acked);
    else
        decide_as_listed(sk, ack, acked);
}

HOOK(__u32, yield_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, yield_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(yield,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)yield_init,
    .pkts_acked = (void *)yield_pkts_acked,
    .cong_avoid = (void *)yield_cong_avoid,
    .ssthresh = (void *)yield_ssthresh,
    .undo_cwnd = (void *)yield_undo_cwnd);
