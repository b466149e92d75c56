"""Classes of queues. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence

from ._weir import Value
from ._labs import LabTable

class TailDrop(LabTable):
    """First in, first out; packets that do not fit are dropped. "tail-drop" in a lab.

    limit: How much the queue holds, beside the packet that is being sent. Takes a limit with its unit
        (packets, bytes as in "64 KiB", time at the link's rate, or bdp). Default: "1000 packets".
        Example: "1000 packets".
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
    ) -> None: ...

class Pie(LabTable):
    """Proportional integral controller enhanced (RFC 8033), with the defaults of Linux sch_pie. "pie" in a
        lab.

    limit: How much the queue holds. Takes a limit with its unit (packets, bytes as in "64 KiB", time at
        the link's rate, or bdp). Default: "1000 packets". Example: "1000 packets".
    target: Target delay. Takes a time with its unit (ns, us, ms, s, min or h). Default: "15 ms".
        Example: "25 ms".
    tupdate: How often the drop probability is updated; at least 100 us. Takes a time with its unit (ns,
        us, ms, s, min or h). Default: "15 ms". Example: "25 ms".
    alpha: Weight of the delay's deviation from the target, in 1/s (RFC 8033, section 4.2); 0 to 100.
        Takes a number. Default: 0.125. Example: 0.125.
    beta: Weight of the delay's change since the last update, in 1/s; 0 to 100. Takes a number. Default:
        1.25. Example: 1.25.
    max_burst: How long a burst may last before PIE drops packets. Takes a time with its unit (ns, us,
        ms, s, min or h). Default: "150 ms". Example: "25 ms".
    ecn: Whether ECN-capable packets are marked instead of dropped while the drop probability is at most
        `mark_ecnth`. Takes true or false. Default: True. Example: True.
    mark_ecnth: Drop probability above which ECN-capable packets too are dropped (RFC 8033, section
        5.1); 0 to 1. Takes a number. Default: 0.1. Example: 0.1.
    bytemode: Whether the drop probability of a packet is proportional to its length. Takes true or
        false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        target: str | None = None,
        tupdate: str | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        max_burst: str | None = None,
        ecn: bool | None = None,
        mark_ecnth: float | None = None,
        bytemode: bool | None = None,
    ) -> None: ...

class Step(LabTable):
    """First in, first out; packets above a threshold are marked (RFC 8257 section 4.1; the step of L4S).
        "step" in a lab.

    limit: How much the queue holds, beside the packet that is being sent. Takes a limit with its unit
        (packets, bytes as in "64 KiB", time at the link's rate, or bdp). Default: "1000 packets".
        Example: "1000 packets".
    threshold: Packets above this threshold (K) are marked. With `measure` `length`, a time means the
        bytes that the link sends in it; with `sojourn`, packets and bytes mean the time that the link
        needs for them; both at the link's initial rate. Takes a limit with its unit (packets, bytes as
        in "64 KiB", time at the link's rate, or bdp). Default: "20 packets". Example: "1000 packets".
    measure: The quantity that is compared with the threshold. Takes "length", "sojourn". Default:
        "length". Example: "length".
    drop_incapable: Whether packets above the threshold that are not ECN-capable are dropped, as by a
        switch with RED at this threshold; if not, they pass. Takes true or false. Default: False.
        Example: False.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        threshold: str | None = None,
        measure: Literal["length", "sojourn"] | None = None,
        drop_incapable: bool | None = None,
    ) -> None: ...

