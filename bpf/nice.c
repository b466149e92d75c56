/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * TCP Nice: the kernel form of crates/control/src/nice.rs. The kernel has no window below one segment. Instead the window stays, and
 * the socket's largest pacing rate lets two segments leave each `fwnd` round trips (with a window of one, which the article allows,
 * one segment in half that time). The rate is low by less than a byte per second. Retransmissions are then paced too, where the Rust
 * form does not wait. A connection that leaves Nice meanwhile keeps the rate.
 */
#include "rounds.h"

enum reading { paper, listing };

PARAMETER(__u32, alpha, 1);
PARAMETER(__u32, beta, 3);
PARAMETER(__u32, gamma, 1);
PARAMETER(__u32, threshold, 20);
PARAMETER(__u32, fraction_divisor, 2);
PARAMETER(__u32, max_fwnd, 96);
PARAMETER(__u32, counter_bits, 8);
PARAMETER(enum reading, reading, listing);

#define MIN_WINDOW 2U
#define NOT_BELOW 2U
#define TOGETHER 2U
#define USEC_PER_SEC 1000000ULL

struct state {
    struct rounds rounds;
    /* Number of RTTs of this round that were a sign of congestion. */
    __u32 signs;
    /* Largest RTT, at least twice the smallest. */
    __u64 most;
    /* Round trips between pairs of segments. */
    __u32 fwnd;
    /* The socket's pacing status and largest pacing rate before the control limited it. */
    __u32 paced;
    __u64 allowed;
};
STATE_FITS;

HOOK(void, nice_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    rounds_begin_anew(&s->rounds, sk);
    s->signs = 0;
    s->most = 0;
    s->fwnd = NOT_BELOW;
}

HOOK(void, nice_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    bool first = s->rounds.count == 0;
    if (sample->rtt_us < 0)
        return;
    rounds_sample(&s->rounds, sample);
    __u32 rtt = sample->rtt_us + 1, percent = min_u32(threshold, 100);
    if (first && reading == listing)
        s->most = 0;
    s->most = max_u64(max_u64(s->most, rtt), 2ULL * s->rounds.base);
    __u64 limit = (100ULL - percent) * s->rounds.base + percent * s->most;
    if (rtt > limit / 100)
        s->signs = counter_bits == 8 ? (s->signs + 1) & 255 : s->signs + 1;
}

HOOK(void, nice_set_state, struct sock *sk, __u8 new_state) { rounds_phase(&STATE_OF(sk)->rounds, sk, new_state); }

HOOK(void, nice_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct rounds *rounds = &STATE_OF(sk)->rounds;
    __u32 base = rounds->base;
    rounds_event(rounds, sk, event);
    /* By the article the smallest RTT is that of the connection. */
    if (reading == paper)
        rounds->base = base;
}

INLINE void spread(struct state *s, __u32 round_trips)
{
    s->fwnd = max_u32(min_u32(round_trips, max_u32(max_fwnd, NOT_BELOW)), NOT_BELOW);
}

INLINE void halve(struct state *s, struct tcp_sock *tp)
{
    if (reading == paper) {
        if (tp->snd_cwnd > 1) {
            tp->snd_cwnd = tp->snd_cwnd >> 1;
            tp->snd_ssthresh = tp->snd_cwnd;
        } else {
            spread(s, s->fwnd * 2);
        }
    } else if (s->fwnd == NOT_BELOW && tp->snd_cwnd > MIN_WINDOW) {
        tp->snd_cwnd = tp->snd_cwnd >> 1;
    } else {
        spread(s, s->fwnd * 4);
    }
}

INLINE __u32 floor_of_window(void) { return reading == paper ? 1 : MIN_WINDOW; }

INLINE void step_down(struct state *s, struct tcp_sock *tp)
{
    if (s->fwnd == NOT_BELOW && tp->snd_cwnd > floor_of_window())
        tp->snd_cwnd = tp->snd_cwnd - 1;
    else if (reading == listing)
        spread(s, s->fwnd + 2);
    tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
}

