/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Apple's LEDBAT: the kernel form of crates/control/src/apple_ledbat.rs. */
#include "steer.h"

enum gate { _ack, _rtt };

PARAMETER(usecs, target, 100 * USEC_PER_MSEC);
PARAMETER(__u32, decrease_shift, 3);
PARAMETER(enum gate, md_gate, _ack);
PARAMETER(__u32, allowed_increase, 8);
PARAMETER(__u32, min_cwnd, 2);
PARAMETER(__u32, base_history, 2);
PARAMETER(__u32, current_filter, 2);

struct state {
    struct queuing queuing;
    /* The next cut waits until an acknowledgement passes this sequence number. */
    __u32 cut_until;
    __u32 waits;
};
STATE_FITS;

HOOK(void, apple_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    filter_forget(&s->queuing.filter);
    s->waits = false;
}

HOOK(void, apple_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    if (after(tcp_sk(sk)->snd_una, s->cut_until))
        s->waits = false;
}

INLINE __u32 cut(struct state *s, struct tcp_sock *tp)
{
    __u32 cwnd = tp->snd_cwnd;
    if (md_gate == _rtt) {
        if (s->waits)
            return cwnd;
        s->waits = true;
        s->cut_until = tp->snd_nxt;
    }
    return cwnd - (cwnd >> (decrease_shift & 31));
}

HOOK(void, apple_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    queuing_sample(&s->queuing, tp);
    if (!cwnd_limited(tp))
        return;
    acked = started(tp, acked);
    if (acked == 0)
        return;
    __u32 cwnd;
    if (filter_queuing(&s->queuing.filter, base_history, current_filter) <= target / USEC_PER_MSEC) {
        tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
        cwnd = tp->snd_cwnd;
    } else {
        cwnd = cut(s, tp);
    }
    bound(tp, cwnd, acked, allowed_increase, min_cwnd);
}

HOOK(__u32, apple_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, apple_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(apple,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)apple_init,
    .pkts_acked = (void *)apple_pkts_acked,
    .cong_avoid = (void *)apple_cong_avoid,
    .ssthresh = (void *)apple_ssthresh,
    .undo_cwnd = (void *)apple_undo_cwnd);