class Codel(LabTable):
    """Controlled delay (RFC 8289), with the defaults of Linux sch_codel. "codel" in a lab.

    limit: How much the queue holds. Takes a limit with its unit (packets, bytes as in "64 KiB", time at
        the link's rate, or bdp). Default: "1000 packets". Example: "1000 packets".
    target: Acceptable delay of a standing queue; RFC 8289, section 4.3, advises 5 % to 10 % of
        `interval`. Takes a time with its unit (ns, us, ms, s, min or h). Default: "5 ms". Example: "25
        ms".
    interval: How long the delay may stay above the target before the first signal: about the longest
        round-trip time (RFC 8289, section 4.2); at least 100 us. Takes a time with its unit (ns, us,
        ms, s, min or h). Default: "100 ms". Example: "25 ms".
    ecn: Whether ECN-capable packets are marked instead of dropped. Takes true or false. Default: True.
        Example: True.
    ce_threshold: Every ECN-capable packet with a longer sojourn than this is marked as it leaves (Linux
        `ce_threshold`, for data centres). No such marking by default. Takes a time with its unit (ns,
        us, ms, s, min or h). Example: "25 ms".
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        target: str | None = None,
        interval: str | None = None,
        ecn: bool | None = None,
        ce_threshold: str | None = None,
    ) -> None: ...

class FqCodel(LabTable):
    """Flow queueing with a CoDel for each flow (RFC 8290), with the defaults of Linux sch_fq_codel.
        "fq-codel" in a lab.

    limit: How much all buckets together hold. Takes a limit with its unit (packets, bytes as in "64
        KiB", time at the link's rate, or bdp). Default: "10240 packets". Example: "1000 packets".
    memory_limit: Maximum number of IP bytes in all buckets together, in addition to `limit`. Takes a
        size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "32 MiB". Example: "64 KiB".
    flows: Number of buckets that flows are hashed into; 1 to 65536. Takes a whole number of 0 or more.
        Default: 1024. Example: 1024.
    quantum: Bytes that a bucket may send in a turn; 256 B to 1 MiB. Takes a size with its unit (B, kB,
        KiB, MB, MiB, GB or GiB). Default: "1514 B". Example: "64 KiB".
    target: Acceptable delay of a standing queue in each bucket. Takes a time with its unit (ns, us, ms,
        s, min or h). Default: "5 ms". Example: "25 ms".
    interval: How long the delay may stay above the target before the first signal; at least 100 us.
        Takes a time with its unit (ns, us, ms, s, min or h). Default: "100 ms". Example: "25 ms".
    ecn: Whether ECN-capable packets are marked instead of dropped. Takes true or false. Default: True.
        Example: True.
    ce_threshold: Every ECN-capable packet with a longer sojourn than this is marked as it leaves. No
        such marking by default. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
    drop_batch: Maximum number of packets that are dropped at once from the fattest bucket when the
        whole queue is full, at most half of its bytes. Takes a whole number of 0 or more. Default: 64.
        Example: 64.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        memory_limit: str | None = None,
        flows: int | None = None,
        quantum: str | None = None,
        target: str | None = None,
        interval: str | None = None,
        ecn: bool | None = None,
        ce_threshold: str | None = None,
        drop_batch: int | None = None,
    ) -> None: ...

class FqPie(LabTable):
    """Flow queueing with a PIE for each flow, with the defaults of Linux sch_fq_pie. "fq-pie" in a lab.

    limit: How much all buckets together hold. Takes a limit with its unit (packets, bytes as in "64
        KiB", time at the link's rate, or bdp). Default: "10240 packets". Example: "1000 packets".
    memory_limit: Maximum number of IP bytes in all buckets together, in addition to `limit`. Takes a
        size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "32 MiB". Example: "64 KiB".
    flows: Number of buckets that flows are hashed into; 1 to 65536. Takes a whole number of 0 or more.
        Default: 1024. Example: 1024.
    quantum: Bytes that a bucket may send in a turn; 256 B to 1 MiB. Takes a size with its unit (B, kB,
        KiB, MB, MiB, GB or GiB). Default: "1514 B". Example: "64 KiB".
    target: Target delay of each bucket. Takes a time with its unit (ns, us, ms, s, min or h). Default:
        "15 ms". Example: "25 ms".
    tupdate: How often a bucket's drop probability is updated; at least 100 us. Takes a time with its
        unit (ns, us, ms, s, min or h). Default: "15 ms". Example: "25 ms".
    alpha: Weight of the delay's deviation from the target, in 1/s; 0 to 100. Takes a number. Default:
        0.125. Example: 0.125.
    beta: Weight of the delay's change since the last update, in 1/s; 0 to 100. Takes a number. Default:
        1.25. Example: 1.25.
    max_burst: How long a burst in a bucket may last before the bucket drops packets. Takes a time with
        its unit (ns, us, ms, s, min or h). Default: "150 ms". Example: "25 ms".
    ecn: Whether ECN-capable packets are marked instead of dropped while the bucket's drop probability
        is at most `ecn_prob`. Takes true or false. Default: True. Example: True.
    ecn_prob: Drop probability above which ECN-capable packets too are dropped; 0 to 1. Takes a number.
        Default: 0.1. Example: 0.1.
    bytemode: Whether the drop probability of a packet is proportional to its length. Takes true or
        false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        memory_limit: str | None = None,
        flows: int | None = None,
        quantum: str | None = None,
        target: str | None = None,
        tupdate: str | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        max_burst: str | None = None,
        ecn: bool | None = None,
        ecn_prob: float | None = None,
        bytemode: bool | None = None,
    ) -> None: ...

class Pi2(LabTable):
    """PI controller whose probability is squared for classic packets and linear for scalable ones (CoNEXT
        2016). "pi2" in a lab.

    limit: How much the queue holds. Takes a limit with its unit (packets, bytes as in "64 KiB", time at
        the link's rate, or bdp). Default: "1000 packets". Example: "1000 packets".
    target: Target delay. Takes a time with its unit (ns, us, ms, s, min or h). Default: "20 ms".
        Example: "25 ms".
    tupdate: How often the base probability p' is updated; at least 100 us. Takes a time with its unit
        (ns, us, ms, s, min or h). Default: "32 ms". Example: "25 ms".
    alpha: Weight of the delay's deviation from the target in p', in 1/s; 0 to 100. Takes a number.
        Default: 0.3125. Example: 0.3125.
    beta: Weight of the delay's change since the last update in p', in 1/s; 0 to 100. Takes a number.
        Default: 3.125. Example: 3.125.
    coupling_factor: Factor between p' and the marking probability of scalable packets; 0 to 255. Takes
        a number. Default: 2.0. Example: 2.0.
    max_probability: Largest p'; 0 to 1. Takes a number. Default: 1.0. Example: 1.0.
    ecn: Whether ECN-capable packets are marked instead of dropped. Takes true or false. Default: True.
        Example: True.
    scalable: Whether packets with ECT(1) or CE count as scalable; if not, all are classic. Takes true
        or false. Default: True. Example: True.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        target: str | None = None,
        tupdate: str | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        coupling_factor: float | None = None,
        max_probability: float | None = None,
        ecn: bool | None = None,
        scalable: bool | None = None,
    ) -> None: ...

