/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* H-TCP: the kernel form of crates/control/src/htcp.rs. Ticks are 4 ms, whatever the kernel's are. */
#include "weir.h"

#define HZ 250
#define TICK_NSEC (NSEC_PER_SEC / HZ)
#define TICK_USEC (1000000 / HZ)

#define SHIFT 7
#define ONE (1U << SHIFT)
#define BETA_MIN (1U << 6)
#define BETA_MAX 102U
#define LOW_SPEED HZ
#define MAX_STEP (20000 / TICK_USEC)
#define COARSE 3
#define SCALE_SHIFT 3
#define SCALE_MIN (1U << 2)
#define SCALE_MAX (10U << 3)
#define MEMORY_PERCENT 95
#define FRESH_ROUNDS 3
#define MIN_THRESHOLD 2U

PARAMETER(bool, use_rtt_scaling, true);
PARAMETER(bool, use_bandwidth_switch, true);

/* Times are in ticks, throughput in segments per second. */
struct state {
    __u64 last_congestion;
    __u64 since;
    __u64 throughput;
    __u64 largest;
    __u64 largest_before;
    /* The values that an undo restores: `last_congestion`, `max_rtt` and `largest_before`. */
    __u64 undo_last_congestion;
    __u64 undo_largest_before;
    __u32 undo_max_rtt;
    __u32 undoable;
    __u32 alpha;
    __u32 min_rtt;
    __u32 max_rtt;
    __u32 segments;
    __u32 acked;
    __u16 beta;
    __u16 mode_switch;
};
STATE_FITS;

INLINE __u64 ticks(void) { return now_ns() / TICK_NSEC; }

HOOK(void, htcp_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    s->alpha = ONE;
    s->beta = BETA_MIN;
    s->mode_switch = false;
    s->acked = 1;
    s->min_rtt = 0;
    s->max_rtt = 0;
    s->last_congestion = ticks();
    s->since = s->last_congestion;
    s->segments = 0;
    s->throughput = 0;
    s->largest = 0;
    s->largest_before = 0;
    s->undoable = false;
}

INLINE void measure_rtt(struct state *s, __u32 rtt, bool open)
{
    if (s->min_rtt == 0 || s->min_rtt > rtt)
        s->min_rtt = rtt;
    if (!open)
        return;
    s->max_rtt = max_u32(s->max_rtt, s->min_rtt);
    if (rtt <= s->max_rtt + MAX_STEP)
        s->max_rtt = max_u32(s->max_rtt, rtt);
}

INLINE void measure_throughput(struct state *s, __u32 cwnd, __u32 segments, __u64 now, bool undisturbed)
{
    if (!undisturbed) {
        s->segments = 0;
        s->since = now;
        return;
    }
    s->segments += segments;
    __u32 step = max_u32(s->alpha >> SHIFT, 1);
    __u64 time = now - s->since;
    if (cwnd < step || s->segments < cwnd - step || time < s->min_rtt || s->min_rtt == 0)
        return;
    __u64 rate = (__u64)s->segments * HZ / max_u64(time, 1);
    if ((now - s->last_congestion) / s->min_rtt <= FRESH_ROUNDS) {
        s->throughput = rate;
        s->largest = rate;
    } else {
        s->throughput = (3 * s->throughput + rate) / 4;
        s->largest = max_u64(s->largest, s->throughput);
    }
    s->segments = 0;
    s->since = now;
}

HOOK(void, htcp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct state *s = STATE_OF(sk);
    __u8 phase = phase_of(sk);
    bool open = phase == TCP_CA_OPEN;
    if (open)
        s->acked = sample->pkts_acked;
    if (sample->rtt_us > 0)
        measure_rtt(s, ((__u32)sample->rtt_us + TICK_USEC - 1) / TICK_USEC, open);
    if (use_bandwidth_switch)
        measure_throughput(s, tcp_sk(sk)->snd_cwnd, sample->pkts_acked, ticks(), open || phase == TCP_CA_DISORDER);
}

