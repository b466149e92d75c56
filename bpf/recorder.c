/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Reno that records each call of its hooks, with the state of the connection, in a ring buffer, from which
 * crates/kernel/examples/record.rs makes traces. It is not a control for use, and weir does not list it.
 */
#include "weir.h"

#define BPF_MAP_TYPE_RINGBUF 27
#define TOLD_BYTES (1 << 22)

/* In the order of `HOOKS` in the example. */
enum hook { INIT, PKTS_ACKED, IN_ACK_EVENT, CONG_AVOID, SSTHRESH, SET_STATE, UNDO, CWND_EVENT };

/* Little-endian words, as `Call` in the example reads them. Times are in microseconds. */
struct call {
    __u64 connection;
    __u64 now;
    __u32 hook;
    /* The hook's arguments: segments and RTT, flags, segments, or the new state or event. */
    __u32 first;
    __u32 second;
    __u32 mss;
    __u32 delivered;
    __u32 delivered_ce;
    __u32 una;
    __u32 nxt;
    __u32 peer_ticks;
    __u32 echoed_ticks;
    __u32 srtt;
    __u32 in_flight;
    __u32 sacked;
    __u32 limited;
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, TOLD_BYTES);
} told SEC(".maps");

INLINE void tell(struct sock *sk, enum hook hook, __u32 first, __u32 second)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct tcp_options_received *options = &tp->rx_opt;
    struct call call = {
        .connection = (__u64)sk,
        .now = tp->tcp_mstamp,
        .hook = hook,
        .first = first,
        .second = second,
        .mss = tp->mss_cache,
        .delivered = tp->delivered,
        .delivered_ce = tp->delivered_ce,
        .una = tp->snd_una,
        .nxt = tp->snd_nxt,
        .peer_ticks = tp->rx_opt.rcv_tsval,
        .echoed_ticks = BITS(options, saw_tstamp) ? tp->rx_opt.rcv_tsecr : 0,
        .srtt = tp->srtt_us >> 3,
        .in_flight = in_flight(tp),
        .sacked = tp->sacked_out,
        .limited = BITS(tp, is_cwnd_limited),
    };
    bpf_ringbuf_output(&told, &call, sizeof(call), 0);
}

HOOK(void, recorder_init, struct sock *sk) { tell(sk, INIT, 0, 0); }
HOOK(void, recorder_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    tell(sk, PKTS_ACKED, sample->pkts_acked, sample->rtt_us);
}
HOOK(void, recorder_in_ack_event, struct sock *sk, __u32 flags) { tell(sk, IN_ACK_EVENT, flags, 0); }
HOOK(void, recorder_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    tell(sk, CONG_AVOID, acked, 0);
    tcp_reno_cong_avoid(sk, ack, acked);
}
HOOK(__u32, recorder_ssthresh, struct sock *sk)
{
    tell(sk, SSTHRESH, 0, 0);
    return tcp_reno_ssthresh(sk);
}
HOOK(void, recorder_set_state, struct sock *sk, __u8 new_state) { tell(sk, SET_STATE, new_state, 0); }
HOOK(__u32, recorder_undo_cwnd, struct sock *sk)
{
    tell(sk, UNDO, 0, 0);
    return tcp_reno_undo_cwnd(sk);
}
HOOK(void, recorder_cwnd_event, struct sock *sk, enum tcp_ca_event event) { tell(sk, CWND_EVENT, event, 0); }

CONTROL(recorder,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)recorder_init,
    .pkts_acked = (void *)recorder_pkts_acked,
    .in_ack_event = (void *)recorder_in_ack_event,
    .cong_avoid = (void *)recorder_cong_avoid,
    .ssthresh = (void *)recorder_ssthresh,
    .set_state = (void *)recorder_set_state,
    .undo_cwnd = (void *)recorder_undo_cwnd,
    .cwnd_event = (void *)recorder_cwnd_event);
