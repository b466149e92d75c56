"""Classes of controllers. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence

from ._weir import Value
from ._labs import LabTable

class Newreno(LabTable):
    """Additive increase, multiplicative decrease (RFC 5681, RFC 6582), as Linux tcp_reno. "newreno" in a
        lab.

    hystart_plus_plus: Whether HyStart++ (RFC 9406) may end the first slow start early; Linux does not
        have HyStart++. Takes true or false. Default: False. Example: False.
    byte_counting: Whether the window grows by all segments that an acknowledgement covers (RFC 3465).
        If not, it grows by one segment for each acknowledgement, as in RFC 5681, section 3.1, in Linux
        2.4 and in BSDs of its time. Takes true or false. Default: True. Example: True.
    """

    def __init__(
        self,
        *,
        hystart_plus_plus: bool | None = None,
        byte_counting: bool | None = None,
    ) -> None: ...

class Cubic(LabTable):
    """CUBIC (RFC 9438) with HyStart, in the integers of Linux tcp_cubic. "cubic" in a lab.

    beta: Share of the window that remains after a loss, in 1/1024 (1 to 1023). Takes a whole number
        from 1 to 1023. Default: 717. Example: 717.
    fast_convergence: Whether a flow whose windows at losses decrease lowers its plateau further, so
        that a new flow gets its share sooner. Takes true or false. Default: True. Example: True.
    tcp_friendliness: Whether the window grows at least as fast as Reno's. Takes true or false. Default:
        True. Example: True.
    bic_scale: The constant C of the cubic function, in 1/1024 of 10 segments/s³ (1 to 1024): 41 is 0.4.
        Takes a whole number from 1 to 1024. Default: 41. Example: 41.
    initial_ssthresh: Initial slow-start threshold in segments; 0 means none. It applies only if
        `hystart` is off. Takes a whole number of 0 or more. Default: 0. Example: 0.
    hystart: Whether HyStart may end slow start early. Takes true or false. Default: True. Example:
        True.
    hystart_detect: What HyStart measures. Takes "ack_train", "delay", "both". Default: "both". Example:
        "both".
    hystart_low_window: Window in segments below which HyStart does not end slow start. Takes a whole
        number of 0 or more. Default: 16. Example: 16.
    hystart_ack_delta: Longest time between two acknowledgements of a train. Takes a time with its unit
        (ns, us, ms, s, min or h). Default: "2 ms". Example: "25 ms".
    hystart_plus_plus: Whether HyStart++ (RFC 9406) may end the first slow start early; HyStart is then
        off. Linux does not have HyStart++. Takes true or false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        beta: int | None = None,
        fast_convergence: bool | None = None,
        tcp_friendliness: bool | None = None,
        bic_scale: int | None = None,
        initial_ssthresh: int | None = None,
        hystart: bool | None = None,
        hystart_detect: Literal["ack_train", "delay", "both"] | None = None,
        hystart_low_window: int | None = None,
        hystart_ack_delta: str | None = None,
        hystart_plus_plus: bool | None = None,
    ) -> None: ...

class Bbr(LabTable):
    """BBR version 1: a model of the path's rate and RTT, in the integers of Linux tcp_bbr. "bbr" in a lab.
    """

    ...

class Dctcp(LabTable):
    """DCTCP (RFC 8257): reduces its window by the share of marked segments; in the integers of Linux
        tcp_dctcp. "dctcp" in a lab.

    dctcp_shift_g: Weight of the newest window in the share of marks, as a power of 1/2: g is
        1/2^shift_g (0 to 10). RFC 8257, section 4.2, recommends 1/16. Takes a whole number from 0 to
        10. Default: 4. Example: 4.
    dctcp_alpha_on_init: Initial alpha, the smoothed share of marked segments, in 1/1024 (0 to 1024).
        With 1024 the first mark halves the window. Takes a whole number from 0 to 1024. Default: 1024.
        Example: 1024.
    alpha_to_zero: Whether alpha falls to zero at once when it is below 2^shift_g, as in Linux since 4.4
        (commit c80dbe046129, "allow dctcp alpha to drop to zero"). It then restarts from zero each
        window, and stays below 2^shift_g as long as less than a quarter of the segments is marked (with
        g = 1/16). If not, it stops falling at 2^shift_g - 1, as in Linux 3.18 to 4.3. Takes true or
        false. Default: True. Example: True.
    """

    def __init__(
        self,
        *,
        dctcp_shift_g: int | None = None,
        dctcp_alpha_on_init: int | None = None,
        alpha_to_zero: bool | None = None,
    ) -> None: ...

