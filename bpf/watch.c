/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Tells which packets come to the queue of a device, leave it, and are dropped by it, from tracepoints of the kernel. It is not a control, and
 * changes nothing. crates/kernel/src/watch.rs reads what it tells; crates/observe/src/sojourn.rs makes numbers of it.
 */
#include "weir.h"

#define BPF_MAP_TYPE_RINGBUF 27
/* Half a second at a million events a second. */
#define TOLD_BYTES (1 << 26)
/* include/uapi/linux/bpf.h: the reader looks by itself. */
#define BPF_RB_NO_WAKEUP 1
/* include/net/sch_generic.h: the counters of the queue are kept by processor. */
#define TCQ_F_CPUSTATS 0x20
/* What `counted` is then. */
#define UNKNOWN (~0ULL)
/* Most packets of a list that leave at once: qdisc_bulk_dequeue counts bytes, and none is shorter than a kilobyte's part of 64 kB. */
#define MOST_AT_ONCE 64
#define REASONS 4
#define HEAD_BYTES 48

enum what { CAME, LEFT, DROPPED, STARTED };

struct ns_common {
    unsigned int inum;
} FOUND_AT_LOAD;
struct net {
    struct ns_common ns;
} FOUND_AT_LOAD;
typedef struct {
    struct net *net;
} possible_net_t;
/* A counter; on machines of 64 bits it is the number alone. */
struct u64_stats {
    __u64 number;
};
struct gnet_stats_basic_sync {
    struct u64_stats packets;
} FOUND_AT_LOAD;
struct gnet_stats_queue {
    __u32 drops;
} FOUND_AT_LOAD;
struct Qdisc {
    unsigned int flags;
    struct gnet_stats_basic_sync bstats;
    struct gnet_stats_queue qstats;
} FOUND_AT_LOAD;
struct net_device {
    int ifindex;
    possible_net_t nd_net;
} FOUND_AT_LOAD;
struct netdev_queue {
    struct net_device *dev;
} FOUND_AT_LOAD;
struct skb_shared_info {
    unsigned short gso_segs;
} FOUND_AT_LOAD;
struct sk_buff {
    struct sk_buff *next;
    struct net_device *dev;
    unsigned int len;
    __u16 network_header;
    unsigned char *head;
    unsigned int end;
} FOUND_AT_LOAD;

/* What is observed, written before the programs are loaded; and how many events found no room. */
struct {
    __u64 reasons[REASONS];
    __u64 lost;
    __u32 index;
    __u32 namespace;
} watched SEC(".data") = { { 0 }, 0, 0, 0 };

/* Little-endian words, as `Told` in watch.rs reads them. Times are in nanoseconds of CLOCK_MONOTONIC. */
struct event {
    __u64 at;
    __u64 packet;
    /* Of a packet that left: what the queue has counted, with it. */
    __u64 counted;
    __u32 what;
    /* Of a packet that was dropped: the reason. Of one that left: the drops that the queue has counted. */
    __u32 reason;
    __u32 segments;
    __u32 bytes;
    __u8 head[HEAD_BYTES];
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, TOLD_BYTES);
} told SEC(".maps");

INLINE bool is_watched(struct net_device *dev)
{
    if (!dev || (__u32)BPF_CORE_READ(dev, ifindex) != watched.index)
        return false;
    return BPF_CORE_READ(dev, nd_net.net, ns.inum) == watched.namespace;
}

INLINE void tell(struct sk_buff *skb, enum what what, __u32 reason, __u64 counted)
{
    struct event event = { .what = what, .reason = reason, .counted = counted };
    unsigned char *head = BPF_CORE_READ(skb, head);
    struct skb_shared_info *shared = (void *)(head + BPF_CORE_READ(skb, end));

    event.at = bpf_ktime_get_ns();
    event.packet = (__u64)skb;
    event.segments = BPF_CORE_READ(shared, gso_segs);
    event.bytes = BPF_CORE_READ(skb, len);
    bpf_probe_read_kernel(event.head, HEAD_BYTES, head + BPF_CORE_READ(skb, network_header));
    if (bpf_ringbuf_output(&told, &event, sizeof(event), BPF_RB_NO_WAKEUP))
        __sync_fetch_and_add(&watched.lost, 1);
}

/* net_dev_queue(skb): right before the queue is asked to take the packet. */
SEC("tp_btf/net_dev_queue") int packet_came(__u64 *context)
{
    struct sk_buff *skb = (void *)context[0];
    if (is_watched(BPF_CORE_READ(skb, dev)))
        tell(skb, CAME, 0, UNKNOWN);
    return 0;
}

/* qdisc_dequeue(qdisc, txq, packets, skb): with no packet after a vain attempt, and with several in a list. */
SEC("tp_btf/qdisc_dequeue") int packet_left(__u64 *context)
{
    struct Qdisc *qdisc = (void *)context[0];
    struct netdev_queue *queue = (void *)context[1];
    int packets = (int)context[2];
    struct sk_buff *skb = (void *)context[3];
    if (packets <= 0 || !skb || !is_watched(BPF_CORE_READ(queue, dev)))
        return 0;
    bool is_known = !(BPF_CORE_READ(qdisc, flags) & TCQ_F_CPUSTATS);
    __u64 counted = UNKNOWN;
    if (is_known)
        BPF_CORE_READ_INTO(&counted, qdisc, bstats.packets);
    __u32 drops = BPF_CORE_READ(qdisc, qstats.drops);
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        tell(skb, LEFT, drops, counted);
        skb = BPF_CORE_READ(skb, next);
        if (!skb || i + 1 >= packets)
            break;
    }
    return 0;
}

/* kfree_skb(skb, location, reason, ..): packets are dropped everywhere, so those of a queue are told by the reason. */
SEC("tp_btf/kfree_skb") int packet_dropped(__u64 *context)
{
    struct sk_buff *skb = (void *)context[0];
    __u32 reason = (__u32)context[2];
    if (reason >= 64 * REASONS || !(watched.reasons[(reason / 64) & (REASONS - 1)] >> (reason % 64) & 1))
        return 0;
    if (is_watched(BPF_CORE_READ(skb, dev)))
        tell(skb, DROPPED, reason, UNKNOWN);
    return 0;
}

/* net_dev_start_xmit(skb, dev): of interest where a packet may pass an empty queue, which tells nothing then. */
SEC("tp_btf/net_dev_start_xmit") int packet_started(__u64 *context)
{
    struct sk_buff *skb = (void *)context[0];
    struct net_device *dev = (void *)context[1];
    if (is_watched(dev))
        tell(skb, STARTED, 0, UNKNOWN);
    return 0;
}

char licence[] SEC("license") = "Dual MIT/GPL";
