/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The receiver's part of DCTCP: ECE follows the marks, and a delayed acknowledgement is sent before the mark changes (RFC 8257,
 * section 3.2; Linux net/ipv4/tcp_dctcp.h).
 */
#pragma once

#include "weir.h"

/* include/net/tcp.h, include/net/inet_connection_sock.h */
#define TCP_ECN_DEMAND_CWR 4
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16

struct echo {
    __u32 prior_rcv_nxt;
    __u32 marked;
};

INLINE void echo_begins(struct echo *echo, struct sock *sk)
{
    echo->prior_rcv_nxt = tcp_sk(sk)->rcv_nxt;
    echo->marked = false;
}

INLINE void demand(struct tcp_sock *tp, bool marked)
{
    if (marked)
        tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
    else
        tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

INLINE void echo_event(struct echo *echo, struct sock *sk, enum tcp_ca_event event)
{
    struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
    struct tcp_sock *tp = tcp_sk(sk);
    if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
        return;
    bool marked = event == CA_EVENT_ECN_IS_CE;
    if (echo->marked != marked) {
        if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
            demand(tp, echo->marked);
            send_ack(tp, echo->prior_rcv_nxt);
        }
        icsk->icsk_ack.pending |= ICSK_ACK_NOW;
    }
    echo->prior_rcv_nxt = tp->rcv_nxt;
    echo->marked = marked;
    demand(tp, marked);
}