class Prague(LabTable):
    """TCP Prague (draft-briscoe-iccrg-prague-congestion-control): DCTCP for L4S. "prague" in a lab.

    rtt_scaling: How growth is made independent of the round trip. Takes "none", "rate", "scalable",
        "additive". Default: "rate". Example: "rate".
    rtt_target: Target round trip: a flow with a shorter one behaves as if it had this one. 0 switches
        scaling off. Takes a time with its unit (ns, us, ms, s, min or h). Default: "25 ms". Example:
        "25 ms".
    rtt_transition: Number of rounds after slow start before growth is scaled: short flows keep the fast
        growth of their short round trip. Takes a whole number of 0 or more. Default: 500. Example: 500.
    """

    def __init__(
        self,
        *,
        rtt_scaling: Literal["none", "rate", "scalable", "additive"] | None = None,
        rtt_target: str | None = None,
        rtt_transition: int | None = None,
    ) -> None: ...

class Htcp(LabTable):
    """H-TCP (draft-leith-tcp-htcp-06), in the integers of Linux tcp_htcp. "htcp" in a lab.

    use_rtt_scaling: Whether growth is scaled by the RTT relative to 100 ms, by a factor of 0.1 to 2, so
        that flows of different RTT grow alike. Takes true or false. Default: True. Example: True.
    use_bandwidth_switch: Whether a congestion halves the window, whatever the RTTs, if the throughput
        has changed by more than a fifth since the last one. Takes true or false. Default: True.
        Example: True.
    """

    def __init__(
        self,
        *,
        use_rtt_scaling: bool | None = None,
        use_bandwidth_switch: bool | None = None,
    ) -> None: ...

class Vegas(LabTable):
    """TCP Vegas: keeps a few segments in the queue, estimated from the RTT; in the integers of Linux
        tcp_vegas. "vegas" in a lab.

    alpha: The window grows while fewer segments than this are in the queue. Takes a whole number of 0
        or more. Default: 2. Example: 2.
    beta: The window shrinks while more segments than this are in the queue. Takes a whole number of 0
        or more. Default: 4. Example: 4.
    gamma: Slow start ends when more segments than this are in the queue. Takes a whole number of 0 or
        more. Default: 1. Example: 1.
    """

    def __init__(
        self,
        *,
        alpha: int | None = None,
        beta: int | None = None,
        gamma: int | None = None,
    ) -> None: ...

