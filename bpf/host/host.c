/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The part of Linux's sender around a control, to compare the control's C form with its Rust form. It reads one event per line, calls
 * the hooks in the order of Linux 6.18 `net/ipv4/tcp_input.c`, and answers each line with window, threshold and pacing rate.
 * `-DCONTROL_FILE="x.c"` selects the control. Reductions take effect at once, as in the Rust form; Linux's PRR reaches the same
 * window step by step.
 *
 *   parameter NAME VALUE
 *   mss BYTES
 *   ack NOW SEGMENTS ACKED RTT SRTT CE UNA NXT TSVAL TSECR IN_FLIGHT LIMITED GROW STATE SACKED PREDICTED
 *       DRAWN LOST
 *   recovery NOW STATE | undo NOW | timeout NOW IN_FLIGHT REDUCE
 *   idle NOW IDLE RTO | transmit NOW | unused NOW USED
 *
 * Times are in microseconds (RTT -1: no sample), STATE is the kernel's number. After a control has given the connection to another,
 * each answer is zeros.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include CONTROL_FILE

extern struct parameter __start_parameters[], __stop_parameters[];
/* A control may have no parameters, but the section must exist. */
static struct parameter none_at_all __attribute__((section("parameters"), used)) = { "", NULL, 0 };

#define INITIAL_WINDOW 10U
/* Length of the timestamp option. */
#define TIMESTAMPS 12

static struct tcp_sock connection;
static struct tcp_sock *const tp = &connection;
static struct sock *const sk = (struct sock *)&connection;
static __u64 now_us;
static __u32 drawn;
/* Whether another control has the connection. */
static bool left;

/* The clock already runs when the connection begins, as in a kernel. */
__u64 now_ns(void) { return now_us * 1000; }
__u32 random_u32(void) { return drawn; }
/* The kernel uses the smaller of this rate and its own, which is left out here. */
void limit_pacing(struct sock *unused, __u32 rate) { sk->sk_pacing_rate = rate == 0xffffffffU ? 0 : rate; }
void send_ack(struct tcp_sock *unused, __u32 rcv_nxt) {}
bool change_control(struct sock *unused, char *name)
{
    left = true;
    return true;
}

/* net/ipv4/tcp_cong.c */
__u32 tcp_reno_ssthresh(struct sock *unused) { return max_u32(tp->snd_cwnd >> 1, 2); }
__u32 tcp_reno_undo_cwnd(struct sock *unused) { return max_u32(tp->snd_cwnd, tp->prior_cwnd); }

__u32 tcp_slow_start(struct tcp_sock *unused, __u32 acked)
{
    __u32 cwnd = min_u32(tp->snd_cwnd + acked, tp->snd_ssthresh);
    acked -= cwnd - tp->snd_cwnd;
    tp->snd_cwnd = cwnd;
    return acked;
}

void tcp_cong_avoid_ai(struct tcp_sock *unused, __u32 w, __u32 acked)
{
    if (tp->snd_cwnd_cnt >= w) {
        tp->snd_cwnd_cnt = 0;
        tp->snd_cwnd += 1;
    }
    tp->snd_cwnd_cnt += acked;
    if (tp->snd_cwnd_cnt >= w) {
        tp->snd_cwnd += tp->snd_cwnd_cnt / w;
        tp->snd_cwnd_cnt %= w;
    }
}

