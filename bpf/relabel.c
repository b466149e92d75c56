/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Changes ECT(0) to ECT(1) in the packets that leave a device from connections under one control (tc egress): Linux sends ECT(0)
 * for every control, and packets of a scalable one belong in the L4S queue (RFC 9331, section 4.1).
 */
#include "weir.h"

/* include/uapi/linux/if_ether.h, bpf.h; include/net/inet_ecn.h */
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define TCX_NEXT -1
#define ECN_MASK 3
#define ECT_1 1
#define ECT_0 2
/* Offset of the checksum in the IPv4 header, and shift of the ECN field in the second byte of the IPv6 header. */
#define IPV4_CHECKSUM 10
#define IPV6_ECN_SHIFT 4

struct __sk_buff {
    __u32 protocol;
    struct bpf_sock *sk;
} FOUND_AT_LOAD;

/* The kernel's structure behind `__sk_buff`. */
struct sk_buff {
    __u16 network_header;
    unsigned char *head;
    unsigned char *data;
} FOUND_AT_LOAD;

/* `weir.h` declares other types of these names; text after three underscores is not part of a type's name. */
struct tcp_congestion_ops___kernel {
    char name[16];
} FOUND_AT_LOAD;
struct inet_connection_sock___kernel {
    struct tcp_congestion_ops___kernel *icsk_ca_ops;
} FOUND_AT_LOAD;

/* A connection that is not established yet; its control is the listener's. */
struct request_sock {
    struct sock_common __req_common;
} FOUND_AT_LOAD;

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

/* The control's name in the kernel, written before the program is loaded. */
struct {
    __u64 words[2];
} relabelled SEC(".data") = { { 0, 0 } };

/* The connection of a packet, or its listener. */
INLINE struct inet_connection_sock___kernel *connection_of(struct bpf_sock *sk)
{
    void *connection = bpf_skc_to_tcp_sock(sk);
    struct request_sock *request = connection ? NULL : (void *)bpf_skc_to_tcp_request_sock(sk);
    return request ? (void *)BPF_CORE_READ(request, __req_common.skc_listener) : connection;
}

INLINE bool is_relabelled(struct bpf_sock *sk)
{
    struct inet_connection_sock___kernel *connection = sk ? connection_of(sk) : NULL;
    if (!connection)
        return false;
    union {
        char name[16];
        __u64 words[2];
    } control = { .words = { 0, 0 } };
    BPF_CORE_READ_STR_INTO(&control.name, connection, icsk_ca_ops, name);
    return control.words[0] == relabelled.words[0] && control.words[1] == relabelled.words[1];
}

SEC("tcx/egress") int relabel(struct __sk_buff *skb)
{
    if (!is_relabelled(skb->sk))
        return TCX_NEXT;
    struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
    __u32 header = kernel->network_header - (__u32)(kernel->data - kernel->head);
    union {
        __u8 bytes[2];
        __u16 word;
    } first;
    if (bpf_skb_load_bytes(skb, header, &first, sizeof(first)) < 0)
        return TCX_NEXT;
    bool is_ipv4 = skb->protocol == __builtin_bswap16(ETH_P_IP);
    if (!is_ipv4 && skb->protocol != __builtin_bswap16(ETH_P_IPV6))
        return TCX_NEXT;
    __u32 shift = is_ipv4 ? 0 : IPV6_ECN_SHIFT;
    if ((first.bytes[1] >> shift & ECN_MASK) != ECT_0)
        return TCX_NEXT;
    __u16 was = first.word;
    first.bytes[1] ^= (ECT_0 ^ ECT_1) << shift;
    bpf_skb_store_bytes(skb, header, &first, sizeof(first), 0);
    if (is_ipv4)
        bpf_l3_csum_replace(skb, header + IPV4_CHECKSUM, was, first.word, sizeof(was));
    return TCX_NEXT;
}

char licence[] SEC("license") = "Dual MIT/GPL";