class Nice(LabTable):
    """TCP Nice: Vegas that halves its window when the RTT is high, to as little as two segments in 96
        round trips. "nice" in a lab.

    alpha: The window grows while fewer segments than this are in the queue. Takes a whole number of 0
        or more. Default: 1. Example: 1.
    beta: The window shrinks while more segments than this are in the queue. Takes a whole number of 0
        or more. Default: 3. Example: 3.
    gamma: Slow start ends when more segments than this are in the queue. Takes a whole number of 0 or
        more. Default: 1. Example: 1.
    threshold: Share of the RTT's range, in percent, above which an RTT is a sign of congestion. Takes a
        whole number of 0 or more. Default: 20. Example: 20.
    fraction_divisor: The window is halved if a round trip has more such signs than the window divided
        by this; 0 counts as 1. Takes a whole number of 0 or more. Default: 2. Example: 2.
    max_fwnd: Maximum number of round trips between pairs of segments while the window is below one
        segment: 96 are a window of 1/48. Takes a whole number of 0 or more. Default: 96. Example: 96.
    counter_bits: Width of the counter of signs in a round trip, 8 or 32 bits. With 8 bits, as in the
        module, a window of 512 segments or more is never halved. Takes 8, 32. Default: 8. Example: 8.
    reading: Which source is followed where they differ. The article: the largest RTT is that of the
        connection; additive increase follows a halving; a window below one segment is halved too, and a
        single RTT is enough for a decision there. The listing: the largest RTT is that of the round;
        slow start follows a halving, up to the threshold; below one segment a halving multiplies the
        round trips between pairs of segments by four, a step down adds two, and a step up subtracts
        two. Takes "paper", "listing". Default: "listing". Example: "listing".
    """

    def __init__(
        self,
        *,
        alpha: int | None = None,
        beta: int | None = None,
        gamma: int | None = None,
        threshold: int | None = None,
        fraction_divisor: int | None = None,
        max_fwnd: int | None = None,
        counter_bits: Literal[8, 32] | None = None,
        reading: Literal["paper", "listing"] | None = None,
    ) -> None: ...

class Lp(LabTable):
    """TCP-LP: halves its window when the one-way delay is high; as Linux tcp_lp or as its article. "lp" in
        a lab.

    threshold: Share of the delay's range above which the delay is a sign of congestion, in percent.
        Takes a whole number of 0 or more. Default: 15. Example: 15.
    inference: Length of the inference phase after a reduction, in round trips: the window is held, and
        a further sign of congestion reduces it to one segment. Takes a whole number of 0 or more.
        Default: 3. Example: 3.
    reading: Which source is followed where they differ: "kernel" (`tcp_lp.c`) or "paper". Takes
        "kernel", "paper". Default: "kernel". Example: "kernel".
    """

    def __init__(
        self,
        *,
        threshold: int | None = None,
        inference: int | None = None,
        reading: Literal["kernel", "paper"] | None = None,
    ) -> None: ...

class Ledbat(LabTable):
    """LEDBAT (RFC 6817): keeps the one-way queuing delay at a target. "ledbat" in a lab.

    target: Target queuing delay (RFC 6817: at most 100 ms). Takes a time with its unit (ns, us, ms, s,
        min or h). Default: "100 ms". Example: "25 ms".
    gain: Segments added each round trip when there is no queue (RFC 6817: at most 1). Takes a whole
        number of 0 or more. Default: 1. Example: 1.
    allowed_increase: Segments by which the window may exceed the flight size. Takes a whole number of 0
        or more. Default: 1. Example: 1.
    min_cwnd: The smallest window, in segments; 0 counts as 1. Takes a whole number of 0 or more.
        Default: 2. Example: 2.
    base_history: Number of minutes whose smallest delay is the base delay; 0 counts as 1 (RFC 6817
        advises 10). Takes a whole number of 0 or more. Default: 2. Example: 2.
    current_filter: Number of newest samples whose smallest is the current delay; 0 counts as 1. Takes a
        whole number of 0 or more. Default: 2. Example: 2.
    slow_start: Whether the connection begins with slow start. Takes true or false. Default: True.
        Example: True.
    """

    def __init__(
        self,
        *,
        target: str | None = None,
        gain: int | None = None,
        allowed_increase: int | None = None,
        min_cwnd: int | None = None,
        base_history: int | None = None,
        current_filter: int | None = None,
        slow_start: bool | None = None,
    ) -> None: ...

class Westwood(LabTable):
    """TCP Westwood+: after a loss the window is the estimated BDP; in the integers of Linux tcp_westwood.
        "westwood" in a lab.

    hz: Ticks per second of the kernel's clock, the unit of rates and RTTs (Linux `CONFIG_HZ`, 100 to
        1000). Takes a whole number from 100 to 1000. Default: 250. Example: 250.
    """

    def __init__(
        self,
        *,
        hz: int | None = None,
    ) -> None: ...

