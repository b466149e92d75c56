/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* TCP-LP: the kernel form of crates/control/src/low_priority.rs. */
#include "absolute.h"
#include "delay.h"

enum reading { kernel, paper };

PARAMETER(__u32, threshold, 15);
PARAMETER(__u32, inference, 3);
PARAMETER(enum reading, reading, kernel);

/* Delays of the article: of the whole connection, in milliseconds relative to the first. */
struct relative {
    struct one_way way;
    __s64 least;
    __s64 most;
    /* The average delay times 8. */
    __s32 average;
    __u8 known;
};

struct state {
    struct absolute absolute;
    /* When the last sign of congestion reduced the window, by the clock of the timestamps, and how long the window is then held. */
    __u32 last_drop;
    __u32 held_for;
    struct relative relative;
    __u8 dropped;
    __u8 inferring;
};
STATE_FITS;

HOOK(void, lp_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    absolute_begins(&s->absolute);
    s->relative.known = false;
    s->held_for = 0;
    s->dropped = false;
    s->inferring = false;
}

INLINE void relative_sample(struct relative *relative, struct tcp_sock *tp)
{
    __s64 delay = one_way_sample(&relative->way, relative->known, tp);
    if (!relative->known) {
        relative->known = true;
        relative->least = delay;
        relative->most = delay;
        relative->average = delay * (1 << AVERAGE_SHIFT);
        return;
    }
    relative->least = delay < relative->least ? delay : relative->least;
    relative->most = delay > relative->most ? delay : relative->most;
    relative->average += delay - (relative->average >> AVERAGE_SHIFT);
}

/* Whether the average is above `percent` of the range; both sides are multiplied by 100. */
INLINE bool relative_is_above(struct relative *relative, __u32 percent)
{
    __s64 limit = 100 * relative->least + (__s64)percent * (relative->most - relative->least);
    return relative->known && 100LL * relative->average > limit * (1 << AVERAGE_SHIFT);
}

/* Whether there is a sign of congestion. By the article slow start finds the range, and a sign counts once a round trip. */
INLINE bool congested(struct state *s, struct tcp_sock *tp)
{
    if (reading == kernel)
        return absolute_is_above(&s->absolute, threshold);
    bool ranged = tp->snd_ssthresh != TCP_INFINITE_SSTHRESH;
    bool news = !s->dropped || after(tp->rx_opt.rcv_tsecr, s->last_drop);
    return ranged && news && relative_is_above(&s->relative, threshold);
}

/* Reduces the window to one segment within the inference phase, else to half; not while a reduction is under way. */
INLINE void drop_window(struct state *s, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    if (reducing(phase_of(sk)))
        return;
    tp->snd_cwnd = s->inferring ? 1 : max_u32(tp->snd_cwnd >> 1, 1);
    if (reading == paper) {
        tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
        s->inferring = true;
    }
}

HOOK(void, lp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (!stamped(tp))
        return;
    __u32 now = timestamp_now(tp);
    if (sample->rtt_us >= 0) {
        if (reading == kernel)
            absolute_sample(&s->absolute, tp);
        else
            relative_sample(&s->relative, tp);
    }
    __s32 round_trip = now - tp->rx_opt.rcv_tsecr;
    if (round_trip > 0)
        s->held_for = min_u64((__u64)inference * round_trip, 0xffffffffU);
    s->inferring = s->dropped && now - s->last_drop < s->held_for;
    if (!congested(s, tp))
        return;
    drop_window(s, sk);
    s->last_drop = now;
    s->dropped = true;
    if (reading == kernel) {
        absolute_begin_range(&s->absolute);
        /* In the module 0 means that there was no sign yet. */
        s->dropped = now != 0;
    }
}

HOOK(void, lp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    if (!STATE_OF(sk)->inferring)
        tcp_reno_cong_avoid(sk, ack, acked);
}

HOOK(__u32, lp_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, lp_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(lp,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)lp_init,
    .pkts_acked = (void *)lp_pkts_acked,
    .cong_avoid = (void *)lp_cong_avoid,
    .ssthresh = (void *)lp_ssthresh,
    .undo_cwnd = (void *)lp_undo_cwnd);
