/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* DCTCP: the kernel form of crates/control/src/dctcp.rs. */
#include "echo.h"

#define ALPHA_SHIFT 10
#define MAX_ALPHA (1U << ALPHA_SHIFT)
#define MIN_THRESHOLD 2U

PARAMETER(__u32, dctcp_shift_g, 4);
PARAMETER(__u32, dctcp_alpha_on_init, MAX_ALPHA);
PARAMETER(bool, alpha_to_zero, true);

struct state {
    struct echo echo;
    __u32 alpha;
    __u32 observed_until;
    /* Segments delivered and marked before the observation window. */
    __u32 delivered;
    __u32 marked;
    /* The window before a loss, which an undo restores. */
    __u32 before_loss;
};
STATE_FITS;

INLINE void observe_anew(struct state *s, struct tcp_sock *tp)
{
    s->observed_until = tp->snd_nxt;
    s->delivered = tp->delivered;
    s->marked = tp->delivered_ce;
}

HOOK(void, dctcp_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    s->alpha = min_u32(dctcp_alpha_on_init, MAX_ALPHA);
    s->before_loss = 0;
    echo_begins(&s->echo, sk);
    observe_anew(s, tcp_sk(sk));
}

INLINE void update_alpha(struct state *s, __u32 delivered, __u32 marked)
{
    __u32 shift_g = min_u32(dctcp_shift_g, ALPHA_SHIFT);
    __u32 decay = s->alpha >> shift_g;
    if (decay == 0 && alpha_to_zero)
        decay = s->alpha;
    __u64 news = ((__u64)marked << (ALPHA_SHIFT - shift_g)) / max_u32(delivered, 1);
    s->alpha = min_u64(s->alpha - decay + news, MAX_ALPHA);
}

HOOK(void, dctcp_in_ack_event, struct sock *sk, __u32 flags)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (before(tp->snd_una, s->observed_until))
        return;
    update_alpha(s, tp->delivered - s->delivered, tp->delivered_ce - s->marked);
    observe_anew(s, tp);
}

/* Marks reduce the window by half of alpha. */
HOOK(__u32, dctcp_ssthresh, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    __u32 cwnd = tcp_sk(sk)->snd_cwnd;
    s->before_loss = cwnd;
    __u32 cut = ((__u64)cwnd * s->alpha) >> (ALPHA_SHIFT + 1);
    return max_u32(cwnd - cut, MIN_THRESHOLD);
}

/* A loss halves the window. */
INLINE void answer_loss(struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    STATE_OF(sk)->before_loss = tp->snd_cwnd;
    tp->snd_ssthresh = max_u32(tp->snd_cwnd >> 1, MIN_THRESHOLD);
}

HOOK(void, dctcp_set_state, struct sock *sk, __u8 new_state)
{
    if (new_state == TCP_CA_RECOVERY && phase_of(sk) != TCP_CA_RECOVERY)
        answer_loss(sk);
}

HOOK(void, dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    if (event == CA_EVENT_LOSS)
        answer_loss(sk);
    else
        echo_event(&STATE_OF(sk)->echo, sk, event);
}

HOOK(void, dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { tcp_reno_cong_avoid(sk, ack, acked); }

HOOK(__u32, dctcp_undo_cwnd, struct sock *sk)
{
    return max_u32(tcp_sk(sk)->snd_cwnd, STATE_OF(sk)->before_loss);
}

CONTROL(dctcp,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .init = (void *)dctcp_init,
    .in_ack_event = (void *)dctcp_in_ack_event,
    .ssthresh = (void *)dctcp_ssthresh,
    .set_state = (void *)dctcp_set_state,
    .cwnd_event = (void *)dctcp_cwnd_event,
    .cong_avoid = (void *)dctcp_cong_avoid,
    .undo_cwnd = (void *)dctcp_undo_cwnd);