class Dualpi2(LabTable):
    """Coupled dual queue for L4S and classic traffic (RFC 9332), with the defaults of Linux sch_dualpi2.
        "dualpi2" in a lab.

    preset: Set of parameters that gives the default of every other one. `rfc9332`: RFC 9332, appendix
        A, the defaults of Linux 6.17 and later. `thesis`: the DualPI2 of "Destruction Testing:
        Ultra-Low Delay using Dual Queue Coupled AQM" (University of Oslo, 2017), section 11.1: limit
        1000 packets, alpha 5/16, beta 50/16, time-shifted by 30 ms. `weir`: `rfc9332` with
        `step_burst`, `overload_control`, `overload_priority` and `limit_patience` switched on
        (docs/dualpi2-weir.md). Takes "rfc9332", "thesis", "weir". Default: "rfc9332". Example:
        "rfc9332".
    limit: How much both queues together hold. Takes a limit with its unit (packets, bytes as in "64
        KiB", time at the link's rate, or bdp). Default: "10000 packets". Example: "1000 packets".
    memory_limit: Maximum number of IP bytes in both queues together, in addition to `limit`. No such
        limit by default. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Example: "64
        KiB".
    target: Target delay of the classic queue. Takes a time with its unit (ns, us, ms, s, min or h).
        Default: "15 ms". Example: "25 ms".
    tupdate: How often the base probability p' is updated; at least 100 us. Takes a time with its unit
        (ns, us, ms, s, min or h). Default: "16 ms". Example: "25 ms".
    alpha: Weight of the delay's deviation from the target in p', in 1/s; 0 to 100. Takes a number.
        Default: 0.16. Example: 0.16.
    beta: Weight of the delay's change since the last update in p', in 1/s; 0 to 100. Takes a number.
        Default: 3.2. Example: 3.2.
    coupling_factor: Coupling factor k; 0 to 255. L4S packets are marked with probability k p', classic
        ones signalled with p'^2. Takes a number. Default: 2.0. Example: 2.0.
    step_thresh: Threshold above which an L4S packet is marked as it leaves. A time is compared with the
        packet's sojourn, a number of packets or bytes with the rest of the L4S queue. Takes a limit
        with its unit (packets, bytes as in "64 KiB", time at the link's rate, or bdp). Default: "1 ms".
        Example: "1000 packets".
    ramp: Width of a ramp that replaces the step: the marking probability rises from 0 at `step_thresh`
        to 1 this time above it (RFC 9332, appendix A.1, `laqm`). Only with a `step_thresh` in time.
        Takes a time with its unit (ns, us, ms, s, min or h). Default: "0 s". Example: "25 ms".
    step_burst: How much `step_thresh` is raised for a burst: for packets that leave within
        `burst_window` after the L4S queue was last empty. "0 s" raises it for none. Only with a
        `step_thresh` in time. Takes a time with its unit (ns, us, ms, s, min or h). Default: "0 s".
        Example: "25 ms".
    burst_window: How long after the L4S queue was last empty its packets count as a burst, not as a
        standing queue. Takes a time with its unit (ns, us, ms, s, min or h). Default: "5 ms". Example:
        "25 ms".
    min_qlen_step: The step does not mark an L4S packet that found fewer packets than this in the L4S
        queue. Takes a whole number of 0 or more. Default: 0. Example: 0.
    min_backlog: p' gives no signals while fewer bytes are queued than in this many packets of the MTU.
        Takes a whole number of 0 or more. Default: 2. Example: 2.
    ecn_mask: Which packets go into the L4S queue. Takes "l4s-ect", "any-ect". Default: "l4s-ect".
        Example: "l4s-ect".
    scheduler: Which queue is served next when both hold packets. Takes "wrr", "time-shifted", "strict".
        Default: "wrr". Example: "wrr".
    classic_protection: Share of the link that weighted round robin guarantees the classic queue; 0 to
        1. Takes a number. Default: 0.1. Example: 0.1.
    t_shift: The time-shifted FIFO sends a classic packet first if it has waited longer than the L4S
        packet by more than this. Takes a time with its unit (ns, us, ms, s, min or h). Default: "30
        ms". Example: "25 ms".
    drop_early: Whether p' is applied when a packet arrives, instead of when it leaves. Takes true or
        false. Default: False. Example: False.
    drop_overload: Whether L4S packets are dropped in overload, as `overload_control` says. If not, p'
        is at most 1/k, and only the limit drops L4S packets. Takes true or false. Default: True.
        Example: True.
    l_drop: L4S marking probability k p' from which the queue is overloaded; 0 to 1. Takes a number.
        Default: 1.0. Example: 1.0.
    overload_control: Which probability drops L4S packets in overload. It has no effect without
        `drop_overload`. Takes "coupled", "separate". Default: "coupled". Example: "coupled".
    overload_target: Target delay of the L4S queue for the drops of a separate controller. Takes a time
        with its unit (ns, us, ms, s, min or h). Default: "5 ms". Example: "25 ms".
    overload_priority: Which queue weighted round robin prefers while a separate controller drops from
        the L4S queue. Takes "l4s", "classic". Default: "l4s". Example: "l4s".
    limit_patience: When a full queue has dropped packets in every interval for this long, p' rises at
        once to the probability that drops as many. "0 s": never. Takes a time with its unit (ns, us,
        ms, s, min or h). Default: "0 s". Example: "25 ms".
    overload_marking: What marks the L4S packets that are not dropped in overload. Takes "coupled",
        "step". Default: "coupled". Example: "coupled".
    delay: The delay from which p' is computed. Takes "longest", "classic-first", "classic". Default:
        "longest". Example: "longest".
    """

    def __init__(
        self,
        *,
        preset: Literal["rfc9332", "thesis", "weir"] | None = None,
        limit: str | None = None,
        memory_limit: str | None = None,
        target: str | None = None,
        tupdate: str | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        coupling_factor: float | None = None,
        step_thresh: str | None = None,
        ramp: str | None = None,
        step_burst: str | None = None,
        burst_window: str | None = None,
        min_qlen_step: int | None = None,
        min_backlog: int | None = None,
        ecn_mask: Literal["l4s-ect", "any-ect"] | None = None,
        scheduler: Literal["wrr", "time-shifted", "strict"] | None = None,
        classic_protection: float | None = None,
        t_shift: str | None = None,
        drop_early: bool | None = None,
        drop_overload: bool | None = None,
        l_drop: float | None = None,
        overload_control: Literal["coupled", "separate"] | None = None,
        overload_target: str | None = None,
        overload_priority: Literal["l4s", "classic"] | None = None,
        limit_patience: str | None = None,
        overload_marking: Literal["coupled", "step"] | None = None,
        delay: Literal["longest", "classic-first", "classic"] | None = None,
    ) -> None: ...

