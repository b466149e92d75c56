/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * CDG: the kernel form of crates/control/src/cdg.rs. A BPF control cannot request a reduction of the kernel (tcp_enter_cwr), so it
 * does a back-off itself and reduces the window within a round trip as PRR does. A reduction at once would empty the queue before
 * the skipped round ends, and the queue's return would count as a rise of the delay.
 */
#include "gradients.h"
#include "trains.h"

PARAMETER(__u32, window, 8);
PARAMETER(__u32, backoff_beta, 724);
PARAMETER(__u32, backoff_factor, 42);
PARAMETER(bool, hystart, true);
PARAMETER(enum detect, hystart_detect, both);
PARAMETER(__u32, use_ineff, 5);
PARAMETER(bool, use_shadow, true);
PARAMETER(bool, use_tolerance, false);

#define BETA_SCALE 1024
#define MIN_THRESHOLD 2U
#define TOLERANCE 64

/* State of the queue as inferred from the delays. */
enum queue { UNKNOWN, NOT_FULL, FULL, BACKING_OFF };

struct state {
    struct trains trains;
    enum queue queue;
    __u32 round_end;
    __u32 shadow;
    __u32 ineffectual;
    /* The current back-off, if `down`: the sequence number that ends it, the window at its start, and the delivered segments then. */
    __u32 down_until;
    __u32 down_from;
    __u32 delivered;
    __u32 down;
};
STATE_FITS;

STORAGE(gradients, cdg_rounds);

INLINE void forget(struct state *s, struct tcp_sock *tp)
{
    trains_begin(&s->trains);
    s->queue = UNKNOWN;
    s->round_end = tp->snd_nxt;
    s->shadow = tp->snd_cwnd;
    s->ineffectual = 0;
}

HOOK(void, cdg_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct gradients *g = STORED_NEW(cdg_rounds, sk);
    forget(s, tcp_sk(sk));
    s->down = false;
    if (g)
        gradients_begin(g, window);
}

/* RTTs measured during a reduction do not count for gradients. */
INLINE void settle(struct state *s, struct gradients *g, struct tcp_sock *tp)
{
    s->queue = UNKNOWN;
    s->round_end = tp->snd_nxt;
    gradients_skip_round(g);
}

HOOK(void, cdg_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    struct gradients *g = STORED(cdg_rounds, sk);
    if (!g)
        return;
    gradients_sample(g, sample, tp->sacked_out);
    if (s->down && after(tp->snd_una, s->down_until)) {
        s->down = false;
        tp->snd_cwnd = tp->snd_ssthresh;
        settle(s, g, tp);
    }
}

HOOK(void, cdg_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    struct gradients *g = STORED(cdg_rounds, sk);
    if (!g)
        return;
    if (event == CA_EVENT_COMPLETE_CWR) {
        settle(s, g, tp);
    } else if (event == CA_EVENT_CWND_RESTART) {
        forget(s, tp);
        gradients_begin(g, window);
    }
}

/* The kernel's own reductions end a back-off. */
HOOK(void, cdg_set_state, struct sock *sk, __u8 new_state)
{
    if (reducing(new_state) || new_state == TCP_CA_LOSS)
        STATE_OF(sk)->down = false;
}

/* Takes the gradients of a finished round. */
INLINE void take(struct state *s, const struct trend *trend)
{
    if (trend->min <= -EFFECTUAL || trend->max <= -EFFECTUAL)
        s->ineffectual = 0;
    if (!use_tolerance)
        return;
    __s32 min = div_round_closest(trend->min, TOLERANCE), max = div_round_closest(trend->max, TOLERANCE);
    if (min > 0 && max <= 0)
        s->queue = FULL;
    else if ((min > 0 && max > 0) || max < 0)
        s->queue = NOT_FULL;
}

