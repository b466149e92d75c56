/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The counterpart of `../linux/kernel.h` for a control that is compiled for user space and run by `host.c`: the same names, plain
 * types, and a clock that `host.c` sets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "types.h"

struct sock {
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
    __u32 sk_pacing_status;
};

struct inet_connection_sock {
    struct sock sk;
    __u8 icsk_ca_state;
    struct {
        __u8 pending;
    } icsk_ack;
    __u64 icsk_ca_priv[13];
};

struct tcp_options_received {
    bool saw_tstamp;
    __u32 rcv_tsval;
    __u32 rcv_tsecr;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 rcv_nxt, snd_una, snd_nxt;
    __u32 snd_cwnd, snd_cwnd_cnt, snd_ssthresh;
    __u32 prior_cwnd, prior_ssthresh;
    __u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
    __u32 lost, delivered, delivered_ce;
    __u64 tcp_mstamp;
    __u32 srtt_us, mss_cache;
    __u16 advmss;
    __u8 ecn_flags;
    bool is_cwnd_limited, tcp_usec_ts;
    struct tcp_options_received rx_opt;
};

struct ack_sample {
    __u32 pkts_acked;
    __s32 rtt_us;
};

__u32 tcp_reno_ssthresh(struct sock *sk);
__u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked);
__u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked);
__u64 now_ns(void);
__u32 random_u32(void);
void limit_pacing(struct sock *sk, __u32 rate);
void send_ack(struct tcp_sock *tp, __u32 rcv_nxt);
bool change_control(struct sock *sk, char *name);

/* There are no circuits by prefix here. */
static inline struct prefix destination_of(struct sock *sk) { return (struct prefix){ 0 }; }
#define BY_PREFIX(kept, name) static struct kept *const name = NULL
#define FITTING(name, prefix) ((void)(prefix), name)

#define STORAGE(kept, name) static struct kept name
#define STORED_NEW(name, sk) (&(name))
#define STORED(name, sk) (&(name))

#define BITS(owner, field) ((owner)->field)
#define HOOK(result, name, ...) static result name(__VA_ARGS__)

/* Parameters are found by name in a section of their own; the alignment keeps them an array, whatever the compiler's padding. */
struct parameter {
    const char *name;
    void *place;
    size_t size;
} __attribute__((aligned(32)));
#define PARAMETER(type, name, value)                                                                                   \
    static type name = value;                                                                                          \
    static struct parameter parameter_##name                                                                           \
        __attribute__((section("parameters"), used)) = { #name, &name, sizeof(name) }
#define CONTROL(short_name, ...) struct tcp_congestion_ops control = { __VA_ARGS__ }