class Red(LabTable):
    """Random early detection (Floyd and Jacobson 1993), gentle by default. "red" in a lab.

    limit: How much the queue holds. Takes a limit with its unit (packets, bytes as in "64 KiB", time at
        the link's rate, or bdp). Default: "1000 packets". Example: "1000 packets".
    min: Average queue length below which no packet is signalled. Its unit decides how the queue is
        measured: in packets if `min` is in packets or bdp, in bytes if it is in bytes or time. Takes a
        limit with its unit (packets, bytes as in "64 KiB", time at the link's rate, or bdp). Default:
        "5 packets". Example: "1000 packets".
    max: Average queue length from which every packet is signalled; with `gentle`, the signal
        probability reaches one at twice this length. At least `min`; by default three times `min`. It
        is converted to the unit of `min`. Takes a limit with its unit (packets, bytes as in "64 KiB",
        time at the link's rate, or bdp). Example: "1000 packets".
    probability: Signal probability just below `max` (max_p); 0 to 1. Takes a number. Default: 0.02.
        Example: 0.02.
    wq: Weight of the current queue length in the average (w_q); 0 to 1. Takes a number. Default: 0.002.
        Example: 0.002.
    gentle: Whether the signal probability grows from `probability` to one between `max` and twice
        `max`, instead of being one from `max` on. Takes true or false. Default: True. Example: True.
    ecn: Whether ECN-capable packets are marked instead of dropped. Takes true or false. Default: True.
        Example: True.
    harddrop: Whether ECN-capable packets too are dropped, not marked, while the average is at least
        `max`. Takes true or false. Default: False. Example: False.
    bytemode: Whether the signal probability of a packet is proportional to its length. Takes true or
        false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        min: str | None = None,
        max: str | None = None,
        probability: float | None = None,
        wq: float | None = None,
        gentle: bool | None = None,
        ecn: bool | None = None,
        harddrop: bool | None = None,
        bytemode: bool | None = None,
    ) -> None: ...

class AdaptiveRed(LabTable):
    """RED that derives its thresholds from the link and adapts its marking probability (Floyd, Gummadi and
        Shenker 2001). "adaptive-red" in a lab.

    limit: How much the queue holds. Takes a limit with its unit (packets, bytes as in "64 KiB", time at
        the link's rate, or bdp). Default: "1000 packets". Example: "1000 packets".
    target: Target of the average queueing delay. `min` is half of what the link sends in this time, at
        least 5 packets; `max` is three times `min` (section 4.3). Takes a time with its unit (ns, us,
        ms, s, min or h). Default: "5 ms". Example: "25 ms".
    probability: Initial `max_p`, the largest marking probability; 0 to 1. Takes a number. Default:
        0.02. Example: 0.02.
    interval: How often `max_p` is adapted; at least 100 us. Takes a time with its unit (ns, us, ms, s,
        min or h). Default: "500 ms". Example: "25 ms".
    ecn: Whether ECN-capable packets are marked instead of dropped. Takes true or false. Default: True.
        Example: True.
    harddrop: Whether ECN-capable packets too are dropped, not marked, while the average is at least
        `max`. Takes true or false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        limit: str | None = None,
        target: str | None = None,
        probability: float | None = None,
        interval: str | None = None,
        ecn: bool | None = None,
        harddrop: bool | None = None,
    ) -> None: ...

