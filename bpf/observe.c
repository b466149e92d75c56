/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Tells what happens to the packets of one device's root queue, through tracepoints: arrivals, departures, drops, and packets that go
 * past the empty queue. It is not a control. `crates/observe/src/queue.rs` pairs the events; crates/kernel/src/observe.rs loads this.
 *
 * Where the kernel calls them (net/core/dev.c, net/sched/sch_generic.c, Linux 6.18): net_dev_queue before the queue is asked;
 * qdisc_enqueue after it has accepted a packet, which it may have split and freed by then; kfree_skb for what it refuses or drops;
 * qdisc_dequeue at each attempt, with all packets of it in a list; net_dev_start_xmit as the device gets a packet.
 */
#include "weir.h"

#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_RINGBUF 27
/* The reader looks by itself, since to wake it at each event costs more than the event. */
#define BPF_RB_NO_WAKEUP 1
#define EVENTS_BYTES (1 << 24)
/* Packets of one departure that are told; further ones count as lost. */
#define MOST_IN_LIST 128
#define ECN_MASK 3
#define IPV6_ECN_SHIFT 4
#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define READ_AT_ONCE (IPV6_HEADER + 8)

typedef struct {
    struct net *net;
} FOUND_AT_LOAD possible_net_t;

struct ns_common {
    unsigned int inum;
} FOUND_AT_LOAD;

struct net {
    struct ns_common ns;
} FOUND_AT_LOAD;

struct net_device {
    int ifindex;
    possible_net_t nd_net;
} FOUND_AT_LOAD;

struct netdev_queue {
    struct net_device *dev;
} FOUND_AT_LOAD;

struct sk_buff {
    struct sk_buff *next;
    struct net_device *dev;
    unsigned int len;
    __u16 network_header;
    unsigned int end;
    unsigned char *head;
} FOUND_AT_LOAD;

struct skb_shared_info {
    unsigned short gso_size;
    unsigned short gso_segs;
} FOUND_AT_LOAD;

struct Qdisc;

enum what { ENQUEUED, DEQUEUED, DROPPED, PASSED };

/* As `Sighting::read` reads it. */
struct event {
    __u64 at;
    __u64 packet;
    __u32 flow;
    __u32 sequence;
    __u32 bytes;
    __u16 segments;
    __u16 segment_bytes;
    __u16 reason;
    __u16 unused;
    __u8 what;
    __u8 ecn;
    __u16 unused_too;
};
_Static_assert(sizeof(struct event) == 40, "Sighting::LENGTH");

/*
 * What is observed, written before the program is loaded: the device, its network namespace, and the drop reasons of queues, a bit each.
 * `found` is the device's address, once it was seen: other devices are then told from it without a look at them.
 */
#define REASON_WORDS 4
struct {
    __u32 device;
    __u32 namespace;
    __u64 reasons[REASON_WORDS];
    __u64 found;
} observed SEC(".data") = { 0, 0, { 0 }, 0 };

/* Events that there was no room for. */
__u64 lost SEC(".bss") = 0;

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EVENTS_BYTES);
} events SEC(".maps");

/* The packet that a processor is handing to the queue, as it was before the queue has seen it. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct event);
} arriving SEC(".maps");

INLINE struct event *arrival(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&arriving, &zero);
}

/*
 * Fields are loaded directly, which costs a tenth of a call of a helper. The kernel bears a bad pointer that was loaded, but not a null
 * argument of a tracepoint, which the verifier takes for valid: the only one that may be null is the packet of qdisc_dequeue.
 */
INLINE bool is_observed(const struct net_device *dev)
{
    if (!observed.device)
        return false;
    if (observed.found)
        return (__u64)dev == observed.found;
    if ((__u32)dev->ifindex != observed.device || dev->nd_net.net->ns.inum != observed.namespace)
        return false;
    observed.found = (__u64)dev;
    return true;
}

INLINE __u32 mix(__u32 hash, __u32 word) { return (hash ^ word) * 0x9e3779b1U; }

/* Flow, sequence number and codepoint. Extension headers of IPv6 are not followed: such packets have the flow of their addresses. */
INLINE void read_headers(struct event *event, unsigned char *header)
{
    /* One call reads what most packets need. Behind a short packet is the kernel's struct skb_shared_info. */
    union {
        __u8 bytes[READ_AT_ONCE];
        __u32 words[READ_AT_ONCE / 4];
    } ip;
    __u32 ports, sequence;
    event->flow = 0;
    event->sequence = 0;
    event->ecn = 0;
    if (bpf_probe_read_kernel(&ip, sizeof(ip), header))
        return;
    __u8 version = ip.bytes[0] >> 4, protocol;
    __u32 flow = 0;
    if (version == 4) {
        __u32 length = (ip.bytes[0] & 15) * 4;
        protocol = ip.bytes[9];
        event->ecn = ip.bytes[1] & ECN_MASK;
        flow = mix(mix(flow, ip.words[3]), ip.words[4]);
        ports = ip.words[IPV4_HEADER / 4];
        sequence = ip.words[IPV4_HEADER / 4 + 1];
        if (length != IPV4_HEADER) {
            __u32 transport[2] = { 0, 0 };
            bpf_probe_read_kernel(transport, sizeof(transport), header + length);
            ports = transport[0];
            sequence = transport[1];
        }
    } else if (version == 6) {
        protocol = ip.bytes[6];
        event->ecn = ip.bytes[1] >> IPV6_ECN_SHIFT & ECN_MASK;
        for (int word = 2; word < 10; word++)
            flow = mix(flow, ip.words[word]);
        ports = ip.words[IPV6_HEADER / 4];
        sequence = ip.words[IPV6_HEADER / 4 + 1];
    } else {
        return;
    }
    event->flow = mix(mix(flow, protocol), ports);
    if (protocol == IPPROTO_TCP)
        event->sequence = bpf_ntohl(sequence);
}

