/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Circuit TCP: the kernel form of crates/control/src/ctcp.rs. The control sets the window at every acknowledgement (cong_control).
 * The kernel itself changes the window only at a timeout; the control restores it then.
 *
 * A connection's circuit is that of its destination in `circuits`, or else the circuit that the parameters give for all destinations.
 * It is looked up once a second, so that a circuit can be changed or removed during a transfer. A connection without a circuit is
 * given to weir_htcp, or to a control of the kernel if that is not loaded; `ss -i` then shows that control.
 */
#include "weir.h"

PARAMETER(bits_per_sec, rate, 0);
PARAMETER(usecs, rtt, 0);
PARAMETER(__u32, window_percent, 130);
PARAMETER(__u32, header_bytes, 66);
PARAMETER(bool, pace, false);
PARAMETER(bool, fall_back, true);

#define USEC_PER_SEC 1000000
#define MAX_WINDOW (1U << 30)
#define MIN_WINDOW 2U
#define PERIOD_NSEC NSEC_PER_SEC
#define LOSSY_PERCENT 1
#define LOSSY_PERIODS 10

/* include/net/sock.h */
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

/* The format in which crates/kernel/src/circuits.rs writes a circuit; the fields are the parameters. */
struct circuit {
    bits_per_sec rate;
    usecs rtt;
    __u32 window_percent;
    __u32 header_bytes;
    __u32 pace;
};
BY_PREFIX(circuit, circuits);

struct state {
    /* Start of the period in which losses are counted, if `counts`; counting begins with the first acknowledgement. */
    __u64 since;
    __u32 delivered;
    __u32 lost;
    __u32 counts;
    __u32 lossy;
    /* The circuit: the pacing rate in bytes of frames per second, or 0; the window in bytes of frames, or 0 without a circuit. */
    __u64 rate;
    __u32 window;
    __u32 headers;
    /* The window in segments, and the segment length from which it was computed. */
    __u32 cwnd;
    __u32 mss;
    /* The socket's pacing rate before the control paced it. */
    __u64 allowed;
    __u16 paces;
    /* Whether `init` was called; the kernel calls the hooks for the SYN's acknowledgement before it. */
    __u16 begun;
};
STATE_FITS;

INLINE void find_circuit(struct state *s, struct sock *sk)
{
    struct circuit all = { rate, rtt, window_percent, header_bytes, pace };
    struct prefix destination = destination_of(sk);
    struct circuit *found = FITTING(circuits, &destination);
    struct circuit *it = found ? found : &all;
    __u64 bytes = it->rate / 8 * it->rtt / USEC_PER_SEC * it->window_percent / 100;
    s->window = min_u64(bytes, MAX_WINDOW);
    s->headers = it->header_bytes;
    s->rate = it->pace ? it->rate / 8 : 0;
    s->mss = 0;
}

INLINE void stop_pacing(struct state *s, struct sock *sk)
{
    if (!s->paces)
        return;
    sk->sk_pacing_status = SK_PACING_NONE;
    sk->sk_pacing_rate = s->allowed;
    s->paces = false;
}

/* Paces the payload at its share of the circuit's rate. */
INLINE void pace_circuit(struct state *s, struct sock *sk)
{
    if (!s->rate) {
        stop_pacing(s, sk);
        return;
    }
    if (sk->sk_pacing_status == SK_PACING_NONE) {
        sk->sk_pacing_status = SK_PACING_NEEDED;
        s->allowed = sk->sk_pacing_rate;
        s->paces = true;
    }
    __u64 payload = max_u64(s->rate * s->mss / (s->mss + s->headers), 1);
    sk->sk_pacing_rate = min_u64(payload, sk->sk_max_pacing_rate);
}

INLINE void hold_window(struct state *s, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    __u32 mss = max_u32(tp->mss_cache, 1);
    if (s->mss != mss) {
        s->mss = mss;
        s->cwnd = max_u32((s->window + mss + s->headers - 1) / (mss + s->headers), MIN_WINDOW);
        pace_circuit(s, sk);
    }
    tp->snd_cwnd = s->cwnd;
}

/* Gives the connection to another control. When this returns, that control has started and our state is gone. The kernel refuses it
 * while it is giving the connection to this control; then it is tried again later. */
INLINE void leave(struct state *s, struct sock *sk)
{
    char htcp[CONTROL_NAME] = "weir_htcp", own_htcp[CONTROL_NAME] = "htcp", reno[CONTROL_NAME] = "reno";
    stop_pacing(s, sk);
    if (!change_control(sk, htcp) && !change_control(sk, own_htcp))
        change_control(sk, reno);
}

INLINE void hold_or_leave(struct state *s, struct sock *sk)
{
    if (s->window)
        hold_window(s, sk);
    else
        leave(s, sk);
}

HOOK(void, ctcp_init, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    s->counts = false;
    s->lossy = 0;
    s->paces = false;
    s->begun = true;
    find_circuit(s, sk);
    hold_or_leave(s, sk);
}

/* Ends the period if it has lasted a second; returns whether one has ended. */
INLINE bool count_losses(struct state *s, struct tcp_sock *tp, __u64 now)
{
    if (s->counts && now - s->since < PERIOD_NSEC)
        return false;
    bool ended = s->counts;
    if (ended) {
        __u64 lost = tp->lost - s->lost, delivered = tp->delivered - s->delivered;
        s->lossy = lost * 100 > (lost + delivered) * LOSSY_PERCENT ? s->lossy + 1 : 0;
    }
    s->counts = true;
    s->since = now;
    s->delivered = tp->delivered;
    s->lost = tp->lost;
    return ended;
}

HOOK(void, ctcp_cong_control, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    struct tcp_sock *tp = tcp_sk(sk);
    if (!s->begun)
        return;
    if (s->window && count_losses(s, tp, now_ns())) {
        find_circuit(s, sk);
        if (!s->window || (fall_back && s->lossy >= LOSSY_PERIODS)) {
            tp->snd_cwnd = max_u32(s->cwnd / 2, MIN_WINDOW);
            tp->snd_ssthresh = tp->snd_cwnd;
            s->window = 0;
        }
    }
    hold_or_leave(s, sk);
}

/* If the control was chosen before the connection was established, the kernel has set the window since then (tcp_init_transfer). */
HOOK(void, ctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct state *s = STATE_OF(sk);
    if (event == CA_EVENT_TX_START && s->begun)
        hold_or_leave(s, sk);
}

HOOK(void, ctcp_set_state, struct sock *sk, __u8 new_state)
{
    struct state *s = STATE_OF(sk);
    if (new_state == TCP_CA_LOSS && s->window)
        hold_window(s, sk);
}

HOOK(__u32, ctcp_ssthresh, struct sock *sk) { return TCP_INFINITE_SSTHRESH; }

HOOK(__u32, ctcp_undo_cwnd, struct sock *sk)
{
    struct state *s = STATE_OF(sk);
    return s->window ? s->cwnd : tcp_sk(sk)->snd_cwnd;
}

CONTROL(ctcp,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)ctcp_init,
    .cong_control = (void *)ctcp_cong_control,
    .cwnd_event = (void *)ctcp_cwnd_event,
    .set_state = (void *)ctcp_set_state,
    .ssthresh = (void *)ctcp_ssthresh,
    .undo_cwnd = (void *)ctcp_undo_cwnd);
