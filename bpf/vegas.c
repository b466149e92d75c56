/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Vegas: the kernel form of crates/control/src/vegas.rs. */
#include "rounds.h"

#define MIN_WINDOW 2U

PARAMETER(__u32, alpha, 2);
PARAMETER(__u32, beta, 4);
PARAMETER(__u32, gamma, 1);

struct state {
    struct rounds rounds;
};
STATE_FITS;

HOOK(void, vegas_init, struct sock *sk) { rounds_begin_anew(&STATE_OF(sk)->rounds, sk); }

HOOK(void, vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    rounds_sample(&STATE_OF(sk)->rounds, sample);
}

HOOK(void, vegas_set_state, struct sock *sk, __u8 new_state)
{
    rounds_phase(&STATE_OF(sk)->rounds, sk, new_state);
}

HOOK(void, vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    rounds_event(&STATE_OF(sk)->rounds, sk, event);
}

/* The decision of a round. */
INLINE void judge(struct sock *sk, struct rounds *rounds, __u32 acked)
{
    struct tcp_sock *tp = tcp_sk(sk);
    __u32 queued = rounds_queue(rounds, tp->snd_cwnd);
    if (in_slow_start(tp)) {
        if (queued > gamma) {
            __u64 target = rounds_target(rounds, tp->snd_cwnd);
            tp->snd_cwnd = min_u64(tp->snd_cwnd, target + 1);
            tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
        } else {
            tcp_slow_start(tp, acked);
        }
    } else if (queued > beta) {
        tp->snd_cwnd = tp->snd_cwnd - 1;
        tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
    } else if (queued < alpha) {
        tp->snd_cwnd = tp->snd_cwnd + 1;
    }
    tp->snd_cwnd = max_u32(tp->snd_cwnd, MIN_WINDOW);
    tp->snd_ssthresh = remembered_threshold(sk);
}

HOOK(void, vegas_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct rounds *rounds = &STATE_OF(sk)->rounds;
    struct tcp_sock *tp = tcp_sk(sk);
    if (!rounds->judging) {
        tcp_reno_cong_avoid(sk, ack, acked);
    } else if (after(tp->snd_una, rounds->end)) {
        if (rounds->count <= FEW)
            tcp_reno_cong_avoid(sk, ack, acked);
        else
            judge(sk, rounds, acked);
        rounds_next(rounds, tp);
    } else if (in_slow_start(tp)) {
        tcp_slow_start(tp, acked);
    }
}

HOOK(__u32, vegas_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, vegas_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(vegas,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)vegas_init,
    .pkts_acked = (void *)vegas_pkts_acked,
    .set_state = (void *)vegas_set_state,
    .cwnd_event = (void *)vegas_cwnd_event,
    .cong_avoid = (void *)vegas_cong_avoid,
    .ssthresh = (void *)vegas_ssthresh,
    .undo_cwnd = (void *)vegas_undo_cwnd);