class StrictPriority(LabTable):
    """Bands with a queue each; the first band that can send is served (Linux sch_prio). "strict-priority"
        in a lab.

    bands: The bands, highest priority first; 1 to 16. A packet goes to the first band whose lists match
        it, or else to the last. By default L4S packets (ECT(1), CE) have priority over all others.
        Takes a list; each: a table. Default: [{'ecn': ['ect1', 'ce'], 'queue': {'kind': 'tail-drop',
        'limit': '1000 packets'}}, {'queue': {'kind': 'tail-drop', 'limit': '1000 packets'}}]. Example:
        [{'ecn': ['ect1', 'ce'], 'queue': {'kind': 'tail-drop', 'limit': '1000 packets'}}, {'queue':
        {'kind': 'tail-drop', 'limit': '1000 packets'}}].
    """

    def __init__(
        self,
        *,
        bands: Sequence[Mapping[str, Value]] | None = None,
    ) -> None: ...

class Tbf(LabTable):
    """Token bucket filter: a shaper with a rate, a burst and optionally a peak rate (Linux sch_tbf). "tbf"
        in a lab.

    rate: Long-term sending rate, counted in IP bytes plus `overhead`; at least 8 bit/s. Takes a rate
        with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Default: "10 Mbit/s". Example: "10 Mbit/s".
    burst: Size of the bucket: the bytes that the shaper may send at once after an idle time; 64 B to 1
        GiB. A packet that is larger, `overhead` included, is dropped. Takes a size with its unit (B,
        kB, KiB, MB, MiB, GB or GiB). Default: "15140 B". Example: "64 KiB".
    limit: Most bytes that may wait, `overhead` included: a size (Linux's `limit`), or a time (Linux's
        `latency`), which means the bytes that the rate sends in it plus a burst. Takes a limit with its
        unit (packets, bytes as in "64 KiB", time at the link's rate, or bdp). Default: "50 ms".
        Example: "1000 packets".
    peakrate: Rate within a burst, above `rate`. By default a burst leaves at the rate of the link.
        Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Example: "10 Mbit/s".
    mtu: Size of the bucket of `peakrate`; by default one packet of the link's MTU plus `overhead`. It
        has no effect without `peakrate`. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
        Example: "64 KiB".
    overhead: Bytes that each packet counts in addition to its IP length. Linux counts Ethernet's header
        of 14 B. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "14 B". Example:
        "64 KiB".
    timer: Tick of the timer that wakes a packet waiting for tokens, counted from the start of the run:
        4 ms in a kernel of 250 Hz without high-resolution timers. By default the timer is exact to the
        nanosecond. Tokens beyond the size of the bucket that come in during a tick are lost. Takes a
        time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
    queue: The queue in which packets wait. By default they wait first in, first out, up to `limit`;
        with a queue here, `limit` has no effect. Takes the name of a queue, or a table with its name as
        `kind` and its parameters (`weir list`). Example: "tail-drop".
    """

    def __init__(
        self,
        *,
        rate: str | None = None,
        burst: str | None = None,
        limit: str | None = None,
        peakrate: str | None = None,
        mtu: str | None = None,
        overhead: str | None = None,
        timer: str | None = None,
        queue: str | Mapping[str, Value] | None = None,
    ) -> None: ...