INLINE void step_up(struct state *s, struct tcp_sock *tp)
{
    if (s->fwnd == NOT_BELOW)
        tp->snd_cwnd = tp->snd_cwnd + 1;
    else if (reading == paper)
        s->fwnd = NOT_BELOW;
    else
        spread(s, s->fwnd - 2);
}

/* Grows as Reno does. With a window below one segment, each segment of growth subtracts two round trips from `fwnd` instead. */
INLINE void grow_as_reno(struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (s->fwnd > NOT_BELOW && reading == paper) {
        step_up(s, tp);
        return;
    }
    __u32 cwnd = tp->snd_cwnd, cnt = tp->snd_cwnd_cnt;
    tcp_reno_cong_avoid(sk, ack, acked);
    if (s->fwnd == NOT_BELOW)
        return;
    __u32 shorter = min_u64(2ULL * (tp->snd_cwnd - cwnd), s->fwnd);
    spread(s, s->fwnd - shorter);
    if (s->fwnd > NOT_BELOW) {
        tp->snd_cwnd = cwnd;
        tp->snd_cwnd_cnt = cnt;
    }
}

/* The decision of a round. */
INLINE void judge(struct sock *sk, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    __u32 queued = rounds_queue(&s->rounds, tp->snd_cwnd);
    if (in_slow_start(tp)) {
        if (queued > gamma) {
            __u64 target = rounds_target(&s->rounds, tp->snd_cwnd);
            tp->snd_cwnd = min_u64(tp->snd_cwnd, target + 1);
            tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
        } else {
            tcp_slow_start(tp, acked);
        }
    } else if (s->signs > tp->snd_cwnd / max_u32(fraction_divisor, 1)) {
        halve(s, tp);
    } else if (queued > beta) {
        step_down(s, tp);
    } else if (queued < alpha) {
        step_up(s, tp);
    }
    tp->snd_cwnd = max_u32(tp->snd_cwnd, floor_of_window());
    tp->snd_ssthresh = remembered_threshold(sk);
}

/* Whether a round has too few RTTs for a decision. In the article one RTT is enough if the window is at most MIN_WINDOW. */
INLINE bool few(struct state *s, struct tcp_sock *tp)
{
    bool any = reading == paper && tp->snd_cwnd <= MIN_WINDOW && s->rounds.count > 0;
    return s->rounds.count <= FEW && !any;
}

/* Limits the pacing rate to two segments each `fwnd` round trips while the window is below one segment. */
INLINE void pace(struct sock *sk, bool was_below)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (s->fwnd > NOT_BELOW) {
        if (!was_below) {
            s->allowed = sk->sk_max_pacing_rate;
            s->paced = sk->sk_pacing_status;
        }
        /* `srtt_us` is in eighths. */
        __u64 bytes = (__u64)TOGETHER * tp->mss_cache * 8 * USEC_PER_SEC;
        __u64 wait = (__u64)s->fwnd * max_u32(tp->srtt_us, 1);
        limit_pacing(sk, max_u64(min_u64(bytes / wait, 0xfffffffeU), 1));
    } else if (was_below) {
        limit_pacing(sk, min_u64(s->allowed, 0xffffffffU));
        sk->sk_pacing_status = s->paced;
    }
}

HOOK(void, nice_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    bool was_below = s->fwnd > NOT_BELOW;
    if (!s->rounds.judging) {
        grow_as_reno(sk, ack, acked);
    } else if (after(tp->snd_una, s->rounds.end)) {
        if (few(s, tp))
            grow_as_reno(sk, ack, acked);
        else
            judge(sk, acked);
        rounds_next(&s->rounds, tp);
        s->signs = 0;
    } else if (in_slow_start(tp)) {
        tcp_slow_start(tp, acked);
    }
    pace(sk, was_below);
}

HOOK(__u32, nice_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, nice_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(nice,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)nice_init,
    .pkts_acked = (void *)nice_pkts_acked,
    .set_state = (void *)nice_set_state,
    .cwnd_event = (void *)nice_cwnd_event,
    .cong_avoid = (void *)nice_cong_avoid,
    .ssthresh = (void *)nice_ssthresh,
    .undo_cwnd = (void *)nice_undo_cwnd);
