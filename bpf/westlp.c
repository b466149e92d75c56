/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Westwood-LP: the kernel form of crates/control/src/westwood_lp.rs. That form computes with fractions; this one compares whole bytes,
 * exactly with the formula of 2006, and to a part in 32,768 of a byte with the formula of 2004.
 */
#include "path.h"

enum threshold { _2004, _2006 };
enum reading { paper, listing };

PARAMETER(__u32, beta, 3);
PARAMETER(enum threshold, threshold, _2006);
PARAMETER(enum reading, reading, listing);

/* Value of the listing's average RTT at losses before the first loss. */
#define NO_LOSS 1
/* Averages are times 4. */
#define AVERAGE_SHIFT 2
/* Largest delay in ticks that counts (65 s at 1000 per second, times 4): products have 64 bits. */
#define MOST_TICKS ((1U << 18) - 1)
/* Numerator of the formula of 2004 in microseconds, and binary places of a byte's fraction. */
#define DELTA_USEC 3
#define BYTE_SHIFT 16

/* RTTs are in ticks. */
struct state {
    struct path path;
    /* RTTs since the last early reduction. */
    __u32 min;
    __u32 max;
    __u64 sum;
    __u32 count;
    /* Averages times 4; 0 before the first. */
    __u32 min_avg;
    __u32 max_avg;
    __u32 mean_avg;
    __u32 delay_loss;
};
STATE_FITS;

INLINE __u32 average(__u32 sample, __u32 stored)
{
    return stored == 0 ? sample << AVERAGE_SHIFT : stored + sample - (stored >> AVERAGE_SHIFT);
}

HOOK(void, westlp_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    path_begins(&s->path);
    s->min = 0;
    s->max = 0;
    s->sum = 0;
    s->count = 0;
    s->min_avg = 0;
    s->max_avg = 0;
    s->mean_avg = 0;
    s->delay_loss = reading == paper ? 0 : NO_LOSS;
}

INLINE bool knows_rtt(struct state *s) { return s->path.rtt != FIRST_RTT_SECONDS * hz; }

INLINE void see(struct state *s, __u32 rtt)
{
    if (s->max == 0) {
        s->min = rtt;
        s->max = rtt;
    }
    s->min = min_u32(s->min, rtt);
    s->max = max_u32(s->max, rtt);
    s->sum += rtt;
    s->count += 1;
}

INLINE __u32 mean(struct state *s) { return s->sum / max_u32(s->count, 1); }

INLINE void see_loss(struct state *s) { s->delay_loss = average(s->path.rtt, s->delay_loss); }

HOOK(void, westlp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    path_sample(&STATE_OF(sk)->path, sample);
}

HOOK(void, westlp_in_ack_event, struct sock *sk, __u32 flags)
{
    struct state *s = STATE_OF(sk);
    path_ack(&s->path, tcp_sk(sk), flags);
    if (knows_rtt(s) && (reading == paper || flags & CA_ACK_SLOWPATH))
        see(s, s->path.rtt);
}

/* The smaller and the larger delay of the threshold. */
struct pair {
    __u32 low;
    __u32 high;
};

INLINE bool tells(struct pair pair) { return pair.low != pair.high && pair.high != 0; }

/* The averages, or without averages the current values; zeros if neither is usable. */
INLINE struct pair delays(struct state *s, bool starting)
{
    struct pair averages = { s->min_avg, threshold == _2004 ? s->mean_avg : s->max_avg };
    struct pair seen = { s->min, threshold == _2004 ? mean(s) : s->max };
    struct pair none = { 0, 0 };
    if (tells(averages))
        return averages;
    return tells(seen) && !starting ? seen : none;
}

/* The bytes that may wait by the formula of 2006; negative if the delay is above the delay at losses. */
INLINE __s64 threshold_of_2006(struct state *s, __u64 most, __u32 low, __u32 high)
{
    if (s->delay_loss <= NO_LOSS)
        return most * (high - low) / high;
    __u32 loss = min_u32(s->delay_loss, MOST_TICKS);
    __s64 below_loss = (__s64)loss - ((__s64)min_u32(s->path.rtt, MOST_TICKS >> AVERAGE_SHIFT) << AVERAGE_SHIFT);
    return divided_down(below_loss * (__s64)(most * (high - low)), (__u64)loss * high);
}

