/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The kernel as a control sees it: the used fields of each type, whose offsets are found at load (CO-RE), the kernel's functions, and
 * the declarations of hooks, parameters and controls. `../host/kernel.h` is the same for user space.
 */
#pragma once

#include "types.h"

typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* Declarations of linux/bpf.h that bpf_helpers.h needs. */
enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_LPM_TRIE = 11, BPF_MAP_TYPE_SK_STORAGE = 24 };
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

#define FOUND_AT_LOAD __attribute__((preserve_access_index))

struct in6_addr {
    union {
        __be32 u6_addr32[4];
    } in6_u;
} FOUND_AT_LOAD;

struct sock_common {
    __be32 skc_daddr;
    unsigned short skc_family;
    struct in6_addr skc_v6_daddr;
    struct sock *skc_listener;
} FOUND_AT_LOAD;

struct sock {
    struct sock_common __sk_common;
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
    __u32 sk_pacing_status;
} FOUND_AT_LOAD;

struct inet_connection_sock {
    __u8 icsk_ca_state : 5;
    struct {
        __u8 pending;
    } icsk_ack;
    __u64 icsk_ca_priv[13];
} FOUND_AT_LOAD;

struct tcp_options_received {
    __u16 saw_tstamp : 1;
    __u32 rcv_tsval;
    __u32 rcv_tsecr;
} FOUND_AT_LOAD;

struct tcp_sock {
    __u32 rcv_nxt;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 snd_cwnd;
    __u32 snd_cwnd_cnt;
    __u32 snd_ssthresh;
    __u32 packets_out;
    __u32 sacked_out;
    __u32 lost_out;
    __u32 retrans_out;
    __u32 max_packets_out;
    __u32 lost;
    __u32 delivered;
    __u32 delivered_ce;
    __u64 tcp_mstamp;
    __u32 srtt_us;
    __u32 mss_cache;
    __u16 advmss;
    __u8 ecn_flags;
    __u8 is_cwnd_limited : 1;
    __u8 tcp_usec_ts : 1;
    struct tcp_options_received rx_opt;
} FOUND_AT_LOAD;

struct ack_sample {
    __u32 pkts_acked;
    __s32 rtt_us;
} FOUND_AT_LOAD;

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

/* A bit field whose place differs between kernels; 0 if the kernel has no such field. */
#define BITS(owner, field) (bpf_core_field_exists((owner)->field) ? BPF_CORE_READ_BITFIELD(owner, field) : 0)

/* Nanoseconds of a monotonic clock. */
static inline __u64 now_ns(void) { return bpf_ktime_get_ns(); }
static inline __u32 random_u32(void) { return bpf_get_prandom_u32(); }
static inline void send_ack(struct tcp_sock *tp, __u32 rcv_nxt) { bpf_tcp_send_ack(tp, rcv_nxt); }

/* Limits the socket's pacing rate, in bytes per second; all bits set means no limit (include/uapi/asm-generic/socket.h). */
#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
static inline void limit_pacing(struct sock *sk, __u32 rate)
{
    bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
}

/* Gives a connection to the control with this name; returns whether that succeeded. */
#define IPPROTO_TCP 6
#define TCP_CONGESTION 13
static inline bool change_control(struct sock *sk, char *name)
{
    return bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, name, CONTROL_NAME) == 0;
}

/* The destination of a connection (include/linux/socket.h). */
#define AF_INET 2
#define WHOLE_ADDRESS 128
static inline struct prefix destination_of(struct sock *sk)
{
    struct prefix to = { .bits = WHOLE_ADDRESS };
    if (sk->__sk_common.skc_family == AF_INET) {
        to.address[2] = bpf_htonl(0xffff);
        to.address[3] = sk->__sk_common.skc_daddr;
    } else {
        for (int word = 0; word < 4; word++)
            to.address[word] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[word];
    }
    return to;
}

/* A map by prefixes of destinations, and the lookup of the longest prefix that matches; NULL if none matches. */
#define MOST_PREFIXES 4096
#define BY_PREFIX(kept, name)                                                                                          \
    struct {                                                                                                           \
        __uint(type, BPF_MAP_TYPE_LPM_TRIE);                                                                           \
        __uint(max_entries, MOST_PREFIXES);                                                                            \
        __uint(map_flags, BPF_F_NO_PREALLOC);                                                                          \
        __type(key, struct prefix);                                                                                    \
        __type(value, struct kept);                                                                                    \
    } name SEC(".maps")
#define FITTING(name, prefix) bpf_map_lookup_elem(&name, prefix)

/* State for which a socket has no room; it is created and removed with the connection. NULL if there was no memory. */
#define STORAGE(kept, name)                                                                                            \
    struct {                                                                                                           \
        __uint(type, BPF_MAP_TYPE_SK_STORAGE);                                                                         \
        __uint(map_flags, BPF_F_NO_PREALLOC);                                                                          \
        __type(key, int);                                                                                              \
        __type(value, struct kept);                                                                                    \
    } name SEC(".maps")
#define STORED_NEW(name, sk) bpf_sk_storage_get(&name, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE)
#define STORED(name, sk) bpf_sk_storage_get(&name, sk, NULL, 0)

#define HOOK(result, name, ...) SEC("struct_ops") result BPF_PROG(name, ##__VA_ARGS__)
/* A parameter can be set at load and at run time; the section is `.data` also for a value of 0. */
#define PARAMETER(type, name, value) type name SEC(".data") = value
#define CONTROL(short_name, ...)                                                                                       \
    char licence[] SEC("license") = "Dual MIT/GPL";                                                                   \
    SEC(".struct_ops.link") struct tcp_congestion_ops weir_##short_name = { .name = "weir_" #short_name, __VA_ARGS__ }
