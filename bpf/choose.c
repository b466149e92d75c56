/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Gives every connection of a control group one control when it is opened or accepted (sock_ops). */
#include "weir.h"

/* include/uapi/linux/bpf.h */
#define BPF_SOCK_OPS_TCP_CONNECT_CB 3
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5
#define BPF_SOCK_OPS_NEEDS_ECN 6
/* include/uapi/linux/in.h, tcp.h */
#define IPPROTO_TCP 6
#define TCP_CONGESTION 13

struct bpf_sock_ops {
    __u32 op;
    __u32 reply;
};

/* Written before the program is loaded. */
struct {
    char control[16];
    __u32 needs_ecn;
} choice SEC(".data") = { "reno", 0 };

SEC("sockops") int choose(struct bpf_sock_ops *connection)
{
    switch (connection->op) {
    case BPF_SOCK_OPS_TCP_CONNECT_CB:
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        bpf_setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, choice.control, sizeof(choice.control));
        break;
    case BPF_SOCK_OPS_NEEDS_ECN:
        connection->reply = choice.needs_ecn;
        break;
    }
    return 1;
}

char licence[] SEC("license") = "Dual MIT/GPL";