class WestwoodLp(LabTable):
    """TCP Westwood-LP: Westwood+ that reduces its window as soon as a few segments are queued.
        "westwood-lp" in a lab.

    beta: The constant M: the largest number of segments that may wait (0 to 1000). Takes a whole number
        from 0 to 1000. Default: 3. Example: 3.
    threshold: The formula for the number of segments that may wait. The code does not have the formula
        of 2004, which is therefore signed with either reading. Takes "2004", "2006". Default: "2006".
        Example: "2006".
    reading: Which source is followed where they differ. The papers: signed numbers, extremes of the RTT
        over all acknowledgements, the RTT at each loss, no early reduction in slow start. The code:
        unsigned numbers, extremes only over acknowledgements outside header prediction, the RTT at
        timeouts, and early reductions in slow start except the first. Takes "paper", "listing".
        Default: "listing". Example: "listing".
    hz: Ticks per second of the kernel's clock, the unit of rates and RTTs (Linux `CONFIG_HZ`, 100 to
        1000). Takes a whole number from 100 to 1000. Default: 250. Example: 250.
    """

    def __init__(
        self,
        *,
        beta: int | None = None,
        threshold: Literal["2004", "2006"] | None = None,
        reading: Literal["paper", "listing"] | None = None,
        hz: int | None = None,
    ) -> None: ...

class LedbatPlusPlus(LabTable):
    """LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): keeps the RTT's queuing delay at a target, with
        periodic slowdowns. "ledbat-plus-plus" in a lab.

    target: Target queuing delay. Takes a time with its unit (ns, us, ms, s, min or h). Default: "60
        ms". Example: "25 ms".
    constant: Factor of the cut when the delay is above the target (1 to 16): the window is cut by this
        times the relative excess. Takes a whole number from 1 to 16. Default: 1. Example: 1.
    max_slower: Largest factor by which the window grows slower than Reno's (1 to 1000); it is reached
        if the base RTT is short compared with the target. Takes a whole number from 1 to 1000. Default:
        16. Example: 16.
    initial_window: Initial window in segments, if the lab's is not smaller; 0 counts as 1. Takes a
        whole number of 0 or more. Default: 2. Example: 2.
    min_cwnd: The smallest window in segments, also during a slowdown; 0 counts as 1. Takes a whole
        number of 0 or more. Default: 2. Example: 2.
    base_history: Number of minutes whose smallest RTT is the base RTT; 0 counts as 1. Takes a whole
        number of 0 or more. Default: 10. Example: 10.
    current_filter: Number of newest RTT samples whose smallest is the current RTT; 0 counts as 1. Takes
        a whole number of 0 or more. Default: 4. Example: 4.
    slowdowns: Whether there are periodic slowdowns. Takes true or false. Default: True. Example: True.
    """

    def __init__(
        self,
        *,
        target: str | None = None,
        constant: int | None = None,
        max_slower: int | None = None,
        initial_window: int | None = None,
        min_cwnd: int | None = None,
        base_history: int | None = None,
        current_filter: int | None = None,
        slowdowns: bool | None = None,
    ) -> None: ...

