/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Prague: the kernel form of crates/control/src/prague.rs. Linux 6.18 sends ECT(0) and gives a control no accurate ECN. So relabel.c
 * changes the packets' codepoint, and marks are echoed as DCTCP's receiver does; both ends must be under Prague or DCTCP.
 */
#include "echo.h"

#define SHIFT 20
#define ONE (1ULL << SHIFT)
#define SHIFT_G 4
#define MIN_WINDOW 2U
#define LONGEST_SCALED 100000
#define KNEE (1ULL << 14)
#define KNEE_FROM ((1 << 10) + (1 << 9))
#define HEADERS (20 + 20 + 12)
#define BURST_SHIFT 12
#define LEAST_BURST 2U

/* include/net/sock.h */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

enum rtt_scaling { none, rate, scalable, additive };

PARAMETER(enum rtt_scaling, rtt_scaling, rate);
PARAMETER(usecs, rtt_target, 25 * USEC_PER_MSEC);
PARAMETER(__u32, rtt_transition, 500);

struct state {
    /* The fractional window in 2^-20 segments; the kernel's window in segments follows it. */
    __u64 fraction;
    /* When the share of marks was last smoothed, and when it last reduced the window; 0 means never. */
    __u64 alpha_at;
    __u64 reduced_at;
    __u64 prior_fraction;
    __u32 prior_cwnd;
    /* Smoothed share of marked segments, in 2^-20, times 16. */
    __u32 alpha;
    /* The end of the round, and segments delivered and marked before the round and before this acknowledgement. */
    __u32 round_end;
    __u32 round_delivered;
    __u32 round_marked;
    __u32 delivered;
    __u32 marked;
    __u32 rounds;
    __u32 increase;
    __u8 saw_mark;
    __u8 in_loss;
    __u8 undoable;
    struct echo echo;
};
STATE_FITS;

/* The fractional window in whole segments, rounded up. */
INLINE __u32 whole(struct state *s)
{
    __u64 segments = (s->fraction + ONE - 1) >> SHIFT;
    return segments ? min_u64(segments, 0xffffffffU) : 1;
}

INLINE __u32 srtt_us(struct tcp_sock *tp) { return tp->srtt_us >> 3; }

/* Whether growth is scaled now. */
INLINE bool scales(struct state *s, struct tcp_sock *tp)
{
    return rtt_scaling != none && rtt_target != 0 && !in_slow_start(tp) && s->rounds >= rtt_transition;
}

INLINE __u64 target_us(struct tcp_sock *tp)
{
    return rtt_scaling == additive ? (__u64)rtt_target + srtt_us(tp) : rtt_target;
}

/* A number scaled by the round trip over a divisor, rounded to nearest. */
INLINE __u64 scaled(__u64 number, __u32 rtt, __u64 divisor)
{
    return (number * rtt + divisor / 2) / max_u64(divisor, 1);
}

/* Updates `increase`, the growth for a whole window of unmarked segments. */
INLINE void update_increase(struct state *s, struct tcp_sock *tp)
{
    __u32 rtt = srtt_us(tp);
    s->increase = ONE;
    if (rtt == 0 || rtt > LONGEST_SCALED || !scales(s, tp))
        return;
    if (rtt_scaling == scalable) {
        __u64 bent = rtt > KNEE_FROM ? min_u64(rtt - KNEE_FROM, KNEE) : 0;
        s->increase = scaled((ONE / 8) * KNEE + ONE * bent, rtt, KNEE * KNEE);
    } else if (rtt < target_us(tp)) {
        s->increase = scaled((__u64)rtt << SHIFT, rtt, target_us(tp) * target_us(tp));
    }
}

/* Grows the fractional window for unmarked segments, and lets the kernel's window follow it. */
INLINE void update_window(struct state *s, struct tcp_sock *tp, __u32 delivered, __u32 marked)
{
    __u32 unmarked = delivered > marked ? delivered - marked : 0;
    if (marked)
        s->saw_mark = true;
    if (unmarked && !s->in_loss && cwnd_limited(tp)) {
        if (in_slow_start(tp)) {
            __u32 cwnd = min_u64((__u64)tp->snd_cwnd + unmarked, tp->snd_ssthresh);
            unmarked -= cwnd - tp->snd_cwnd;
            tp->snd_cwnd = cwnd;
            s->fraction = (__u64)cwnd << SHIFT;
            if (unmarked == 0) {
                update_increase(s, tp);
                return;
            }
        }
        __u64 growth = ((__u64)unmarked * s->increase + whole(s) / 2) / whole(s);
        s->fraction += max_u64(growth, unmarked);
    }
    if (tp->snd_cwnd > whole(s) && tp->snd_cwnd > MIN_WINDOW) {
        tp->snd_cwnd = tp->snd_cwnd - 1;
        tp->snd_ssthresh = tp->snd_cwnd;
        update_increase(s, tp);
    } else if (tp->snd_cwnd < whole(s)) {
        tp->snd_cwnd = tp->snd_cwnd + 1;
        update_increase(s, tp);
    }
}

/* Updates the smoothed share of marks once a round trip, or once a target round trip if growth is scaled. */
INLINE void update_alpha(struct state *s, struct tcp_sock *tp)
{
    __u64 now = now_ns();
    if (before(tp->snd_una, s->round_end))
        return;
    if (scales(s, tp) && now - s->alpha_at < target_us(tp) * NSEC_PER_USEC)
        return;
    if (s->saw_mark) {
        __u64 share = ((__u64)(tp->delivered_ce - s->round_marked) << SHIFT)
                      / max_u32(tp->delivered - s->round_delivered, 1);
        s->alpha = min_u64(s->alpha - (s->alpha >> SHIFT_G) + share, ONE << SHIFT_G);
        s->alpha_at = now;
    }
    s->round_end = tp->snd_nxt;
    s->round_delivered = tp->delivered;
    s->round_marked = tp->delivered_ce;
    if (!in_slow_start(tp))
        s->rounds += 1;
    update_increase(s, tp);
}

