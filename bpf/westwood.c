/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Westwood+: the kernel form of crates/control/src/westwood.rs. */
#include "path.h"

struct state {
    struct path path;
};
STATE_FITS;

HOOK(void, westwood_init, struct sock *sk) { path_begins(&STATE_OF(sk)->path); }

HOOK(void, westwood_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    path_sample(&STATE_OF(sk)->path, sample);
}

HOOK(void, westwood_in_ack_event, struct sock *sk, __u32 flags) { path_ack(&STATE_OF(sk)->path, tcp_sk(sk), flags); }

HOOK(void, westwood_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    path_event(&STATE_OF(sk)->path, sk, event);
}

HOOK(void, westwood_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { tcp_reno_cong_avoid(sk, ack, acked); }
HOOK(__u32, westwood_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
HOOK(__u32, westwood_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

CONTROL(westwood,
    .flags = TCP_CONG_NON_RESTRICTED,
    .init = (void *)westwood_init,
    .pkts_acked = (void *)westwood_pkts_acked,
    .in_ack_event = (void *)westwood_in_ack_event,
    .cwnd_event = (void *)westwood_cwnd_event,
    .cong_avoid = (void *)westwood_cong_avoid,
    .ssthresh = (void *)westwood_ssthresh,
    .undo_cwnd = (void *)westwood_undo_cwnd);