/* Whether a positive gradient causes a back-off. */
INLINE bool backs_off(struct state *s, struct tcp_sock *tp, __s64 gradient)
{
    __u32 exponent = min_u64(min_u64(gradient, 0xffffffffU) * backoff_factor, 0xffffffffU);
    if (random_u32() <= negative_exponential(exponent))
        return false;
    if (use_ineff > 0) {
        s->ineffectual += 1;
        if (s->ineffectual > use_ineff)
            return false;
    }
    s->shadow = max_u32(s->shadow, tp->snd_cwnd);
    s->queue = BACKING_OFF;
    return true;
}

/* The window after a back-off. */
INLINE __u32 backed_off(__u32 cwnd)
{
    return max_u32((__u64)cwnd * min_u32(backoff_beta, BETA_SCALE) / BETA_SCALE, MIN_THRESHOLD);
}

/* The threshold of a reduction. At a loss it is half of the window, or with `use_shadow` half of the shadow window if that is more;
 * with `use_tolerance` it is the whole window while the queue is not full. */
HOOK(__u32, cdg_ssthresh, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    __u32 cwnd = tp->snd_cwnd;
    if (s->down)
        return tp->snd_ssthresh;
    if (s->queue == BACKING_OFF)
        return backed_off(cwnd);
    if (use_tolerance && s->queue == NOT_FULL)
        return cwnd;
    s->shadow = min_u32(s->shadow >> 1, cwnd);
    return max_u32(tcp_reno_ssthresh(sk), use_shadow ? s->shadow : 0);
}

INLINE void come_down(struct state *s, struct tcp_sock *tp)
{
    tp->snd_ssthresh = backed_off(tp->snd_cwnd);
    tp->snd_cwnd_cnt = 0;
    s->down_until = tp->snd_nxt;
    s->down_from = tp->snd_cwnd;
    s->delivered = tp->delivered;
    s->down = true;
}

/* The ratio of sent to delivered segments is that of the threshold to the window at the start (RFC 6937, section 3.1). */
INLINE void walk_down(struct state *s, struct tcp_sock *tp)
{
    __u64 from = s->down_from, delivered = min_u64(tp->delivered - s->delivered, from);
    __u64 sent = (tp->snd_ssthresh * delivered + from - 1) / max_u64(from, 1);
    tp->snd_cwnd = max_u64(from - delivered + sent, tp->snd_ssthresh);
}

/* Grows the window and the shadow window as Reno does. */
INLINE void grow(struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (!cwnd_limited(tp)) {
        s->shadow = min_u32(s->shadow, tp->snd_cwnd);
        return;
    }
    __u32 before = tp->snd_cwnd;
    tcp_reno_cong_avoid(sk, ack, acked);
    s->shadow += tp->snd_cwnd - before;
}

HOOK(void, cdg_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    struct gradients *g = STORED(cdg_rounds, sk);
    if (!g)
        return;
    if (s->down) {
        walk_down(s, tp);
        return;
    }
    if (hystart && in_slow_start(tp) && trains_end_start(&s->trains, hystart_detect, cwnd_limited(tp), g->round.min))
        tp->snd_ssthresh = tp->snd_cwnd;
    if (after(tp->snd_una, s->round_end) && gradients_sampled(g)) {
        struct trend trend;
        bool known = gradients_end_round(g, &trend);
        s->round_end = tp->snd_nxt;
        trains_next_round(&s->trains);
        if (known) {
            take(s, &trend);
            if (trend.gradient > 0 && backs_off(s, tp, trend.gradient)) {
                if (phase_of(sk) < TCP_CA_CWR)
                    come_down(s, tp);
                return;
            }
        }
    }
    grow(sk, ack, acked);
}

HOOK(__u32, cdg_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(cdg,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)cdg_init,
    .pkts_acked = (void *)cdg_pkts_acked,
    .set_state = (void *)cdg_set_state,
    .cwnd_event = (void *)cdg_cwnd_event,
    .cong_avoid = (void *)cdg_cong_avoid,
    .ssthresh = (void *)cdg_ssthresh,
    .undo_cwnd = (void *)cdg_undo_cwnd);