/*
 * Sets the pacing rate in bytes per second: a window per smoothed RTT, twice that early in slow start; windows above 2^20 segments
 * count as 2^20. Two roundings make it low by at most a part in 275,000 (2 segments of 1000 bytes, 1 s) and a byte.
 */
INLINE void pace(struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (tp->srtt_us == 0)
        return;
    __u64 bytes = (__u64)(tp->mss_cache + HEADERS) << (tp->snd_cwnd < tp->snd_ssthresh / 2);
    __u64 window = min_u64(s->fraction, ONE << SHIFT) * bytes;
    /* `srtt_us` is in eighths, and a rate of 2^50 / 2^20 * 8000 bytes per second is out of reach. */
    __u64 each_8000th = min_u64(window * 1000 / tp->srtt_us, 1ULL << 50);
    sk->sk_pacing_rate = max_u64((each_8000th * 8000) >> SHIFT, 1);
}

HOOK(void, prague_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    s->fraction = (__u64)tp->snd_cwnd << SHIFT;
    s->alpha = ONE << SHIFT_G;
    s->alpha_at = now_ns();
    s->reduced_at = 0;
    s->round_end = tp->snd_nxt;
    s->round_delivered = tp->delivered;
    s->round_marked = tp->delivered_ce;
    s->delivered = tp->delivered;
    s->marked = tp->delivered_ce;
    s->rounds = 0;
    s->increase = ONE;
    s->saw_mark = false;
    s->in_loss = false;
    s->undoable = false;
    echo_begins(&s->echo, sk);
    if (sk->sk_pacing_status == SK_PACING_NONE)
        sk->sk_pacing_status = SK_PACING_NEEDED;
    pace(sk);
}

HOOK(void, prague_cong_control, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (phase_of(sk) == TCP_CA_OPEN)
        s->in_loss = false;
    update_window(s, tp, tp->delivered - s->delivered, tp->delivered_ce - s->marked);
    s->delivered = tp->delivered;
    s->marked = tp->delivered_ce;
    update_alpha(s, tp);
    pace(sk);
}

/* Halves the fractional window for a loss. */
INLINE void enter_loss(struct state *s, struct tcp_sock *tp)
{
    s->prior_fraction = s->fraction;
    s->prior_cwnd = tp->snd_cwnd;
    s->undoable = true;
    s->fraction = max_u64(s->fraction - s->fraction / 2, ONE);
    s->in_loss = true;
    update_increase(s, tp);
}

/* Reduces the fractional window by half of the share of marks; a scaled flow does so once a target round trip. */
INLINE void enter_reduction(struct state *s, struct tcp_sock *tp)
{
    __u64 now = now_ns();
    bool again = s->reduced_at && now - s->reduced_at < target_us(tp) * NSEC_PER_USEC;
    if (again && scales(s, tp))
        return;
    s->reduced_at = now;
    __u64 cut = ((s->alpha >> SHIFT_G) * min_u64(s->fraction, ONE << (SHIFT + 3)) + ONE) >> (SHIFT + 1);
    s->fraction = s->fraction > cut ? max_u64(s->fraction - cut, ONE) : ONE;
}

HOOK(void, prague_set_state, struct sock *sk, __u8 new_state)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    __u8 phase = phase_of(sk);
    if (new_state == TCP_CA_LOSS) {
        /* Slow start begins at once. */
        s->in_loss = false;
        s->fraction = (__u64)tp->snd_cwnd << SHIFT;
        pace(sk);
    } else if (new_state == TCP_CA_RECOVERY && phase != TCP_CA_RECOVERY) {
        enter_loss(s, tp);
    } else if (new_state == TCP_CA_CWR && !reducing(phase)) {
        enter_reduction(s, tp);
    }
}

HOOK(void, prague_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (event == CA_EVENT_LOSS) {
        enter_loss(s, tp);
        tp->snd_ssthresh = max_u32(whole(s), MIN_WINDOW);
    } else {
        echo_event(&s->echo, sk, event);
    }
}

/* The size of a reduction is decided when the phase changes. */
HOOK(__u32, prague_ssthresh, struct sock *sk) { return tcp_sk(sk)->snd_ssthresh; }

HOOK(__u32, prague_undo_cwnd, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    s->in_loss = false;
    if (!s->undoable)
        return tp->snd_cwnd;
    s->undoable = false;
    s->fraction = max_u64(s->fraction, s->prior_fraction);
    return max_u32(tp->snd_cwnd, s->prior_cwnd);
}

HOOK(__u32, prague_min_tso_segs, struct sock *sk)
{
    __u64 packets = sk->sk_pacing_rate / (tcp_sk(sk)->mss_cache + HEADERS);
    return max_u32(packets >> BURST_SHIFT, LEAST_BURST);
}

CONTROL(prague,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .init = (void *)prague_init,
    .cong_control = (void *)prague_cong_control,
    .set_state = (void *)prague_set_state,
    .cwnd_event = (void *)prague_cwnd_event,
    .ssthresh = (void *)prague_ssthresh,
    .undo_cwnd = (void *)prague_undo_cwnd,
    .min_tso_segs = (void *)prague_min_tso_segs);