/* The bytes that may wait by the formula of 2004; practically unlimited without a queue. */
INLINE __s64 threshold_of_2004(struct state *s, __u64 most, __u32 low, __u32 high)
{
    __u64 queued = s->path.rtt > s->path.rtt_min ? s->path.rtt - s->path.rtt_min : 0;
    if (queued == 0)
        return 1LL << 62;
    __u64 steady = (most * (high - low) << BYTE_SHIFT) / high;
    __u64 empty = (most * DELTA_USEC * hz << BYTE_SHIFT) / (queued * USEC_PER_SEC);
    return (steady + empty) >> BYTE_SHIFT;
}

/* The threshold of the listing: unsigned, computed in percent. */
INLINE __u32 threshold_as_listed(struct state *s, struct pair pair)
{
    __u32 rtt = s->delay_loss > NO_LOSS ? s->path.rtt : 0;
    __u32 near_loss = 100 - rtt * 4 * 100 / max_u32(s->delay_loss, 1);
    __u32 steady = 100 - pair.low * 100 / max_u32(pair.high, 1);
    return beta * near_loss / 100 * steady / 100;
}

/* Whether more segments wait than the threshold. */
INLINE bool queue_is_long(struct state *s, struct tcp_sock *tp)
{
    bool starting = in_slow_start(tp);
    if (reading == paper && starting)
        return false;
    struct pair pair = delays(s, starting);
    if (pair.high == 0)
        return false;
    if (reading == listing && threshold == _2006)
        return tp->snd_cwnd - (__u32)(path_bytes(&s->path) / max_u32(tp->advmss, 1)) > threshold_as_listed(s, pair);
    __u64 most = (__u64)beta * tp->mss_cache;
    __u32 high = min_u32(pair.high, MOST_TICKS), low = min_u32(pair.low, high);
    __s64 waiting = (__s64)tp->snd_cwnd * tp->mss_cache - (__s64)path_bytes(&s->path);
    return waiting > (threshold == _2004 ? threshold_of_2004(s, most, low, high) : threshold_of_2006(s, most, low, high));
}

/* Reduces the window early, adds the extremes and the mean to the averages, and begins again with the current RTT. */
INLINE void come_down_early(struct state *s, struct tcp_sock *tp)
{
    path_fill(&s->path, tp);
    s->mean_avg = average(mean(s), s->mean_avg);
    s->min_avg = average(s->min, s->min_avg);
    s->max_avg = average(s->max, s->max_avg);
    s->min = s->path.rtt;
    s->max = s->path.rtt;
    s->sum = s->path.rtt;
    s->count = 1;
}

HOOK(void, westlp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (queue_is_long(s, tp))
        come_down_early(s, tp);
    else
        tcp_reno_cong_avoid(sk, ack, acked);
}

HOOK(void, westlp_set_state, struct sock *sk, __u8 new_state)
{
    struct state *s = STATE_OF(sk);
    if (reading == paper && new_state == TCP_CA_RECOVERY && !reducing(phase_of(sk)) && knows_rtt(s))
        see_loss(s);
}

HOOK(void, westlp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct state *s = STATE_OF(sk);
    path_event(&s->path, sk, event);
    if (event == CA_EVENT_LOSS && (reading == listing || knows_rtt(s)))
        see_loss(s);
}

HOOK(__u32, westlp_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, westlp_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(westlp,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)westlp_init,
    .pkts_acked = (void *)westlp_pkts_acked,
    .in_ack_event = (void *)westlp_in_ack_event,
    .set_state = (void *)westlp_set_state,
    .cwnd_event = (void *)westlp_cwnd_event,
    .cong_avoid = (void *)westlp_cong_avoid,
    .ssthresh = (void *)westlp_ssthresh,
    .undo_cwnd = (void *)westlp_undo_cwnd);