class Htb(LabTable):
    """Hierarchical token bucket: a shaper with classes that borrow from each other (Linux sch_htb). "htb"
        in a lab.

    classes: The classes, each after its parent. Classes of equal priority take turns in this order.
        Takes a list; each: a table. Default: [{'name': 'leaf', 'rate': '10 Mbit/s', 'burst': '1600 B',
        'cburst': '1600 B', 'prio': 0, 'queue': {'kind': 'tail-drop', 'limit': '1000 packets'}}].
        Example: [{'name': 'leaf', 'rate': '10 Mbit/s', 'burst': '1600 B', 'cburst': '1600 B', 'prio':
        0, 'queue': {'kind': 'tail-drop', 'limit': '1000 packets'}}].
    overhead: Bytes that each packet counts in addition to its IP length. Linux counts Ethernet's header
        of 14 B. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "14 B". Example:
        "64 KiB".
    direct_limit: Most packets that may wait unshaped, because no class takes them. Takes a whole number
        of 0 or more. Default: 1000. Example: 1000.
    """

    def __init__(
        self,
        *,
        classes: Sequence[Mapping[str, Value]] | None = None,
        overhead: str | None = None,
        direct_limit: int | None = None,
    ) -> None: ...

class Drr(LabTable):
    """Bands with a queue each, served by deficit round robin (Shreedhar and Varghese 1995). "drr" in a
        lab.

    bands: The bands; 1 to 16. A packet goes to the first band whose lists match it, or else to the
        last. By default L4S packets (ECT(1), CE) and all others have a band each, with equal quanta.
        Takes a list; each: a table. Default: [{'ecn': ['ect1', 'ce'], 'quantum': '1514 B', 'queue':
        {'kind': 'tail-drop', 'limit': '1000 packets'}}, {'quantum': '1514 B', 'queue': {'kind':
        'tail-drop', 'limit': '1000 packets'}}]. Example: [{'ecn': ['ect1', 'ce'], 'quantum': '1514 B',
        'queue': {'kind': 'tail-drop', 'limit': '1000 packets'}}, {'quantum': '1514 B', 'queue':
        {'kind': 'tail-drop', 'limit': '1000 packets'}}].
    """

    def __init__(
        self,
        *,
        bands: Sequence[Mapping[str, Value]] | None = None,
    ) -> None: ...