class AppleLedbat(LabTable):
    """Apple's LEDBAT: Reno up to a target delay; above it, reduces its window by an eighth. "apple-ledbat"
        in a lab.

    target: Queuing delay above which the window is cut. Takes a time with its unit (ns, us, ms, s, min
        or h). Default: "100 ms". Example: "25 ms".
    decrease_shift: Size of a cut: the window divided by 2 to this power (1 to 31). Takes a whole number
        from 1 to 31. Default: 3. Example: 3.
    md_gate: How often the window may be cut. The module that the thesis measured has no limit: a
        standing queue takes the window to seven segments, of which an eighth is zero, within one round
        trip. XNU cuts once a window. Takes "ack", "rtt". Default: "ack". Example: "ack".
    allowed_increase: Segments by which the window may exceed the flight size. Takes a whole number of 0
        or more. Default: 8. Example: 8.
    min_cwnd: The smallest window, in segments; 0 counts as 1. Takes a whole number of 0 or more.
        Default: 2. Example: 2.
    base_history: Number of minutes whose smallest delay is the base delay; 0 counts as 1. Takes a whole
        number of 0 or more. Default: 2. Example: 2.
    current_filter: Number of newest samples whose smallest is the current delay; 0 counts as 1. Takes a
        whole number of 0 or more. Default: 2. Example: 2.
    """

    def __init__(
        self,
        *,
        target: str | None = None,
        decrease_shift: int | None = None,
        md_gate: Literal["ack", "rtt"] | None = None,
        allowed_increase: int | None = None,
        min_cwnd: int | None = None,
        base_history: int | None = None,
        current_filter: int | None = None,
    ) -> None: ...