void tcp_reno_cong_avoid(struct sock *unused, __u32 ack, __u32 acked)
{
    if (!cwnd_limited(tp))
        return;
    if (in_slow_start(tp)) {
        acked = tcp_slow_start(tp, acked);
        if (!acked)
            return;
    }
    tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

/* net/ipv4/tcp_input.c, tcp_output.c */
static void event(enum tcp_ca_event event)
{
    if (control.cwnd_event)
        control.cwnd_event(sk, event);
}

static void enter(__u8 state)
{
    if (control.set_state)
        control.set_state(sk, state);
    tp->inet_conn.icsk_ca_state = state;
}

/* Saves the window for an undo of a reduction for a loss. A reduction for marks cannot be undone. */
static void remember(void)
{
    tp->prior_cwnd = tp->snd_cwnd;
    tp->prior_ssthresh = remembered_threshold(sk);
}

static void reduce(__u8 state)
{
    if (state == TCP_CA_RECOVERY)
        remember();
    tp->snd_cwnd_cnt = 0;
    tp->snd_ssthresh = control.ssthresh(sk);
    enter(state);
    if (!control.cong_control)
        tp->snd_cwnd = max_u32(tp->snd_ssthresh, 1);
}

static void undo(void)
{
    tp->snd_cwnd = control.undo_cwnd(sk);
    tp->snd_ssthresh = max_u32(tp->snd_ssthresh, tp->prior_ssthresh);
}

static void time_out(__u32 flight, bool lower)
{
    if (lower) {
        remember();
        tp->snd_ssthresh = control.ssthresh(sk);
        event(CA_EVENT_LOSS);
    }
    tp->snd_cwnd = flight + 1;
    tp->snd_cwnd_cnt = 0;
    enter(TCP_CA_LOSS);
}

static void idle(__s64 idle, __s64 rto)
{
    if (control.cong_control)
        return;
    event(CA_EVENT_CWND_RESTART);
    __u32 floor = min_u32(INITIAL_WINDOW, tp->snd_cwnd), cwnd = tp->snd_cwnd;
    tp->snd_ssthresh = remembered_threshold(sk);
    while ((idle -= rto) > 0 && cwnd > floor)
        cwnd >>= 1;
    tp->snd_cwnd = max_u32(cwnd, floor);
}

static void unused(__u32 used)
{
    used = max_u32(used, INITIAL_WINDOW);
    if (control.cong_control || used >= tp->snd_cwnd)
        return;
    tp->snd_ssthresh = remembered_threshold(sk);
    tp->snd_cwnd = (tp->snd_cwnd + used) >> 1;
}

struct ack {
    unsigned segments, acked, ce, una, nxt, tsval, tsecr, in_flight, limited, grow, state, sacked, predicted, drawn, lost;
    int rtt, srtt;
};

/* Enters the state after an acknowledgement. At a loss during a reduction for marks, the window is the one that PRR has reached. */
static void become(__u8 state, __u32 flight_before)
{
    if (state == TCP_CA_RECOVERY && tp->inet_conn.icsk_ca_state == TCP_CA_CWR && !control.cong_control) {
        tp->snd_cwnd = min_u32(tp->snd_cwnd, flight_before);
        enter(state);
        tp->snd_cwnd = max_u32(tp->snd_ssthresh, 1);
    } else if (reducing(tp->inet_conn.icsk_ca_state) && !reducing(state)) {
        event(CA_EVENT_COMPLETE_CWR);
        enter(state);
    } else if (state != tp->inet_conn.icsk_ca_state) {
        enter(state);
    }
}

static void acknowledge(const struct ack *a)
{
    tp->delivered += a->segments;
    tp->delivered_ce += a->ce;
    tp->lost += a->lost;
    tp->snd_una = a->una;
    tp->snd_nxt = a->nxt;
    tp->srtt_us = a->srtt > 0 ? (__u32)a->srtt << 3 : tp->srtt_us;
    tp->sacked_out = a->sacked;
    tp->packets_out = a->in_flight + a->sacked;
    tp->is_cwnd_limited = a->limited;
    tp->rx_opt = (struct tcp_options_received){ a->tsecr != 0, a->tsval, a->tsecr };
    drawn = a->drawn;
    struct ack_sample sample = { a->acked, a->rtt };
    if (control.pkts_acked)
        control.pkts_acked(sk, &sample);
    if (control.in_ack_event)
        control.in_ack_event(sk, a->predicted ? 0 : CA_ACK_SLOWPATH);
    become(a->state, a->in_flight + a->segments);
    if (control.cong_control)
        control.cong_control(sk);
    else if (a->grow)
        control.cong_avoid(sk, a->una, a->segments);
}

static void set_parameter(const char *name, long value)
{
    for (struct parameter *p = __start_parameters; p < __stop_parameters; p++) {
        if (strcmp(p->name, name) == 0) {
            if (p->size == 1)
                *(__u8 *)p->place = value;
            else if (p->size == 8)
                *(__s64 *)p->place = value;
            else
                *(__s32 *)p->place = value;
            return;
        }
    }
    fprintf(stderr, "no parameter %s\n", name);
    exit(2);
}

static void follow(const char *line)
{
    char word[32];
    unsigned long long now;
    int read = 0;
    if (sscanf(line, "%31s %llu %n", word, &now, &read) < 2) {
        fprintf(stderr, "not an event: %s", line);
        exit(2);
    }
    now_us = now;
    tp->tcp_mstamp = now;
    const char *rest = line + read;
    struct ack a;
    unsigned x = 0, y = 0;
    if (!strcmp(word, "ack")
        && sscanf(rest, "%u %u %d %d %u %u %u %u %u %u %u %u %u %u %u %u %u", &a.segments, &a.acked, &a.rtt, &a.srtt, &a.ce, &a.una,
                  &a.nxt, &a.tsval, &a.tsecr, &a.in_flight, &a.limited, &a.grow, &a.state, &a.sacked, &a.predicted,
                  &a.drawn, &a.lost)
               == 17)
        acknowledge(&a);
    else if (!strcmp(word, "recovery") && sscanf(rest, "%u", &x) == 1)
        reduce(x);
    else if (!strcmp(word, "undo"))
        undo();
    else if (!strcmp(word, "timeout") && sscanf(rest, "%u %u", &x, &y) == 2)
        time_out(x, y);
    else if (!strcmp(word, "idle") && sscanf(rest, "%u %u", &x, &y) == 2)
        idle(x, y);
    else if (!strcmp(word, "transmit"))
        event(CA_EVENT_TX_START);
    else if (!strcmp(word, "unused") && sscanf(rest, "%u", &x) == 1)
        unused(x);
    else {
        fprintf(stderr, "not an event: %s", line);
        exit(2);
    }
}

int main(void)
{
    char line[512], name[64];
    long value;
    bool begun = false;
    tp->snd_cwnd = INITIAL_WINDOW;
    tp->snd_ssthresh = 0x7fffffff;
    sk->sk_max_pacing_rate = ~0UL;
    /* The handshake counts as one segment. */
    tp->delivered = 1;
    now_us = 1000000;
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "parameter %63s %ld", name, &value) == 2) {
            set_parameter(name, value);
            continue;
        }
        if (sscanf(line, "mss %u", &tp->mss_cache) == 1) {
            tp->advmss = tp->mss_cache + TIMESTAMPS;
            continue;
        }
        if (!begun && control.init)
            control.init(sk);
        begun = true;
        if (left) {
            puts("0 0 0");
            continue;
        }
        follow(line);
        printf("%u %u %lu\n", tp->snd_cwnd, tp->snd_ssthresh, sk->sk_pacing_rate);
    }
    return 0;
}
