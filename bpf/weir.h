/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The common part of all controls. Each control is the kernel form of a file in `crates/control`, which gives the sources of the
 * algorithm and the reasons. The comments here explain only the kernel's hooks and what differs in C.
 */
#pragma once

#include "kernel.h"

/* include/uapi/linux/tcp.h */
#define TCP_CA_OPEN 0
#define TCP_CA_DISORDER 1
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4

#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* include/net/tcp.h: any namespace and any user may choose the control; the control needs ECN. */
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2

/* include/net/tcp.h: the flag of in_ack_event for acknowledgements outside header prediction. */
#define CA_ACK_SLOWPATH 1

/* The type of parameters in microseconds; a lab writes them as times. */
typedef __u32 usecs;
/* The type of parameters that are rates. */
typedef __u64 bits_per_sec;
#define USEC_PER_MSEC 1000
#define NSEC_PER_USEC 1000
#define NSEC_PER_SEC 1000000000ULL

#define INLINE static inline __attribute__((always_inline))

/* The socket holds the state of a connection under a control. */
#define STATE_OF(sk) ((struct state *)((struct inet_connection_sock *)(sk))->icsk_ca_priv)
#define STATE_FITS _Static_assert(sizeof(struct state) <= 104, "the kernel keeps 104 bytes for a control")

INLINE struct tcp_sock *tcp_sk(struct sock *sk) { return (struct tcp_sock *)sk; }

INLINE __u32 min_u32(__u32 a, __u32 b) { return a < b ? a : b; }
INLINE __u32 max_u32(__u32 a, __u32 b) { return a > b ? a : b; }
INLINE __u64 min_u64(__u64 a, __u64 b) { return a < b ? a : b; }
INLINE __u64 max_u64(__u64 a, __u64 b) { return a > b ? a : b; }

/* Comparison of sequence numbers, which wrap at 32 bits. */
INLINE bool before(__u32 a, __u32 b) { return (__s32)(a - b) < 0; }
INLINE bool after(__u32 a, __u32 b) { return before(b, a); }

/* The instruction set divides only unsigned numbers. This quotient is rounded towards zero, as in C. */
INLINE __s64 divided(__s64 number, __u64 by)
{
    return number < 0 ? -(__s64)((__u64)-number / by) : (__s64)((__u64)number / by);
}
/* A quotient rounded towards minus infinity. */
INLINE __s64 divided_down(__s64 number, __u64 by)
{
    return number < 0 ? -(__s64)(((__u64)-number + by - 1) / by) : (__s64)((__u64)number / by);
}

INLINE __u8 phase_of(struct sock *sk)
{
    struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
    return BITS(icsk, icsk_ca_state);
}

/* Whether a reduction is under way (tcp_in_cwnd_reduction). */
INLINE bool reducing(__u8 phase) { return phase == TCP_CA_CWR || phase == TCP_CA_RECOVERY; }

INLINE bool in_slow_start(struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }

/* Whether the window limited sending; in slow start, half of the window in flight is enough (tcp_is_cwnd_limited). */
INLINE bool cwnd_limited(struct tcp_sock *tp)
{
    if (BITS(tp, is_cwnd_limited))
        return true;
    return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* tcp_packets_in_flight */
INLINE __u32 in_flight(struct tcp_sock *tp)
{
    return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* The threshold, or three quarters of the window if that is more (tcp_current_ssthresh). */
INLINE __u32 remembered_threshold(struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    if (reducing(phase_of(sk)))
        return tp->snd_ssthresh;
    return max_u32(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}