class Cdg(LabTable):
    """CDG: reduces its window when the delay rises, by the delay's gradient; in the integers of Linux
        tcp_cdg. "cdg" in a lab.

    window: Number of round trips over which gradients are summed; a power of two (1 to 256). Takes a
        whole number from 1 to 256. Default: 8. Example: 8.
    backoff_beta: Share of the window that remains after a back-off, in 1/1024 (0 to 1024). Takes a
        whole number from 0 to 1024. Default: 724. Example: 724.
    backoff_factor: Factor of the probability of a back-off: for gradients whose sum is `g` microseconds
        the probability is `1 - exp(-g * backoff_factor / 10^6)`. The paper's G is `1000 / (window *
        backoff_factor)`. Takes a whole number of 0 or more. Default: 42. Example: 42.
    hystart: Whether HyStart may end slow start early. Takes true or false. Default: True. Example:
        True.
    hystart_detect: What HyStart measures. Takes "ack_train", "delay", "both". Default: "both". Example:
        "both".
    use_ineff: Maximum number of successive back-offs while the delay does not fall; 0 means no limit.
        Takes a whole number of 0 or more. Default: 5. Example: 5.
    use_shadow: Whether the reduction after a loss starts from the shadow window, the window that there
        would be without back-offs. Takes true or false. Default: True. Example: True.
    use_tolerance: Whether losses are ignored while the delays indicate that the queue is not full.
        Takes true or false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        window: int | None = None,
        backoff_beta: int | None = None,
        backoff_factor: int | None = None,
        hystart: bool | None = None,
        hystart_detect: Literal["ack_train", "delay", "both"] | None = None,
        use_ineff: int | None = None,
        use_shadow: bool | None = None,
        use_tolerance: bool | None = None,
    ) -> None: ...

class Ctcp(LabTable):
    """Circuit TCP: a fixed window for a reserved circuit, without a response to losses; H-TCP without a
        circuit. "ctcp" in a lab.

    rate: The circuit's rate, at most 1000 Gbit/s. With 0 there is no circuit. Takes a rate with its
        unit (bit/s, kbit/s, Mbit/s or Gbit/s). Default: "0 bit/s". Example: "10 Mbit/s".
    rtt: The circuit's round trip, at most 10 s. With 0 there is no circuit. Takes a time with its unit
        (ns, us, ms, s, min or h). Default: "0 s". Example: "25 ms".
    window_percent: The window, in percent of rate times round trip (1 to 1000); 130 gave the highest
        throughput on every path of the thesis (3.5.1). Takes a whole number of 0 or more. Default: 130.
        Example: 130.
    header_bytes: Bytes of each segment that the circuit's rate counts in addition to the payload (0 to
        1000): 66 are the headers of Ethernet (14), IPv4 (20) and TCP with timestamps (32). Labs count
        52, unless a link has an `overhead`. Takes a whole number of 0 or more. Default: 66. Example:
        66.
    pace: Whether segments are paced at the circuit's rate. If not, the first window leaves at once and
        acknowledgements clock the rest. Takes true or false. Default: False. Example: False.
    fall_back: Whether a connection changes to H-TCP after it has lost more than 1 % in each of ten
        consecutive seconds. Takes true or false. Default: True. Example: True.
    """

    def __init__(
        self,
        *,
        rate: str | None = None,
        rtt: str | None = None,
        window_percent: int | None = None,
        header_bytes: int | None = None,
        pace: bool | None = None,
        fall_back: bool | None = None,
    ) -> None: ...

class Yield(LabTable):
    """Yield: reduces its window by the trend of the one-way delay, most when cross-traffic makes it rise.
        "yield" in a lab.

    beta: Target delay as a share of the range of delays, in percent (0 to 100). Takes a whole number
        from 0 to 100. Default: 15. Example: 15.
    min_reduction: The smallest cut: the window divided by 2 to this power (0 to 31). Takes a whole
        number from 0 to 31. Default: 5. Example: 5.
    max_reduction: The largest cut without cross-traffic: the window divided by 2 to this power (0 to
        31). Takes a whole number from 0 to 31. Default: 3. Example: 3.
    maxc_reduction: The largest cut with cross-traffic: the window divided by 2 to this power (0 to 31).
        0 cuts the window to `min_cwnd`. Takes a whole number from 0 to 31. Default: 0. Example: 0.
    ct_thresh: A rise of the delay by more than this many times the average rise is attributed to
        cross-traffic. Takes a whole number. Default: 2. Example: 2.
    hist_factor: Weight of a sample in the average delay, as a power of 1/2 (0 to 16). Takes a whole
        number from 0 to 16. Default: 2. Example: 2.
    trend_factor: Divisor of the weight of a sample in the average trend (1 to 65536). Takes a whole
        number from 1 to 65536. Default: 128. Example: 128.
    increase_threshold: Milliseconds above the average from which on a delay counts as rising. Takes a
        whole number. Default: 1. Example: 1.
    decrease_threshold: Milliseconds relative to the average up to which a delay counts as falling;
        negative values are below the average. Takes a whole number. Default: -1. Example: -1.
    min_cwnd: The smallest window, in segments; 0 counts as 1. Takes a whole number of 0 or more.
        Default: 2. Example: 2.
    reading: Which source is followed where they differ. The text and algorithms of the thesis: one
        decision each round trip, the largest delay of the connection, the next cut within its bounds.
        The code, with which the figures were measured: a decision at each acknowledgement, which resets
        the extremes and the sign of cross-traffic. Takes "paper", "listing". Default: "listing".
        Example: "listing".
    """

    def __init__(
        self,
        *,
        beta: int | None = None,
        min_reduction: int | None = None,
        max_reduction: int | None = None,
        maxc_reduction: int | None = None,
        ct_thresh: int | None = None,
        hist_factor: int | None = None,
        trend_factor: int | None = None,
        increase_threshold: int | None = None,
        decrease_threshold: int | None = None,
        min_cwnd: int | None = None,
        reading: Literal["paper", "listing"] | None = None,
    ) -> None: ...

class Copa(LabTable):
    """Copa: keeps a few packets in the queue, controlled by the delay, and ignores losses; as in the GNAT
        report or NSDI 2018. "copa" in a lab.

    variant: Which description of Copa is followed. Takes "gnat", "nsdi". Default: "gnat". Example:
        "gnat".
    delta: The reciprocal of the number of packets to keep in the queue (0.004 to 1). While `nsdi`
        competes with flows that fill buffers, delta is at most this. Takes a number from 0.004 to 1.0.
        Default: 0.5. Example: 0.5.
    probe: Variant `gnat`: whether the window is reduced for a round trip when the smallest RTT has
        risen, to find out whether the path or the flow's own queue is the cause. The GNAT software does
        not do so. Takes true or false. Default: True. Example: True.
    """

    def __init__(
        self,
        *,
        variant: Literal["gnat", "nsdi"] | None = None,
        delta: float | None = None,
        probe: bool | None = None,
    ) -> None: ...
