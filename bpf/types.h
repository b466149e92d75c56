/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What the kernel (`linux/kernel.h`) and its stand-in (`host/kernel.h`) declare alike. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

struct sock;
struct ack_sample;

/* A destination as maps by prefix have it: how many bits count, and the address; one of IPv4 as IPv6 maps it (RFC 4291, 2.5.5.2). */
struct prefix {
    __u32 bits;
    __u32 address[4];
};

/* Room for a control's name (include/net/tcp.h, TCP_CA_NAME_MAX). */
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
    /* The arguments behind the first differ between kernels, and none of them is used. */
    void (*cong_control)(struct sock *sk);
    __u32 (*undo_cwnd)(struct sock *sk);
    void (*init)(struct sock *sk);
    char name[16];
};