INLINE void describe(struct event *event, struct sk_buff *skb)
{
    unsigned char *head = skb->head;
    struct skb_shared_info *shared = (void *)(head + skb->end);
    __u16 segment_bytes = BPF_CORE_READ(shared, gso_size);
    __u16 segments = segment_bytes ? BPF_CORE_READ(shared, gso_segs) : 1;
    event->packet = (__u64)skb;
    event->bytes = skb->len;
    event->segments = segments ? segments : 1;
    event->segment_bytes = segment_bytes;
    event->unused = 0;
    event->unused_too = 0;
    read_headers(event, head + skb->network_header);
}

/* Room for an event, without its packet. */
INLINE struct event *begun(__u8 what, __u16 reason)
{
    struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        __sync_fetch_and_add(&lost, 1);
        return NULL;
    }
    event->at = bpf_ktime_get_ns();
    event->what = what;
    event->reason = reason;
    return event;
}

INLINE void tell(struct sk_buff *skb, __u8 what, __u16 reason)
{
    struct event *event = begun(what, reason);
    if (!event)
        return;
    describe(event, skb);
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Tells of the packet that this processor is handing over, which is not handed over any more then. */
INLINE void tell_arrival(struct event *arrived, __u8 what)
{
    struct event *event = begun(what, 0);
    if (event) {
        event->packet = arrived->packet;
        event->flow = arrived->flow;
        event->sequence = arrived->sequence;
        event->bytes = arrived->bytes;
        event->segments = arrived->segments;
        event->ecn = arrived->ecn;
        event->segment_bytes = arrived->segment_bytes;
        event->unused = 0;
        event->unused_too = 0;
        bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
    }
    arrived->packet = 0;
}

SEC("tp_btf/net_dev_queue") int BPF_PROG(observe_arrival, struct sk_buff *skb)
{
    struct event *arrived = is_observed(skb->dev) ? arrival() : NULL;
    if (arrived)
        describe(arrived, skb);
    return 0;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(observe_enqueue, struct Qdisc *qdisc, const struct netdev_queue *txq, struct sk_buff *skb)
{
    if (!is_observed(txq->dev))
        return 0;
    struct event *arrived = arrival();
    if (arrived && arrived->packet == (__u64)skb)
        tell_arrival(arrived, ENQUEUED);
    else
        tell(skb, ENQUEUED, 0);
    return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(observe_dequeue, struct Qdisc *qdisc, const struct netdev_queue *txq, int packets, struct sk_buff *skb)
{
    if (packets <= 0 || !is_observed(txq->dev))
        return 0;
    /* A vain attempt has no packet. Older verifiers leave out a comparison with null, so its length is read by a helper that bears it. */
    if (!skb || !BPF_CORE_READ(skb, len))
        return 0;
    struct event *arrived = arrival();
    if (arrived)
        arrived->packet = 0;
    struct sk_buff *next = skb;
    for (int index = 0; index < MOST_IN_LIST && index < packets; index++) {
        if (!next->len)
            return 0;
        tell(next, DEQUEUED, 0);
        next = next->next;
    }
    if (packets > MOST_IN_LIST)
        __sync_fetch_and_add(&lost, packets - MOST_IN_LIST);
    return 0;
}

SEC("tp_btf/kfree_skb") int BPF_PROG(observe_drop, struct sk_buff *skb, void *location, __u32 reason)
{
    __u32 word = reason / 64;
    if (word >= REASON_WORDS)
        return 0;
    /* The bound must stand right before the access, where the verifier sees it. */
    barrier_var(word);
    if (!(observed.reasons[word & (REASON_WORDS - 1)] >> reason % 64 & 1))
        return 0;
    if (!is_observed(skb->dev))
        return 0;
    struct event *arrived = arrival();
    if (arrived && arrived->packet == (__u64)skb)
        arrived->packet = 0;
    tell(skb, DROPPED, reason);
    return 0;
}

/* A packet that the device gets while its processor is still handing it over has gone past the queue. */
SEC("tp_btf/net_dev_start_xmit") int BPF_PROG(observe_start, const struct sk_buff *skb, const struct net_device *dev)
{
    if (!is_observed(dev))
        return 0;
    struct event *arrived = arrival();
    if (arrived && arrived->packet)
        tell_arrival(arrived, PASSED);
    return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
