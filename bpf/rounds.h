/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Round-trip times for Vegas: the kernel form of crates/control/src/rtt_rounds.rs. */
#pragma once

#include "weir.h"

#define FEW 2
#define NONE_YET 0xffffffffU

struct rounds {
    /* Smallest RTT of the connection and of the round, in microseconds plus one. */
    __u32 base;
    __u32 min;
    __u32 count;
    __u32 end;
    __u32 judging;
};

INLINE void rounds_next(struct rounds *rounds, struct tcp_sock *tp)
{
    rounds->end = tp->snd_nxt;
    rounds->count = 0;
    rounds->min = NONE_YET;
}

INLINE void rounds_begin_anew(struct rounds *rounds, struct sock *sk)
{
    rounds->base = NONE_YET;
    rounds->judging = phase_of(sk) == TCP_CA_OPEN;
    rounds_next(rounds, tcp_sk(sk));
}

INLINE void rounds_sample(struct rounds *rounds, const struct ack_sample *sample)
{
    if (sample->rtt_us < 0)
        return;
    __u32 rtt = sample->rtt_us + 1;
    rounds->base = min_u32(rounds->base, rtt);
    rounds->min = min_u32(rounds->min, rtt);
    rounds->count += 1;
}

INLINE void rounds_phase(struct rounds *rounds, struct sock *sk, __u8 new_state)
{
    bool open = new_state == TCP_CA_OPEN;
    if (open && !rounds->judging)
        rounds_next(rounds, tcp_sk(sk));
    rounds->judging = open;
}

INLINE void rounds_event(struct rounds *rounds, struct sock *sk, enum tcp_ca_event event)
{
    if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
        rounds_begin_anew(rounds, sk);
}

INLINE __u64 rounds_target(struct rounds *rounds, __u32 cwnd)
{
    return (__u64)cwnd * rounds->base / max_u32(rounds->min, 1);
}

INLINE __u32 rounds_queue(struct rounds *rounds, __u32 cwnd)
{
    __u32 above = rounds->min > rounds->base ? rounds->min - rounds->base : 0;
    return min_u64((__u64)cwnd * above / max_u32(rounds->base, 1), 0xffffffffU);
}
