/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Declarations common to the kernel (`linux/kernel.h`) and its stand-in for user space (`host/kernel.h`). */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

struct sock;
struct ack_sample;

/* The key of maps by prefix: the number of bits that count, and the address; an IPv4 address is mapped to IPv6 (RFC 4291, 2.5.5.2). */
struct prefix {
    __u32 bits;
    __u32 address[4];
};

/* Length of the buffer for a control's name (include/net/tcp.h, TCP_CA_NAME_MAX). */
#define CONTROL_NAME 16

/* include/net/tcp.h */
enum tcp_ca_event {
    CA_EVENT_TX_START,
    CA_EVENT_CWND_RESTART,
    CA_EVENT_COMPLETE_CWR,
    CA_EVENT_LOSS,
    CA_EVENT_ECN_NO_CE,
    CA_EVENT_ECN_IS_CE,
};

struct tcp_congestion_ops {
    __u32 flags;
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    void (*set_state)(struct sock *sk, __u8 new_state);
    void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
    void (*in_ack_event)(struct sock *sk, __u32 flags);
    void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
    __u32 (*min_tso_segs)(struct sock *sk);
    /* The further arguments differ between kernels and are not used. */
    void (*cong_control)(struct sock *sk);
    __u32 (*undo_cwnd)(struct sock *sk);
    void (*init)(struct sock *sk);
    char name[16];
};