/* Updates `beta`, the share of the window that remains after congestion. */
INLINE void update_beta(struct state *s)
{
    if (use_bandwidth_switch) {
        __u64 now = s->largest, earlier = s->largest_before;
        s->largest_before = now;
        if (5 * now < 4 * earlier || 5 * now > 6 * earlier) {
            s->beta = BETA_MIN;
            s->mode_switch = false;
            return;
        }
    }
    if (s->mode_switch && s->min_rtt > COARSE && s->max_rtt > 0) {
        __u32 ratio = (s->min_rtt << SHIFT) / s->max_rtt;
        s->beta = min_u32(max_u32(ratio, BETA_MIN), BETA_MAX);
    } else {
        s->beta = BETA_MIN;
        s->mode_switch = true;
    }
}

/* Updates `alpha`, the growth of the window. */
INLINE void update_alpha(struct state *s, __u64 now)
{
    __u64 factor = 1;
    __u64 elapsed = now - s->last_congestion;
    if (elapsed > LOW_SPEED) {
        __u64 high = elapsed - LOW_SPEED;
        factor = 1 + (10 * high + (high / 2) * (high / 2) / HZ) / HZ;
    }
    if (use_rtt_scaling && s->min_rtt > 0) {
        __u32 scale = (HZ << SCALE_SHIFT) / (10 * s->min_rtt);
        factor = (factor << SCALE_SHIFT) / min_u32(max_u32(scale, SCALE_MIN), SCALE_MAX);
        factor = max_u64(factor, 1);
    }
    s->alpha = min_u64(2 * factor * (ONE - s->beta), 0xffffffffU);
}

HOOK(__u32, htcp_ssthresh, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    update_beta(s);
    update_alpha(s, ticks());
    if (s->min_rtt > 0 && s->max_rtt > s->min_rtt)
        s->max_rtt = s->min_rtt + (s->max_rtt - s->min_rtt) * MEMORY_PERCENT / 100;
    return max_u32(((__u64)tcp_sk(sk)->snd_cwnd * s->beta) >> SHIFT, MIN_THRESHOLD);
}

HOOK(void, htcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (!cwnd_limited(tp))
        return;
    if (in_slow_start(tp)) {
        tcp_slow_start(tp, acked);
        return;
    }
    if (((__u64)tp->snd_cwnd_cnt * s->alpha) >> SHIFT >= tp->snd_cwnd) {
        tp->snd_cwnd = tp->snd_cwnd + 1;
        tp->snd_cwnd_cnt = 0;
        update_alpha(s, ticks());
    } else {
        tp->snd_cwnd_cnt = tp->snd_cwnd_cnt + s->acked;
    }
    s->acked = 1;
}

INLINE void begin_congestion(struct state *s)
{
    s->undo_last_congestion = s->last_congestion;
    s->undo_max_rtt = s->max_rtt;
    s->undo_largest_before = s->largest_before;
    s->undoable = true;
    s->last_congestion = ticks();
}

HOOK(void, htcp_set_state, struct sock *sk, __u8 new_state)
{
    struct state *s = STATE_OF(sk);
    if (new_state == TCP_CA_LOSS || (reducing(new_state) && !reducing(phase_of(sk)))) {
        begin_congestion(s);
    } else if (new_state == TCP_CA_OPEN && s->undoable) {
        s->undoable = false;
        s->last_congestion = ticks();
    }
}

HOOK(__u32, htcp_undo_cwnd, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    if (s->undoable) {
        s->undoable = false;
        s->last_congestion = s->undo_last_congestion;
        s->max_rtt = s->undo_max_rtt;
        s->largest_before = s->undo_largest_before;
    }
    return tcp_reno_undo_cwnd(sk);
}

CONTROL(htcp,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)htcp_init,
    .pkts_acked = (void *)htcp_pkts_acked,
    .ssthresh = (void *)htcp_ssthresh,
    .cong_avoid = (void *)htcp_cong_avoid,
    .set_state = (void *)htcp_set_state,
    .undo_cwnd = (void *)htcp_undo_cwnd);
