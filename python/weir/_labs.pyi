"""Classes for the tables of labs. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence, TypedDict

from ._weir import Value

class LabTable(dict[str, Value]):
    """A table of a lab: a dict of the keys that were given. A key that is left out, or None, has the default of labs."""

class Run(LabTable):
    """How each run goes. `run` of a lab.

    duration: How long a run lasts. Takes a time with its unit (ns, us, ms, s, min or h). Default: "10
        s". Example: "25 ms".
    warmup: Time from the start of the run that metrics leave out; by default a fifth of the duration,
        and nothing if all traffic is transfers. Takes a time with its unit (ns, us, ms, s, min or h).
        Example: "25 ms".
    seed: The lab's seed: every random number follows from it. Takes a whole number of 0 or more.
        Default: 1. Example: 1.
    repeats: How often each cell of the tree is run, each time with another seed. Takes a whole number
        of 0 or more. Default: 1. Example: 1.
    windows: Named parts of the run with metrics of their own, which claims can name (`in = "NAME"`):
        each from one time to another, counted from the start of the run, `["22 s", "30 s"]`, or from
        the `start` of a traffic group, `{ from = "2 s", to = "10 s", of = "GROUP" }`. Takes a table
        whose keys are names of your choice.
    sample: Length of a sample period of the records. Takes a time with its unit (ns, us, ms, s, min or
        h). Default: "100 ms". Example: "25 ms".
    packets: Whether every packet is recorded. Takes true or false. Default: False. Example: False.
    round_trips: How RTT samples are taken: "segments" pairs each segment with the first acknowledgement
        that covers it, cumulative or selective; "acknowledgements" pairs each cumulative
        acknowledgement with the segment that it ends with, as Wireshark does. Takes "segments",
        "acknowledgements". Default: "segments". Example: "segments".
    start_jitter: Each flow starts later by a random time below this; "0 s" turns it off. Takes a time
        with its unit (ns, us, ms, s, min or h). Default: "100 ms". Example: "25 ms".
    host_jitter: A sending host delays each packet by a random time below this, without reordering:
        "auto" is the time that the group's bottleneck needs for a packet; "0 s" turns it off. Takes a
        text. Example: "auto".
    host_pauses: Times in which all hosts hold what they would send, as where other work has their
        processor: `[{ at = "10 s", for = "2 ms" }]`. Datagrams that are sent at exact times are not
        held. Live hosts have pauses of their own besides. Takes a list; each: a table. Default: [].
        Example: [].
    ip: IP version of the hosts, 4 or 6, unless their group has its own. Takes 4, 6. Default: 4.
        Example: 4.
    """

    class Window(LabTable):
        """Named parts of the run with metrics of their own, which claims can name (`in = "NAME"`): each from
            one time to another, counted from the start of the run, `["22 s", "30 s"]`, or from the `start`
            of a traffic group, `{ from = "2 s", to = "10 s", of = "GROUP" }`. `run.windows` of a lab.

        from_: Where it begins: from the start of the run, or of the group that `of` names. Takes a time
            with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        to: Where it ends, likewise. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        of: The traffic group from whose `start` the two times count; by default they count from the start
            of the run. Takes a text. Example: "bulk".
        tolerance: How close one-second means must be to their final value to count as settled
            (`settling_time_s`): a share of that value, by default "10 %". Takes a number from 0 to 1, or
            per cent in a text. Example: "1 %".
        """

        def __init__(
            self,
            *,
            from_: str | None = None,
            to: str | None = None,
            of: str | None = None,
            tolerance: float | str | None = None,
        ) -> None: ...
    class HostPause(LabTable):
        """Times in which all hosts hold what they would send, as where other work has their processor: `[{ at
            = "10 s", for = "2 ms" }]`. Datagrams that are sent at exact times are not held. Live hosts have
            pauses of their own besides. `run.host_pauses` of a lab.

        at: When it begins, from the start of the run. Takes a time with its unit (ns, us, ms, s, min or h).
            Example: "25 ms".
        for_: How long it lasts. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        """

        def __init__(
            self,
            *,
            at: str | None = None,
            for_: str | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        duration: str | None = None,
        warmup: str | None = None,
        seed: int | None = None,
        repeats: int | None = None,
        windows: Mapping[str, Value] | None = None,
        sample: str | None = None,
        packets: bool | None = None,
        round_trips: Literal["segments", "acknowledgements"] | None = None,
        start_jitter: str | None = None,
        host_jitter: str | None = None,
        host_pauses: Sequence[Mapping[str, Value]] | None = None,
        ip: Literal[4, 6] | None = None,
    ) -> None: ...

class Dumbbell(LabTable):
    """One bottleneck between two routers, with all hosts around it. `dumbbell` of a lab.

    rate: Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace
        = "FILE" }` for a recorded link. Limits in time and in bdp are computed from a trace's mean
        rate. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s), or a table, or a table with
        one for each direction, `{ down = .., up = .. }`. Example: "10 Mbit/s".
    wifi: The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's
        rate. `{}` takes the defaults. Takes a table, or a table with one for each direction, `{ down =
        .., up = .. }`.
    rtt: Base round-trip time, without queues and serialisation; half of it is each direction's delay.
        Give either this or `delay`. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
        ms".
    delay: Propagation delay, one way. Takes a time with its unit (ns, us, ms, s, min or h), or a table
        with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
    queue: The queue in front of the link; by default tail drop of 1000 packets. Takes the name of a
        queue, or a table with its name as `kind` and its parameters (`weir list`). Example:
        "tail-drop".
    loss: Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %",
        burst = 5 }`; or bit errors, `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10
        s", bad = "100 ms" }`. A plain value holds for down only. Takes a number from 0 to 1, or per
        cent in a text, or a table, or a table with one for each direction, `{ down = .., up = .. }`.
        Example: "1 %".
    largest: Largest IP packet that the link delivers. Larger packets are lost without a message to
        anyone, as on a path whose MTU is smaller than its ends know. A plain value holds for down only.
        Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each
        direction, `{ down = .., up = .. }`. Example: "64 KiB".
    jitter: Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from
        0 to 5 ms, or a table. Packets keep their order unless the table has `reorder = true`. A plain
        value holds for down only. Takes a time with its unit (ns, us, ms, s, min or h), or a table, or
        a table with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
    duplicate: Probability that a packet arrives twice. A plain value holds for down only. Takes a
        number from 0 to 1, or per cent in a text, or a table with one for each direction, `{ down = ..,
        up = .. }`. Example: "1 %".
    corrupt: Probability that a packet arrives damaged; the receiving host discards it. A plain value
        holds for down only. Takes a number from 0 to 1, or per cent in a text, or a table with one for
        each direction, `{ down = .., up = .. }`. Example: "1 %".
    outage: Outages: times in which the link starts no transmission and its queue holds its packets, `[{
        at = "10 s", for = "2 s" }]`. A plain value holds for down only. Takes a list; each: a table, or
        a table with one for each direction, `{ down = .., up = .. }`.
    drop: Packets that the link drops on arrival, by number: all packets are numbered from 1 as they
        arrive at the link. A plain value holds for down only. Takes a list; each: a whole number of 0
        or more, or a table with one for each direction, `{ down = .., up = .. }`. Example: [1].
    reorder: Packets that are held back until later ones have passed them. A plain value holds for down
        only. Takes a list; each: a table, or a table with one for each direction, `{ down = .., up = ..
        }`.
    report: What packets that leave the queue report of it; by default nothing. With "ip-id" the
        identification of IPv4 holds how long the packet has waited, in steps of 32.768 us, and how many
        were dropped before it: `weir analyze --stamped` reads a capture. Packets of IPv6 and those that
        may be fragmented report nothing. A plain value holds for both directions. Takes "ip-id", or a
        table with one for each direction, `{ down = .., up = .. }`. Example: "ip-id".
    overhead: Bytes that each packet takes beyond its IP length (14 for an Ethernet header). Takes a
        size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each direction, `{
        down = .., up = .. }`. Example: "64 KiB".
    mtu: Largest IP packet that the link carries; by default "1500 B", as Ethernet. Hosts send no larger
        packets than their paths carry. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
        Example: "64 KiB".
    schedule: Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue
        over time. A plain value holds for down only. Takes a list; each: a table, or a table with one
        for each direction, `{ down = .., up = .. }`.
    """

    class Rate(LabTable):
        """Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace =
            "FILE" }` for a recorded link. Limits in time and in bdp are computed from a trace's mean rate.
            `dumbbell.rate` of a lab.

        trace: A file, looked for beside the lab. Mahimahi's format has in each line a whole number of
            milliseconds at which 1504 bytes may leave, and the last line is the trace's length; `overhead`
            is then 4 B by default, as Mahimahi counts. A rate in steps has lines of `seconds,rate`, from 0
            on, in bit/s, in the unit that a first line of names gives, or in a unit of each line's own; the
            last step is as long as the one before it. Takes a text. Example: "lte.down".
        repeat: Whether the trace begins again when it ends; by default true. If not, a rate in steps keeps
            its last rate, and Mahimahi's format sends nothing more. Takes true or false. Example: True.
        """

        def __init__(
            self,
            *,
            trace: str | None = None,
            repeat: bool | None = None,
        ) -> None: ...
    class Wifi(LabTable):
        """The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's rate.
            `{}` takes the defaults. `dumbbell.wifi` of a lab.

        stations: Other stations on the channel that always have something to send. Takes a whole number of
            0 or more. Default: 0. Example: 0.
        their_airtime: Duration of each transmission of those stations, acknowledgement included. Takes a
            time with its unit (ns, us, ms, s, min or h). Default: "2 ms". Example: "25 ms".
        max_packets: Maximum number of packets in an aggregate: a block acknowledgement has room for 64.
            Takes a whole number of 0 or more. Default: 64. Example: 64.
        max_bytes: Maximum length of an aggregate in bytes: 802.11n's longest A-MPDU has 65535. Takes a
            whole number of 0 or more. Default: 65535. Example: 65535.
        max_airtime: Longest airtime of an aggregate. Drivers keep it short: Linux's ath9k, to 4 ms. Takes a
            time with its unit (ns, us, ms, s, min or h). Default: "4 ms". Example: "25 ms".
        walk: Interval at which the radio may change its modulation: one step down, no step or one step up
            at random, between a tenth of `rate` and `rate` (MCS 0 to 7), beginning at `rate`. "0 s", the
            default, turns it off. Takes a time with its unit (ns, us, ms, s, min or h). Default: "0 s".
            Example: "25 ms".
        """

        def __init__(
            self,
            *,
            stations: int | None = None,
            their_airtime: str | None = None,
            max_packets: int | None = None,
            max_bytes: int | None = None,
            max_airtime: str | None = None,
            walk: str | None = None,
        ) -> None: ...
    class Loss(LabTable):
        """Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %", burst =
            5 }`; or bit errors, `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10 s", bad
            = "100 ms" }`. A plain value holds for down only. `dumbbell.loss` of a lab.

        mean: Share of packets lost in the long run. Takes a number from 0 to 1, or per cent in a text.
            Example: "1 %".
        burst: Mean number of packets lost in a row, at least 1; with `mean`. Takes a number. Example: 1.0.
        p: Probability that the good state turns bad before a packet; instead of `mean` and `burst`. Takes a
            number from 0 to 1, or per cent in a text. Example: "1 %".
        r: Probability that the bad state turns good before a packet; with `p`. Takes a number from 0 to 1,
            or per cent in a text. Example: "1 %".
        h: Probability that a packet of the bad state passes; by default 0. Takes a number from 0 to 1, or
            per cent in a text. Example: "1 %".
        k: Probability that a packet of the good state passes; by default 1. Takes a number from 0 to 1, or
            per cent in a text. Example: "1 %".
        ber: Probability that a bit is wrong, for example 1e-6. A packet with a wrong bit is lost. Takes a
            number from 0 to 1, or per cent in a text. Example: "1 %".
        good: Mean time without bit errors; exponential. With `ber` and `bad`. Takes a time with its unit
            (ns, us, ms, s, min or h). Example: "25 ms".
        bad: Mean time with bit errors; exponential. By default there always are errors. Takes a time with
            its unit (ns, us, ms, s, min or h). Example: "25 ms".
        """

        def __init__(
            self,
            *,
            mean: float | str | None = None,
            burst: float | None = None,
            p: float | str | None = None,
            r: float | str | None = None,
            h: float | str | None = None,
            k: float | str | None = None,
            ber: float | str | None = None,
            good: str | None = None,
            bad: str | None = None,
        ) -> None: ...
    class Jitter(LabTable):
        """Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from 0 to 5
            ms, or a table. Packets keep their order unless the table has `reorder = true`. A plain value
            holds for down only. `dumbbell.jitter` of a lab.

        distribution: Distribution of the delay: `uniform` below `up_to`; `normal` with `mean` and
            `deviation`, where a negative draw counts as zero; `pareto` with `mean` and `shape`; `mixture`
            with `parts`. Takes "uniform", "normal", "pareto", "mixture". Default: "uniform". Example:
            "uniform".
        up_to: Upper bound of the delay. A larger draw of another distribution than `uniform` is cut to it;
            for these the default is an hour. Takes a time with its unit (ns, us, ms, s, min or h). Example:
            "25 ms".
        mean: Mean of `normal` or `pareto`, before draws are cut. Takes a time with its unit (ns, us, ms, s,
            min or h). Example: "25 ms".
        deviation: Standard deviation of `normal`, before draws are cut. Takes a time with its unit (ns, us,
            ms, s, min or h). Example: "25 ms".
        shape: Shape of `pareto`, above 1; the smaller, the heavier the tail. Takes a number. Default: 3.0.
            Example: 3.0.
        parts: Parts of a `mixture`, of which each delay is drawn from one. Takes a list; each: a table.
        reorder: Whether packets may overtake each other. Takes true or false. Default: False. Example:
            False.
        """

        class Part(LabTable):
            """Parts of a `mixture`, of which each delay is drawn from one. `dumbbell.jitter.parts` of a lab.

            share: How often it is chosen, beside the shares of the other parts: above 0. Takes a number.
                Example: 1.0.
            mean: Its mean. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
            deviation: Its standard deviation; by default 0, so that it is a single value. Takes a time with its
                unit (ns, us, ms, s, min or h). Default: "0 s". Example: "25 ms".
            """

            def __init__(
                self,
                *,
                share: float | None = None,
                mean: str | None = None,
                deviation: str | None = None,
            ) -> None: ...
        def __init__(
            self,
            *,
            distribution: Literal["uniform", "normal", "pareto", "mixture"] | None = None,
            up_to: str | None = None,
            mean: str | None = None,
            deviation: str | None = None,
            shape: float | None = None,
            parts: Sequence[Mapping[str, Value]] | None = None,
            reorder: bool | None = None,
        ) -> None: ...
    class Outage(LabTable):
        """Outages: times in which the link starts no transmission and its queue holds its packets, `[{ at =
            "10 s", for = "2 s" }]`. A plain value holds for down only. `dumbbell.outage` of a lab.

        at: When it begins, from the start of the run. Takes a time with its unit (ns, us, ms, s, min or h).
            Example: "25 ms".
        for_: How long it lasts. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        """

        def __init__(
            self,
            *,
            at: str | None = None,
            for_: str | None = None,
        ) -> None: ...
    class Reorder(LabTable):
        """Packets that are held back until later ones have passed them. A plain value holds for down only.
            `dumbbell.reorder` of a lab.

        packet: Its number in order of arrival at the link, from 1. Takes a whole number of 0 or more.
            Example: 1.
        by: How many later packets pass it. Takes a whole number of 0 or more. Example: 1.
        """

        def __init__(
            self,
            *,
            packet: int | None = None,
            by: int | None = None,
        ) -> None: ...
    class Schedule(LabTable):
        """Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue over time. A
            plain value holds for down only. `dumbbell.schedule` of a lab.

        at: When, from the start of the run. Takes a time with its unit (ns, us, ms, s, min or h). Example:
            "25 ms".
        rate: New rate, or a trace that begins then. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or
            Gbit/s), or a table. Example: "10 Mbit/s".
        delay: New propagation delay, one way. Takes a time with its unit (ns, us, ms, s, min or h).
            Example: "25 ms".
        loss: New loss. Takes a number from 0 to 1, or per cent in a text, or a table. Example: "1 %".
        largest: New largest IP packet that the link delivers. Takes a size with its unit (B, kB, KiB, MB,
            MiB, GB or GiB). Example: "64 KiB".
        jitter: New jitter. Takes a time with its unit (ns, us, ms, s, min or h), or a table. Example: "25
            ms".
        duplicate: New probability that a packet arrives twice. Takes a number from 0 to 1, or per cent in a
            text. Example: "1 %".
        corrupt: New probability that a packet arrives damaged. Takes a number from 0 to 1, or per cent in a
            text. Example: "1 %".
        queue: New parameters of the queue, all of them, for a queue of the same kind: `tbf` or `htb`, whose
            classes are matched by name. Waiting packets stay, except those of a class that is no longer
            named. Takes the name of a queue, or a table with its name as `kind` and its parameters (`weir
            list`). Example: "tail-drop".
        """

        class Rate(LabTable):
            """New rate, or a trace that begins then. `dumbbell.schedule.rate` of a lab.

            trace: A file, looked for beside the lab. Mahimahi's format has in each line a whole number of
                milliseconds at which 1504 bytes may leave, and the last line is the trace's length; `overhead`
                is then 4 B by default, as Mahimahi counts. A rate in steps has lines of `seconds,rate`, from 0
                on, in bit/s, in the unit that a first line of names gives, or in a unit of each line's own; the
                last step is as long as the one before it. Takes a text. Example: "lte.down".
            repeat: Whether the trace begins again when it ends; by default true. If not, a rate in steps keeps
                its last rate, and Mahimahi's format sends nothing more. Takes true or false. Example: True.
            """

            def __init__(
                self,
                *,
                trace: str | None = None,
                repeat: bool | None = None,
            ) -> None: ...
        class Loss(LabTable):
            """New loss. `dumbbell.schedule.loss` of a lab.

            mean: Share of packets lost in the long run. Takes a number from 0 to 1, or per cent in a text.
                Example: "1 %".
            burst: Mean number of packets lost in a row, at least 1; with `mean`. Takes a number. Example: 1.0.
            p: Probability that the good state turns bad before a packet; instead of `mean` and `burst`. Takes a
                number from 0 to 1, or per cent in a text. Example: "1 %".
            r: Probability that the bad state turns good before a packet; with `p`. Takes a number from 0 to 1,
                or per cent in a text. Example: "1 %".
            h: Probability that a packet of the bad state passes; by default 0. Takes a number from 0 to 1, or
                per cent in a text. Example: "1 %".
            k: Probability that a packet of the good state passes; by default 1. Takes a number from 0 to 1, or
                per cent in a text. Example: "1 %".
            ber: Probability that a bit is wrong, for example 1e-6. A packet with a wrong bit is lost. Takes a
                number from 0 to 1, or per cent in a text. Example: "1 %".
            good: Mean time without bit errors; exponential. With `ber` and `bad`. Takes a time with its unit
                (ns, us, ms, s, min or h). Example: "25 ms".
            bad: Mean time with bit errors; exponential. By default there always are errors. Takes a time with
                its unit (ns, us, ms, s, min or h). Example: "25 ms".
            """

            def __init__(
                self,
                *,
                mean: float | str | None = None,
                burst: float | None = None,
                p: float | str | None = None,
                r: float | str | None = None,
                h: float | str | None = None,
                k: float | str | None = None,
                ber: float | str | None = None,
                good: str | None = None,
                bad: str | None = None,
            ) -> None: ...
        class Jitter(LabTable):
            """New jitter. `dumbbell.schedule.jitter` of a lab.

            distribution: Distribution of the delay: `uniform` below `up_to`; `normal` with `mean` and
                `deviation`, where a negative draw counts as zero; `pareto` with `mean` and `shape`; `mixture`
                with `parts`. Takes "uniform", "normal", "pareto", "mixture". Default: "uniform". Example:
                "uniform".
            up_to: Upper bound of the delay. A larger draw of another distribution than `uniform` is cut to it;
                for these the default is an hour. Takes a time with its unit (ns, us, ms, s, min or h). Example:
                "25 ms".
            mean: Mean of `normal` or `pareto`, before draws are cut. Takes a time with its unit (ns, us, ms, s,
                min or h). Example: "25 ms".
            deviation: Standard deviation of `normal`, before draws are cut. Takes a time with its unit (ns, us,
                ms, s, min or h). Example: "25 ms".
            shape: Shape of `pareto`, above 1; the smaller, the heavier the tail. Takes a number. Default: 3.0.
                Example: 3.0.
            parts: Parts of a `mixture`, of which each delay is drawn from one. Takes a list; each: a table.
            reorder: Whether packets may overtake each other. Takes true or false. Default: False. Example:
                False.
            """

            Part = Dumbbell.Jitter.Part
            def __init__(
                self,
                *,
                distribution: Literal["uniform", "normal", "pareto", "mixture"] | None = None,
                up_to: str | None = None,
                mean: str | None = None,
                deviation: str | None = None,
                shape: float | None = None,
                parts: Sequence[Mapping[str, Value]] | None = None,
                reorder: bool | None = None,
            ) -> None: ...
        def __init__(
            self,
            *,
            at: str | None = None,
            rate: str | Mapping[str, Value] | None = None,
            delay: str | None = None,
            loss: float | str | Mapping[str, Value] | None = None,
            largest: str | None = None,
            jitter: str | Mapping[str, Value] | None = None,
            duplicate: float | str | None = None,
            corrupt: float | str | None = None,
            queue: str | Mapping[str, Value] | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        rate: str | Mapping[str, Value] | None = None,
        wifi: Mapping[str, Value] | None = None,
        rtt: str | None = None,
        delay: str | Mapping[str, Value] | None = None,
        queue: str | Mapping[str, Value] | None = None,
        loss: float | str | Mapping[str, Value] | None = None,
        largest: str | Mapping[str, Value] | None = None,
        jitter: str | Mapping[str, Value] | None = None,
        duplicate: float | str | Mapping[str, Value] | None = None,
        corrupt: float | str | Mapping[str, Value] | None = None,
        outage: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        drop: Sequence[int] | Mapping[str, Value] | None = None,
        reorder: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        report: Literal["ip-id"] | Mapping[str, Value] | None = None,
        overhead: str | Mapping[str, Value] | None = None,
        mtu: str | None = None,
        schedule: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
    ) -> None: ...

class Chain(LabTable):
    """Several links in a row. `chain` of a lab.

    base_rtt: RTT from which `bdp` is computed on all its links. Takes a time with its unit (ns, us, ms,
        s, min or h). Example: "25 ms".
    links: The links by name, from left to right. Takes a table whose keys are names of your choice.
    """

    class Link(LabTable):
        """The links by name, from left to right. `chain.links` of a lab.

        rate: Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace
            = "FILE" }` for a recorded link. Limits in time and in bdp are computed from a trace's mean
            rate. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s), or a table, or a table with
            one for each direction, `{ down = .., up = .. }`. Example: "10 Mbit/s".
        wifi: The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's
            rate. `{}` takes the defaults. Takes a table, or a table with one for each direction, `{ down =
            .., up = .. }`.
        rtt: Base round-trip time, without queues and serialisation; half of it is each direction's delay.
            Give either this or `delay`. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
            ms".
        delay: Propagation delay, one way. Takes a time with its unit (ns, us, ms, s, min or h), or a table
            with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
        queue: The queue in front of the link; by default tail drop of 1000 packets. Takes the name of a
            queue, or a table with its name as `kind` and its parameters (`weir list`). Example:
            "tail-drop".
        loss: Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %",
            burst = 5 }`; or bit errors, `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10
            s", bad = "100 ms" }`. A plain value holds for down only. Takes a number from 0 to 1, or per
            cent in a text, or a table, or a table with one for each direction, `{ down = .., up = .. }`.
            Example: "1 %".
        largest: Largest IP packet that the link delivers. Larger packets are lost without a message to
            anyone, as on a path whose MTU is smaller than its ends know. A plain value holds for down only.
            Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each
            direction, `{ down = .., up = .. }`. Example: "64 KiB".
        jitter: Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from
            0 to 5 ms, or a table. Packets keep their order unless the table has `reorder = true`. A plain
            value holds for down only. Takes a time with its unit (ns, us, ms, s, min or h), or a table, or
            a table with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
        duplicate: Probability that a packet arrives twice. A plain value holds for down only. Takes a
            number from 0 to 1, or per cent in a text, or a table with one for each direction, `{ down = ..,
            up = .. }`. Example: "1 %".
        corrupt: Probability that a packet arrives damaged; the receiving host discards it. A plain value
            holds for down only. Takes a number from 0 to 1, or per cent in a text, or a table with one for
            each direction, `{ down = .., up = .. }`. Example: "1 %".
        outage: Outages: times in which the link starts no transmission and its queue holds its packets, `[{
            at = "10 s", for = "2 s" }]`. A plain value holds for down only. Takes a list; each: a table, or
            a table with one for each direction, `{ down = .., up = .. }`.
        drop: Packets that the link drops on arrival, by number: all packets are numbered from 1 as they
            arrive at the link. A plain value holds for down only. Takes a list; each: a whole number of 0
            or more, or a table with one for each direction, `{ down = .., up = .. }`. Example: [1].
        reorder: Packets that are held back until later ones have passed them. A plain value holds for down
            only. Takes a list; each: a table, or a table with one for each direction, `{ down = .., up = ..
            }`.
        report: What packets that leave the queue report of it; by default nothing. With "ip-id" the
            identification of IPv4 holds how long the packet has waited, in steps of 32.768 us, and how many
            were dropped before it: `weir analyze --stamped` reads a capture. Packets of IPv6 and those that
            may be fragmented report nothing. A plain value holds for both directions. Takes "ip-id", or a
            table with one for each direction, `{ down = .., up = .. }`. Example: "ip-id".
        overhead: Bytes that each packet takes beyond its IP length (14 for an Ethernet header). Takes a
            size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each direction, `{
            down = .., up = .. }`. Example: "64 KiB".
        mtu: Largest IP packet that the link carries; by default "1500 B", as Ethernet. Hosts send no larger
            packets than their paths carry. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
            Example: "64 KiB".
        schedule: Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue
            over time. A plain value holds for down only. Takes a list; each: a table, or a table with one
            for each direction, `{ down = .., up = .. }`.
        """

        Rate = Dumbbell.Rate
        Wifi = Dumbbell.Wifi
        Loss = Dumbbell.Loss
        Jitter = Dumbbell.Jitter
        Outage = Dumbbell.Outage
        Reorder = Dumbbell.Reorder
        Schedule = Dumbbell.Schedule
        def __init__(
            self,
            *,
            rate: str | Mapping[str, Value] | None = None,
            wifi: Mapping[str, Value] | None = None,
            rtt: str | None = None,
            delay: str | Mapping[str, Value] | None = None,
            queue: str | Mapping[str, Value] | None = None,
            loss: float | str | Mapping[str, Value] | None = None,
            largest: str | Mapping[str, Value] | None = None,
            jitter: str | Mapping[str, Value] | None = None,
            duplicate: float | str | Mapping[str, Value] | None = None,
            corrupt: float | str | Mapping[str, Value] | None = None,
            outage: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
            drop: Sequence[int] | Mapping[str, Value] | None = None,
            reorder: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
            report: Literal["ip-id"] | Mapping[str, Value] | None = None,
            overhead: str | Mapping[str, Value] | None = None,
            mtu: str | None = None,
            schedule: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        base_rtt: str | None = None,
        links: Mapping[str, Value] | None = None,
    ) -> None: ...

class ParkingLot(LabTable):
    """Several equal links in a row, with traffic over all of them and traffic over one. `parking_lot` of a
        lab.

    bottlenecks: Number of links. Takes a whole number of 0 or more. Example: 1.
    base_rtt: RTT from which `bdp` is computed on all its links. Takes a time with its unit (ns, us, ms,
        s, min or h). Example: "25 ms".
    rate: Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace
        = "FILE" }` for a recorded link. Limits in time and in bdp are computed from a trace's mean
        rate. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s), or a table, or a table with
        one for each direction, `{ down = .., up = .. }`. Example: "10 Mbit/s".
    wifi: The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's
        rate. `{}` takes the defaults. Takes a table, or a table with one for each direction, `{ down =
        .., up = .. }`.
    rtt: Base round-trip time, without queues and serialisation; half of it is each direction's delay.
        Give either this or `delay`. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
        ms".
    delay: Propagation delay, one way. Takes a time with its unit (ns, us, ms, s, min or h), or a table
        with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
    queue: The queue in front of the link; by default tail drop of 1000 packets. Takes the name of a
        queue, or a table with its name as `kind` and its parameters (`weir list`). Example:
        "tail-drop".
    loss: Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %",
        burst = 5 }`; or bit errors, `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10
        s", bad = "100 ms" }`. A plain value holds for down only. Takes a number from 0 to 1, or per
        cent in a text, or a table, or a table with one for each direction, `{ down = .., up = .. }`.
        Example: "1 %".
    largest: Largest IP packet that the link delivers. Larger packets are lost without a message to
        anyone, as on a path whose MTU is smaller than its ends know. A plain value holds for down only.
        Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each
        direction, `{ down = .., up = .. }`. Example: "64 KiB".
    jitter: Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from
        0 to 5 ms, or a table. Packets keep their order unless the table has `reorder = true`. A plain
        value holds for down only. Takes a time with its unit (ns, us, ms, s, min or h), or a table, or
        a table with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
    duplicate: Probability that a packet arrives twice. A plain value holds for down only. Takes a
        number from 0 to 1, or per cent in a text, or a table with one for each direction, `{ down = ..,
        up = .. }`. Example: "1 %".
    corrupt: Probability that a packet arrives damaged; the receiving host discards it. A plain value
        holds for down only. Takes a number from 0 to 1, or per cent in a text, or a table with one for
        each direction, `{ down = .., up = .. }`. Example: "1 %".
    outage: Outages: times in which the link starts no transmission and its queue holds its packets, `[{
        at = "10 s", for = "2 s" }]`. A plain value holds for down only. Takes a list; each: a table, or
        a table with one for each direction, `{ down = .., up = .. }`.
    drop: Packets that the link drops on arrival, by number: all packets are numbered from 1 as they
        arrive at the link. A plain value holds for down only. Takes a list; each: a whole number of 0
        or more, or a table with one for each direction, `{ down = .., up = .. }`. Example: [1].
    reorder: Packets that are held back until later ones have passed them. A plain value holds for down
        only. Takes a list; each: a table, or a table with one for each direction, `{ down = .., up = ..
        }`.
    report: What packets that leave the queue report of it; by default nothing. With "ip-id" the
        identification of IPv4 holds how long the packet has waited, in steps of 32.768 us, and how many
        were dropped before it: `weir analyze --stamped` reads a capture. Packets of IPv6 and those that
        may be fragmented report nothing. A plain value holds for both directions. Takes "ip-id", or a
        table with one for each direction, `{ down = .., up = .. }`. Example: "ip-id".
    overhead: Bytes that each packet takes beyond its IP length (14 for an Ethernet header). Takes a
        size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each direction, `{
        down = .., up = .. }`. Example: "64 KiB".
    mtu: Largest IP packet that the link carries; by default "1500 B", as Ethernet. Hosts send no larger
        packets than their paths carry. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
        Example: "64 KiB".
    schedule: Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue
        over time. A plain value holds for down only. Takes a list; each: a table, or a table with one
        for each direction, `{ down = .., up = .. }`.
    """

    Rate = Dumbbell.Rate
    Wifi = Dumbbell.Wifi
    Loss = Dumbbell.Loss
    Jitter = Dumbbell.Jitter
    Outage = Dumbbell.Outage
    Reorder = Dumbbell.Reorder
    Schedule = Dumbbell.Schedule
    def __init__(
        self,
        *,
        bottlenecks: int | None = None,
        base_rtt: str | None = None,
        rate: str | Mapping[str, Value] | None = None,
        wifi: Mapping[str, Value] | None = None,
        rtt: str | None = None,
        delay: str | Mapping[str, Value] | None = None,
        queue: str | Mapping[str, Value] | None = None,
        loss: float | str | Mapping[str, Value] | None = None,
        largest: str | Mapping[str, Value] | None = None,
        jitter: str | Mapping[str, Value] | None = None,
        duplicate: float | str | Mapping[str, Value] | None = None,
        corrupt: float | str | Mapping[str, Value] | None = None,
        outage: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        drop: Sequence[int] | Mapping[str, Value] | None = None,
        reorder: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        report: Literal["ip-id"] | Mapping[str, Value] | None = None,
        overhead: str | Mapping[str, Value] | None = None,
        mtu: str | None = None,
        schedule: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
    ) -> None: ...

class Star(LabTable):
    """Equal links around a hub. `star` of a lab.

    arms: Number of links. Takes a whole number of 0 or more. Example: 1.
    base_rtt: RTT from which `bdp` is computed on all its links. Takes a time with its unit (ns, us, ms,
        s, min or h). Example: "25 ms".
    rate: Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace
        = "FILE" }` for a recorded link. Limits in time and in bdp are computed from a trace's mean
        rate. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s), or a table, or a table with
        one for each direction, `{ down = .., up = .. }`. Example: "10 Mbit/s".
    wifi: The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's
        rate. `{}` takes the defaults. Takes a table, or a table with one for each direction, `{ down =
        .., up = .. }`.
    rtt: Base round-trip time, without queues and serialisation; half of it is each direction's delay.
        Give either this or `delay`. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
        ms".
    delay: Propagation delay, one way. Takes a time with its unit (ns, us, ms, s, min or h), or a table
        with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
    queue: The queue in front of the link; by default tail drop of 1000 packets. Takes the name of a
        queue, or a table with its name as `kind` and its parameters (`weir list`). Example:
        "tail-drop".
    loss: Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %",
        burst = 5 }`; or bit errors, `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10
        s", bad = "100 ms" }`. A plain value holds for down only. Takes a number from 0 to 1, or per
        cent in a text, or a table, or a table with one for each direction, `{ down = .., up = .. }`.
        Example: "1 %".
    largest: Largest IP packet that the link delivers. Larger packets are lost without a message to
        anyone, as on a path whose MTU is smaller than its ends know. A plain value holds for down only.
        Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each
        direction, `{ down = .., up = .. }`. Example: "64 KiB".
    jitter: Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from
        0 to 5 ms, or a table. Packets keep their order unless the table has `reorder = true`. A plain
        value holds for down only. Takes a time with its unit (ns, us, ms, s, min or h), or a table, or
        a table with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
    duplicate: Probability that a packet arrives twice. A plain value holds for down only. Takes a
        number from 0 to 1, or per cent in a text, or a table with one for each direction, `{ down = ..,
        up = .. }`. Example: "1 %".
    corrupt: Probability that a packet arrives damaged; the receiving host discards it. A plain value
        holds for down only. Takes a number from 0 to 1, or per cent in a text, or a table with one for
        each direction, `{ down = .., up = .. }`. Example: "1 %".
    outage: Outages: times in which the link starts no transmission and its queue holds its packets, `[{
        at = "10 s", for = "2 s" }]`. A plain value holds for down only. Takes a list; each: a table, or
        a table with one for each direction, `{ down = .., up = .. }`.
    drop: Packets that the link drops on arrival, by number: all packets are numbered from 1 as they
        arrive at the link. A plain value holds for down only. Takes a list; each: a whole number of 0
        or more, or a table with one for each direction, `{ down = .., up = .. }`. Example: [1].
    reorder: Packets that are held back until later ones have passed them. A plain value holds for down
        only. Takes a list; each: a table, or a table with one for each direction, `{ down = .., up = ..
        }`.
    report: What packets that leave the queue report of it; by default nothing. With "ip-id" the
        identification of IPv4 holds how long the packet has waited, in steps of 32.768 us, and how many
        were dropped before it: `weir analyze --stamped` reads a capture. Packets of IPv6 and those that
        may be fragmented report nothing. A plain value holds for both directions. Takes "ip-id", or a
        table with one for each direction, `{ down = .., up = .. }`. Example: "ip-id".
    overhead: Bytes that each packet takes beyond its IP length (14 for an Ethernet header). Takes a
        size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each direction, `{
        down = .., up = .. }`. Example: "64 KiB".
    mtu: Largest IP packet that the link carries; by default "1500 B", as Ethernet. Hosts send no larger
        packets than their paths carry. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
        Example: "64 KiB".
    schedule: Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue
        over time. A plain value holds for down only. Takes a list; each: a table, or a table with one
        for each direction, `{ down = .., up = .. }`.
    """

    Rate = Dumbbell.Rate
    Wifi = Dumbbell.Wifi
    Loss = Dumbbell.Loss
    Jitter = Dumbbell.Jitter
    Outage = Dumbbell.Outage
    Reorder = Dumbbell.Reorder
    Schedule = Dumbbell.Schedule
    def __init__(
        self,
        *,
        arms: int | None = None,
        base_rtt: str | None = None,
        rate: str | Mapping[str, Value] | None = None,
        wifi: Mapping[str, Value] | None = None,
        rtt: str | None = None,
        delay: str | Mapping[str, Value] | None = None,
        queue: str | Mapping[str, Value] | None = None,
        loss: float | str | Mapping[str, Value] | None = None,
        largest: str | Mapping[str, Value] | None = None,
        jitter: str | Mapping[str, Value] | None = None,
        duplicate: float | str | Mapping[str, Value] | None = None,
        corrupt: float | str | Mapping[str, Value] | None = None,
        outage: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        drop: Sequence[int] | Mapping[str, Value] | None = None,
        reorder: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        report: Literal["ip-id"] | Mapping[str, Value] | None = None,
        overhead: str | Mapping[str, Value] | None = None,
        mtu: str | None = None,
        schedule: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
    ) -> None: ...

class Graph(LabTable):
    """Any network: routers, hosts, and links between them. `graph` of a lab.

    routers: Names of the nodes that forward packets. Takes a list; each: a text. Default: []. Example:
        [].
    hosts: Names of the nodes that forward nothing, where packets begin and end. A host with several
        links is multihomed: a group that begins there chooses among them with `via`. Takes a list;
        each: a text. Default: []. Example: [].
    base_rtt: RTT from which `bdp` is computed on all its links. Takes a time with its unit (ns, us, ms,
        s, min or h). Example: "25 ms".
    links: The links by name. The direction from `from` to `to` has the link's name and is its `down`;
        the other is called NAME-up. Takes a table whose keys are names of your choice.
    """

    class Link(LabTable):
        """The links by name. The direction from `from` to `to` has the link's name and is its `down`; the
            other is called NAME-up. `graph.links` of a lab.

        from_: The router or host where it begins. Takes a text. Example: "r1".
        to: The router or host where it ends. Takes a text. Example: "r2".
        one_way: Whether it leads from `from` to `to` only; by default both ways. Takes true or false.
            Default: False. Example: False.
        rate: Rate at which the link sends, counted in IP bytes and `overhead`: a constant rate, or `{ trace
            = "FILE" }` for a recorded link. Limits in time and in bdp are computed from a trace's mean
            rate. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s), or a table, or a table with
            one for each direction, `{ down = .., up = .. }`. Example: "10 Mbit/s".
        wifi: The link contends for a radio channel as an 802.11n station does; `rate` is then the radio's
            rate. `{}` takes the defaults. Takes a table, or a table with one for each direction, `{ down =
            .., up = .. }`.
        rtt: Base round-trip time, without queues and serialisation; half of it is each direction's delay.
            Give either this or `delay`. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
            ms".
        delay: Propagation delay, one way. Takes a time with its unit (ns, us, ms, s, min or h), or a table
            with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
        queue: The queue in front of the link; by default tail drop of 1000 packets. Takes the name of a
            queue, or a table with its name as `kind` and its parameters (`weir list`). Example:
            "tail-drop".
        loss: Random loss: a probability for each packet, 0.01 or "1 %"; loss in bursts, `{ mean = "1 %",
            burst = 5 }`; or bit errors, `{ ber = 1e-6 }`, always or in bad times, `{ ber = 1e-4, good = "10
            s", bad = "100 ms" }`. A plain value holds for down only. Takes a number from 0 to 1, or per
            cent in a text, or a table, or a table with one for each direction, `{ down = .., up = .. }`.
            Example: "1 %".
        largest: Largest IP packet that the link delivers. Larger packets are lost without a message to
            anyone, as on a path whose MTU is smaller than its ends know. A plain value holds for down only.
            Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each
            direction, `{ down = .., up = .. }`. Example: "64 KiB".
        jitter: Random delay of each packet on top of the propagation delay: "5 ms" for a uniform delay from
            0 to 5 ms, or a table. Packets keep their order unless the table has `reorder = true`. A plain
            value holds for down only. Takes a time with its unit (ns, us, ms, s, min or h), or a table, or
            a table with one for each direction, `{ down = .., up = .. }`. Example: "25 ms".
        duplicate: Probability that a packet arrives twice. A plain value holds for down only. Takes a
            number from 0 to 1, or per cent in a text, or a table with one for each direction, `{ down = ..,
            up = .. }`. Example: "1 %".
        corrupt: Probability that a packet arrives damaged; the receiving host discards it. A plain value
            holds for down only. Takes a number from 0 to 1, or per cent in a text, or a table with one for
            each direction, `{ down = .., up = .. }`. Example: "1 %".
        outage: Outages: times in which the link starts no transmission and its queue holds its packets, `[{
            at = "10 s", for = "2 s" }]`. A plain value holds for down only. Takes a list; each: a table, or
            a table with one for each direction, `{ down = .., up = .. }`.
        drop: Packets that the link drops on arrival, by number: all packets are numbered from 1 as they
            arrive at the link. A plain value holds for down only. Takes a list; each: a whole number of 0
            or more, or a table with one for each direction, `{ down = .., up = .. }`. Example: [1].
        reorder: Packets that are held back until later ones have passed them. A plain value holds for down
            only. Takes a list; each: a table, or a table with one for each direction, `{ down = .., up = ..
            }`.
        report: What packets that leave the queue report of it; by default nothing. With "ip-id" the
            identification of IPv4 holds how long the packet has waited, in steps of 32.768 us, and how many
            were dropped before it: `weir analyze --stamped` reads a capture. Packets of IPv6 and those that
            may be fragmented report nothing. A plain value holds for both directions. Takes "ip-id", or a
            table with one for each direction, `{ down = .., up = .. }`. Example: "ip-id".
        overhead: Bytes that each packet takes beyond its IP length (14 for an Ethernet header). Takes a
            size with its unit (B, kB, KiB, MB, MiB, GB or GiB), or a table with one for each direction, `{
            down = .., up = .. }`. Example: "64 KiB".
        mtu: Largest IP packet that the link carries; by default "1500 B", as Ethernet. Hosts send no larger
            packets than their paths carry. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
            Example: "64 KiB".
        schedule: Changes of rate, delay, loss, largest packet, jitter, duplication, corruption or queue
            over time. A plain value holds for down only. Takes a list; each: a table, or a table with one
            for each direction, `{ down = .., up = .. }`.
        """

        Rate = Dumbbell.Rate
        Wifi = Dumbbell.Wifi
        Loss = Dumbbell.Loss
        Jitter = Dumbbell.Jitter
        Outage = Dumbbell.Outage
        Reorder = Dumbbell.Reorder
        Schedule = Dumbbell.Schedule
        def __init__(
            self,
            *,
            from_: str | None = None,
            to: str | None = None,
            one_way: bool | None = None,
            rate: str | Mapping[str, Value] | None = None,
            wifi: Mapping[str, Value] | None = None,
            rtt: str | None = None,
            delay: str | Mapping[str, Value] | None = None,
            queue: str | Mapping[str, Value] | None = None,
            loss: float | str | Mapping[str, Value] | None = None,
            largest: str | Mapping[str, Value] | None = None,
            jitter: str | Mapping[str, Value] | None = None,
            duplicate: float | str | Mapping[str, Value] | None = None,
            corrupt: float | str | Mapping[str, Value] | None = None,
            outage: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
            drop: Sequence[int] | Mapping[str, Value] | None = None,
            reorder: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
            report: Literal["ip-id"] | Mapping[str, Value] | None = None,
            overhead: str | Mapping[str, Value] | None = None,
            mtu: str | None = None,
            schedule: Sequence[Mapping[str, Value]] | Mapping[str, Value] | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        routers: Sequence[str] | None = None,
        hosts: Sequence[str] | None = None,
        base_rtt: str | None = None,
        links: Mapping[str, Value] | None = None,
    ) -> None: ...

class Overlay(LabTable):
    """Nodes of the backpressure overlay, which sends over every path at once. `overlay` of a lab.

    nodes: Names of the routers at which its nodes stand, at most 128. Links between two of them are the
        overlay's. Takes a list; each: a text. Example: ['a', 'b', 'c'].
    interior: Those of them at which no traffic group begins or ends. Takes a list; each: a text.
        Default: []. Example: [].
    on: Whether there is an overlay; by default there is. Without it all packets take the path of least
        delay: the baseline, as in `[vary]` with `"overlay.on" = [true, false]`. Takes true or false.
        Default: True. Example: True.
    k: K in bits squared per second: a flow of priority p is admitted at K p over the depth. By default
        derived from the links. Takes a number. Example: 1.0.
    zombies: How virtual depth is made. Takes "none", "zlr", "zlr-improved", "sdg", "idg", or a table.
        Example: "none".
    depth: Which depth is advertised and compared. Takes "exact", "ewma", "heavy-ball", "hvyball",
        "nplb", or a table. Example: "exact".
    cat: What carries packets between neighbours. Takes "wire", "sliq", or a table. Example: "wire".
    asap: Whether starved destinations gain virtual depth (ASAP). Not beside the depth `nplb`. Takes
        true or false. Default: True. Example: True.
    multicast: How groups are forwarded. Takes a table.
    depth_share: The part of each link's capacity that messages of depth take: above 0, at most 1. Takes
        a number. Default: 0.01. Example: 0.01.
    hysteresis: A difference of depth up to this moves nothing. Takes a size with its unit (B, kB, KiB,
        MB, MiB, GB or GiB). Default: "150 B". Example: "64 KiB".
    hop_bias: Depth that each hop to the destination counts. Takes a size with its unit (B, kB, KiB, MB,
        MiB, GB or GiB). Default: "1100 B". Example: "64 KiB".
    queue_delays: Whether times in queues count in the delays of routes. Takes true or false. Default:
        False. Example: False.
    planner: Whether the nodes where flows enter plan which of them are on; by default those do where a
        flow may be refused. Takes true or false. Example: True.
    details: Whether nodes record each class, bin and neighbour, and the links that each flow's packets
        leave over, besides sums. A run's page then shows bins and paths. Takes true or false. Default:
        False. Example: False.
    """

    class Zombies(LabTable):
        """How virtual depth is made. `overlay.zombies` of a lab.

        kind: The name of what is used, as `weir list` prints it; the other keys are its parameters. Takes
            "none". Example: "none".
        mark: Packets that stand for longer than this are replaced. The study has 6,000 bytes, which are 4.8
            ms at 10 Mbit/s. Takes a time with its unit (ns, us, ms, s, min or h). Default: "5 ms". Example:
            "25 ms".
        rule: How the window adapts. Takes "drain", "study". Default: "drain". Example: "drain".
        shortest: Shortest window; the study has 0.2 s. Takes a time with its unit (ns, us, ms, s, min or
            h). Default: "100 ms". Example: "25 ms".
        longest: Longest window; the study has 5 s. Takes a time with its unit (ns, us, ms, s, min or h).
            Default: "1 s". Example: "25 ms".
        gain: Zombie bytes for each byte that leaves while packets stand; the study has 1. Takes a whole
            number of 0 or more. Default: 4. Example: 4.
        drain: Zombie bytes that leave for each that the link has time for. With 1, as in the study, depths
            fall no faster than without virtual depth, so that zombies that came for a burst keep the depth
            too high for long. Takes a whole number of 0 or more. Default: 2. Example: 2.
        mu: What a byte of a packet counts in the depth, above 0 and at most 1; the study has 0.2. Takes a
            number. Default: 0.2. Example: 0.2.
        slot: Time between two steps of learning. Takes a time with its unit (ns, us, ms, s, min or h).
            Default: "10 ms". Example: "25 ms".
        half: In this time of learning the step falls to half. Takes a time with its unit (ns, us, ms, s,
            min or h). Default: "2.5 s". Example: "25 ms".
        """

        def __init__(
            self,
            *,
            kind: Literal["none"] | None = None,
            mark: str | None = None,
            rule: Literal["drain", "study"] | None = None,
            shortest: str | None = None,
            longest: str | None = None,
            gain: int | None = None,
            drain: int | None = None,
            mu: float | None = None,
            slot: str | None = None,
            half: str | None = None,
        ) -> None: ...
    class Depth(LabTable):
        """Which depth is advertised and compared. `overlay.depth` of a lab.

        kind: The name of what is used, as `weir list` prints it; the other keys are its parameters. Takes
            "exact". Example: "exact".
        tau: Time constant. Takes a time with its unit (ns, us, ms, s, min or h). Default: "5 ms". Example:
            "25 ms".
        momentum: Part of the last value that a period of 5 ms keeps, from 0 to below 1. Takes a number.
            Default: 0.65. Example: 0.65.
        bytes_per_microsecond: Bytes that a microsecond of the oldest packet's age counts. Takes a number.
            Default: 0.1. Example: 0.1.
        """

        def __init__(
            self,
            *,
            kind: Literal["exact"] | None = None,
            tau: str | None = None,
            momentum: float | None = None,
            bytes_per_microsecond: float | None = None,
        ) -> None: ...
    class Cat(LabTable):
        """What carries packets between neighbours. `overlay.cat` of a lab.

        kind: The name of what is used, as `weir list` prints it; the other keys are its parameters. Takes
            "wire". Example: "wire".
        """

        def __init__(
            self,
            *,
            kind: Literal["wire"] | None = None,
        ) -> None: ...
    class Multicast(LabTable):
        """How groups are forwarded. `overlay.multicast` of a lab.

        forwarding: How groups are forwarded. Takes "per-bin", "coded", "total", "tree". Default: "per-bin".
            Example: "per-bin".
        admission: What of a group's depths is the price of admission. Takes "max", "sum". Default: "max".
            Example: "max".
        opportunism: A packet is not parted for a destination that is uphill by up to so much. Takes a size
            with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "4 kB". Example: "64 KiB".
        search: Packets of a bin that are looked at for one decision, where one has been at the neighbour or
            depths are summed over groups. Takes a whole number of 0 or more. Default: 200. Example: 200.
        rendezvous: The rendezvous point of a tree: a node's number. Takes a whole number from 0 to 255.
            Default: 0. Example: 0.
        tree_limit: Packets that wait for a link of a tree at most. Takes a whole number of 0 or more.
            Default: 50. Example: 50.
        """

        def __init__(
            self,
            *,
            forwarding: Literal["per-bin", "coded", "total", "tree"] | None = None,
            admission: Literal["max", "sum"] | None = None,
            opportunism: str | None = None,
            search: int | None = None,
            rendezvous: int | None = None,
            tree_limit: int | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        nodes: Sequence[str] | None = None,
        interior: Sequence[str] | None = None,
        on: bool | None = None,
        k: float | None = None,
        zombies: str | Mapping[str, Value] | None = None,
        depth: str | Mapping[str, Value] | None = None,
        cat: str | Mapping[str, Value] | None = None,
        asap: bool | None = None,
        multicast: Mapping[str, Value] | None = None,
        depth_share: float | None = None,
        hysteresis: str | None = None,
        hop_bias: str | None = None,
        queue_delays: bool | None = None,
        planner: bool | None = None,
        details: bool | None = None,
    ) -> None: ...

class Traffic(LabTable):
    """Traffic groups by name, each with its own pair of hosts unless they share a sender. `traffic` of a
        lab.

    flows: How many flows; by default as many as the longest list of `rtt`, `start` and `to` has
        entries, or one. Where flows arrive at random, how many sources they come from in equal parts.
        Takes a whole number of 0 or more. Example: 1.
    workload: What the application does. Takes the name of a workload, or a table with its name as
        `kind` and its parameters (`weir list`). Example: "bulk".
    transport: Transport of its data (`weir list transports`); by default TCP for streams and UDP for
        datagrams. Takes the name of a transport, or a table with its name as `kind` and its parameters
        (`weir list`). Example: "tcp".
    cc: Congestion controller; by default "cubic". Takes the name of a controller, or a table with its
        name as `kind` and its parameters (`weir list`). Example: "newreno".
    ecn: Whether TCP negotiates ECN, and with which codepoint: `true` takes the controller's own, "ect0"
        or "ect1" another. By default true if `feedback` is not classic, as DCTCP and Prague need it.
        The live engine's kernel sends ECT(0); for "ect1" packets are relabelled as they leave their
        host. Takes true, false, "ect0", "ect1". Example: True.
    dscp: DSCP of its packets in both directions: a name such as "EF", or a number; by default "CS0".
        Bands of queues may select by it. A command sets its own. Takes a text, or a whole number from 0
        to 63. Default: "CS0". Example: "CS0".
    feedback: How the receiver reports marks: "classic" (RFC 3168), "dctcp" (RFC 8257) or "accurate"
        (RFC 9768); by default what the controller needs. Takes "classic", "dctcp", "accurate". Example:
        "classic".
    window_scaling: Whether TCP scales its windows (RFC 7323); by default true. Without it no window is
        above 65,535 bytes. Takes true or false. Example: True.
    sack: Whether TCP's acknowledgements are selective (RFC 2018); by default true. Without it losses
        are found and repaired by duplicate acknowledgements alone (NewReno, RFC 6582). Takes true or
        false. Example: True.
    rto_min: Lower bound of the variance term in TCP's retransmission timeout, which is the smoothed
        round-trip time plus this term; by default 200 ms, as in Linux. Takes a time with its unit (ns,
        us, ms, s, min or h). Example: "25 ms".
    limited_transmit: Whether TCP sends a new segment for each of the first two duplicate
        acknowledgements (RFC 3042); by default true, as Linux does. On the simulator only. Takes true
        or false. Example: True.
    delayed_ack: How long TCP's receivers delay the acknowledgement of a single segment; every second
        segment is then acknowledged at once, and no other one (RFC 5681, section 4.2). By default the
        delay adapts and the first acknowledgements are not delayed, as in Linux. On the simulator only.
        Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
    window_updates: Whether receivers with `delayed_ack` also acknowledge when the application has read
        two segments beyond the advertised window, as FreeBSD 4 does: two acknowledgements for three
        segments. By default false. On the simulator only. Takes true or false. Example: True.
    direction: Direction of the data. Takes "down", "up". Example: "down".
    host: Name of the sending host, which groups with the same name share; `[nic.NAME]` gives it a card,
        and `hosts` there makes several such hosts. By default each group has a sending host of its own.
        Takes a text. Example: "laptop".
    rtt: Base round-trip time of its flows, at least the path's own; the difference is delay between a
        host and its router. One time for all flows, a list that the flows take in turn (`["10 ms", "40
        ms"]`), or a range (`{ from = "10 ms", to = "100 ms" }`). Takes a time with its unit (ns, us,
        ms, s, min or h), or a list; each: a time with its unit (ns, us, ms, s, min or h), or a table.
        Example: "25 ms".
    send_buffer: Send buffer: a fixed size, or `{ min, initial, max }` as in Linux's `tcp_wmem`,
        autotuned; by default 4 KiB, 16 KiB and 4 MiB. Takes a size with its unit (B, kB, KiB, MB, MiB,
        GB or GiB), or a table. Example: "64 KiB".
    receive_buffer: Receive buffer: a fixed size, or `{ min, initial, max }` as in Linux's `tcp_rmem`,
        autotuned; by default 4 KiB, 128 KiB and 6 MiB. Takes a size with its unit (B, kB, KiB, MB, MiB,
        GB or GiB), or a table. Example: "64 KiB".
    pacing: Whether TCP paces at Linux's rate when the controller does not set one; by default false.
        Takes true or false. Example: True.
    sender_clock: Clock of the sending host's timestamps: `offset` at the start of the run (by default
        drawn for each connection), `skew_ppm` by which it runs fast (by default 0), and the length of
        its `tick` (by default 1 ms). The hosts of the live engine share one clock. Takes a table.
    receiver_clock: Clock of the receiving host's timestamps, with the keys of `sender_clock`. Takes a
        table.
    start: When its flows start: one time for all, a list that they take in turn, or a range, such as `{
        from = "0 s", to = "9 s" }`. Takes a time with its unit (ns, us, ms, s, min or h), or a list;
        each: a time with its unit (ns, us, ms, s, min or h), or a table. Example: "25 ms".
    stop: When its applications stop sending; by default at the end of the run. Takes a time with its
        unit (ns, us, ms, s, min or h). Example: "25 ms".
    from_: Where its data enters the network: a router or host by name. By default the first router of a
        chain or parking lot. Takes a text. Example: "a".
    to: Where its data leaves the network: a router or host, or a station that answers. By default the
        last router of a chain or parking lot. With a list there is a receiver at each place, and the
        flows take them in turn. Takes a text, or a list; each: a text. Example: "b".
    multicast: Where its data leaves the network, each packet at all of these places, which the overlay
        does; instead of `to`. Each receiver counts as a flow. Takes a text, or a list; each: a text.
        Example: ['b', 'c'].
    overlay: How the overlay carries its flows: a table of `admit` (or `priority`, `cap`, `shape`),
        `deadline`, `size`, `coupled`, `class` and `group`; by default with their defaults if the lab
        has `[overlay]`. With false its packets take the path of least delay. Takes true or false, or a
        table. Example: True.
    hop: The one link of a chain or parking lot that its data passes, by its number from 1, instead of
        `from` and `to`. Takes a whole number of 0 or more. Example: 1.
    via: Names of the links and routers of a graph that its data passes, in this order; between them it
        takes the path of least delay. By default its whole path is the one of least delay. Takes a
        list; each: a text. Example: ['r1', 'r2'].
    back: The same for the path back, which acknowledgements take. By default the names of `via` in
        reverse, without one-way links. Takes a list; each: a text. Example: ['r2', 'r1'].
    ip: IP version of its hosts, 4 or 6; by default `run.ip`. Takes 4, 6. Example: 4.
    """

    class Rtt(LabTable):
        """Base round-trip time of its flows, at least the path's own; the difference is delay between a host
            and its router. One time for all flows, a list that the flows take in turn (`["10 ms", "40
            ms"]`), or a range (`{ from = "10 ms", to = "100 ms" }`). `traffic.NAME.rtt` of a lab.

        from_: The first flow's time. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
            ms".
        to: The last flow's time. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        """

        def __init__(
            self,
            *,
            from_: str | None = None,
            to: str | None = None,
        ) -> None: ...
    class SendBuffer(LabTable):
        """Send buffer: a fixed size, or `{ min, initial, max }` as in Linux's `tcp_wmem`, autotuned; by
            default 4 KiB, 16 KiB and 4 MiB. `traffic.NAME.send_buffer` of a lab.

        min: Size that is always granted. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
            Example: "64 KiB".
        initial: Size at the start of a connection. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or
            GiB). Example: "64 KiB".
        max: Largest size that autotuning may give the buffer. Takes a size with its unit (B, kB, KiB, MB,
            MiB, GB or GiB). Example: "64 KiB".
        """

        def __init__(
            self,
            *,
            min: str | None = None,
            initial: str | None = None,
            max: str | None = None,
        ) -> None: ...
    class ReceiveBuffer(LabTable):
        """Receive buffer: a fixed size, or `{ min, initial, max }` as in Linux's `tcp_rmem`, autotuned; by
            default 4 KiB, 128 KiB and 6 MiB. `traffic.NAME.receive_buffer` of a lab.

        min: Size that is always granted. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB).
            Example: "64 KiB".
        initial: Size at the start of a connection. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or
            GiB). Example: "64 KiB".
        max: Largest size that autotuning may give the buffer. Takes a size with its unit (B, kB, KiB, MB,
            MiB, GB or GiB). Example: "64 KiB".
        """

        def __init__(
            self,
            *,
            min: str | None = None,
            initial: str | None = None,
            max: str | None = None,
        ) -> None: ...
    class SenderClock(LabTable):
        """Clock of the sending host's timestamps: `offset` at the start of the run (by default drawn for each
            connection), `skew_ppm` by which it runs fast (by default 0), and the length of its `tick` (by
            default 1 ms). The hosts of the live engine share one clock. `traffic.NAME.sender_clock` of a
            lab.

        offset: The clock's value at the start of the run. By default it is drawn for each connection, as
            Linux gives each connection an offset of its own (4.10 and later, `net.ipv4.tcp_timestamps` =
            1). Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        skew_ppm: Skew in millionths: positive if the clock runs fast, negative if it runs slow (-100000 to
            100000). Takes a whole number from -100000 to 100000. Default: 0. Example: 0.
        tick: Length of a tick (1 us to 1 s). Linux has 1 ms since 4.13, had 4 ms before with HZ = 250, and
            has 1 us on a route with `tcp_usec_ts` (6.7). Takes a time with its unit (ns, us, ms, s, min or
            h). Default: "1 ms". Example: "25 ms".
        """

        def __init__(
            self,
            *,
            offset: str | None = None,
            skew_ppm: int | None = None,
            tick: str | None = None,
        ) -> None: ...
    class ReceiverClock(LabTable):
        """Clock of the receiving host's timestamps, with the keys of `sender_clock`.
            `traffic.NAME.receiver_clock` of a lab.

        offset: The clock's value at the start of the run. By default it is drawn for each connection, as
            Linux gives each connection an offset of its own (4.10 and later, `net.ipv4.tcp_timestamps` =
            1). Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        skew_ppm: Skew in millionths: positive if the clock runs fast, negative if it runs slow (-100000 to
            100000). Takes a whole number from -100000 to 100000. Default: 0. Example: 0.
        tick: Length of a tick (1 us to 1 s). Linux has 1 ms since 4.13, had 4 ms before with HZ = 250, and
            has 1 us on a route with `tcp_usec_ts` (6.7). Takes a time with its unit (ns, us, ms, s, min or
            h). Default: "1 ms". Example: "25 ms".
        """

        def __init__(
            self,
            *,
            offset: str | None = None,
            skew_ppm: int | None = None,
            tick: str | None = None,
        ) -> None: ...
    class Start(LabTable):
        """When its flows start: one time for all, a list that they take in turn, or a range, such as `{ from =
            "0 s", to = "9 s" }`. `traffic.NAME.start` of a lab.

        from_: The first flow's time. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25
            ms".
        to: The last flow's time. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
        """

        def __init__(
            self,
            *,
            from_: str | None = None,
            to: str | None = None,
        ) -> None: ...
    class Overlay(LabTable):
        """How the overlay carries its flows: a table of `admit` (or `priority`, `cap`, `shape`), `deadline`,
            `size`, `coupled`, `class` and `group`; by default with their defaults if the lab has
            `[overlay]`. With false its packets take the path of least delay. `traffic.NAME.overlay` of a
            lab.

        admit: The utility by which each flow is admitted (`weir list utilities`); by default "log". In its
            place `priority`, `cap` and `shape` of LOG may stand here. Takes "log", "strap", "trap", "flog",
            "file", or a table. Example: "log".
        priority: Priority of LOG: flows share a bottleneck in proportion to it. Short for `admit = { kind =
            "log", priority = .. }`. Takes a number. Example: 1.0.
        cap: The most that each flow may send, of LOG. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or
            Gbit/s). Example: "10 Mbit/s".
        shape: Shape of LOG in seconds per bit; its inverse is subtracted from the rate. Takes a number.
            Example: 1.0.
        deadline: The time within which each packet must arrive; by default it need not. Takes a time with
            its unit (ns, us, ms, s, min or h). Example: "25 ms".
        size: Each flow ends when so many bytes of its payload were admitted; by default at its time alone.
            Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Example: "64 KiB".
        coupled: Name of a set of flows that are on together or not at all. Groups of one name are one set,
            which the planner of the node where they enter keeps together. Takes a text. Example: "NAME".
        class_: "control", "sensitive" or "normal"; by default sensitive if there is a deadline. Control has
            no deadline. Takes "normal", "sensitive", "control". Example: "normal".
        group: Name of the multicast group; by default the traffic group's own. Traffic groups of one name
            share its bin, and each names the members that its packets are for. Takes a text. Example:
            "viewers".
        """

        class Admit(LabTable):
            """The utility by which each flow is admitted (`weir list utilities`); by default "log". In its place
                `priority`, `cap` and `shape` of LOG may stand here. `traffic.NAME.overlay.admit` of a lab.

            priority: Priority p, above 0: flows share a bottleneck in proportion to it. Takes a number.
                Default: 1.0. Example: 1.0.
            cap: The most that the flow may send. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s).
                Default: "10 Mbit/s". Example: "10 Mbit/s".
            shape: Shape a in seconds per bit, above 0; its inverse is subtracted from the rate. Takes a number.
                Default: 20.0. Example: 20.0.
            kind: The name of what is used, as `weir list` prints it; the other keys are its parameters. Takes
                "log". Example: "log".
            rate: Nominal rate m of its payload; by default what its workload offers. Takes a rate with its unit
                (bit/s, kbit/s, Mbit/s or Gbit/s). Example: "3 Mbit/s".
            delta: delta, from 0 to below 1: by how much a flow of full inertia tolerates a higher price, and
                what part of its packets may be lost. Takes a number. Default: 0.2. Example: 0.2.
            steps: Steps n from nothing to the whole rate, from 1 to 1000. Takes a whole number of 0 or more.
                Default: 8. Example: 8.
            burst: Burst rate b, at least m: the most at which packets are admitted; by default twice m. Takes a
                rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Example: "2 Mbit/s".
            floor: The least that is worth anything, at most the cap. Takes a rate with its unit (bit/s, kbit/s,
                Mbit/s or Gbit/s). Default: "0 bit/s". Example: "10 Mbit/s".
            within: The time from its start within which it should end; `size` beside `admit` says what it has.
                Takes a time with its unit (ns, us, ms, s, min or h). Default: "60 s". Example: "25 ms".
            """

            def __init__(
                self,
                *,
                priority: float | None = None,
                cap: str | None = None,
                shape: float | None = None,
                kind: Literal["log"] | None = None,
                rate: str | None = None,
                delta: float | None = None,
                steps: int | None = None,
                burst: str | None = None,
                floor: str | None = None,
                within: str | None = None,
            ) -> None: ...
        def __init__(
            self,
            *,
            admit: str | Mapping[str, Value] | None = None,
            priority: float | None = None,
            cap: str | None = None,
            shape: float | None = None,
            deadline: str | None = None,
            size: str | None = None,
            coupled: str | None = None,
            class_: Literal["normal", "sensitive", "control"] | None = None,
            group: str | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        flows: int | None = None,
        workload: str | Mapping[str, Value] | None = None,
        transport: str | Mapping[str, Value] | None = None,
        cc: str | Mapping[str, Value] | None = None,
        ecn: Literal[True, False, "ect0", "ect1"] | None = None,
        dscp: str | int | None = None,
        feedback: Literal["classic", "dctcp", "accurate"] | None = None,
        window_scaling: bool | None = None,
        sack: bool | None = None,
        rto_min: str | None = None,
        limited_transmit: bool | None = None,
        delayed_ack: str | None = None,
        window_updates: bool | None = None,
        direction: Literal["down", "up"] | None = None,
        host: str | None = None,
        rtt: str | Sequence[str] | Mapping[str, Value] | None = None,
        send_buffer: str | Mapping[str, Value] | None = None,
        receive_buffer: str | Mapping[str, Value] | None = None,
        pacing: bool | None = None,
        sender_clock: Mapping[str, Value] | None = None,
        receiver_clock: Mapping[str, Value] | None = None,
        start: str | Sequence[str] | Mapping[str, Value] | None = None,
        stop: str | None = None,
        from_: str | None = None,
        to: str | Sequence[str] | None = None,
        multicast: str | Sequence[str] | None = None,
        overlay: bool | Mapping[str, Value] | None = None,
        hop: int | None = None,
        via: Sequence[str] | None = None,
        back: Sequence[str] | None = None,
        ip: Literal[4, 6] | None = None,
    ) -> None: ...

class Nic(LabTable):
    """Network cards, by the names of the hosts that groups send from (`host`). `nic` of a lab.

    rate: Rate at which it sends. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Example:
        "10 Mbit/s".
    hosts: How many equal hosts the name stands for, each with a card of its own; by default one. A
        group's flows (or their sources, if the flows arrive at random) are assigned to them in turn.
        The hosts and the links of their cards are named NAME-1, NAME-2 and so on. Takes a whole number
        of 0 or more. Default: 1. Example: 1.
    mtu: Largest IP packet that it sends or receives; by default the largest that all links on the paths
        of its groups carry. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Example: "64
        KiB".
    queue: The queue in front of it; by default tail drop of 1000 packets, as in Linux. Takes the name
        of a queue, or a table with its name as `kind` and its parameters (`weir list`). Example:
        "tail-drop".
    refuses: Whether packets for which its queue has no room stay in the host, unsent, as on Linux; by
        default true. Otherwise the queue drops them. Takes true or false. Default: True. Example: True.
    shaper: The shaper that implements its queue in live runs: "kernel" is Linux's own, for `tbf`, `htb`
        and `tail-drop`. Without it, the lab runs on the simulator only. The simulator ignores it. Takes
        "kernel". Example: "kernel".
    small_queues: Whether TCP bounds the data of each flow that waits in its queue (TCP small queues,
        Linux 3.6 and newer); by default true. Takes true or false. Default: True. Example: True.
    schedule: Changes of its queue over time: `[{ at = "10 s", queue = { kind = "htb", classes = [..] }
        }]`, all parameters of a queue of the same kind, `tbf` or `htb`. On the simulator only. Takes a
        list; each: a table.
    """

    class Schedule(LabTable):
        """Changes of its queue over time: `[{ at = "10 s", queue = { kind = "htb", classes = [..] } }]`, all
            parameters of a queue of the same kind, `tbf` or `htb`. On the simulator only.
            `nic.NAME.schedule` of a lab.

        at: When, from the start of the run. Takes a time with its unit (ns, us, ms, s, min or h). Example:
            "25 ms".
        queue: Its parameters from then on; classes of `htb` are matched by name. Waiting packets stay,
            except those of a class that is no longer named. Takes the name of a queue, or a table with its
            name as `kind` and its parameters (`weir list`). Example: "tail-drop".
        """

        def __init__(
            self,
            *,
            at: str | None = None,
            queue: str | Mapping[str, Value] | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        rate: str | None = None,
        hosts: int | None = None,
        mtu: str | None = None,
        queue: str | Mapping[str, Value] | None = None,
        refuses: bool | None = None,
        shaper: Literal["kernel"] | None = None,
        small_queues: bool | None = None,
        schedule: Sequence[Mapping[str, Value]] | None = None,
    ) -> None: ...

class Expect(LabTable):
    """Claims about the results, which `weir reproduce` judges. `expect` of a lab.

    row: The row of the study's table to which the claim belongs ("H1"): a row holds only if all its
        claims, from any of the study's labs, hold. Without it, the claim is a row by itself. Takes a
        text. Example: "H1".
    metric: The metric, with its unit, as `weir list metrics` names it (`utilisation_percent`). Takes a
        text. Example: "utilisation_percent".
    of: The traffic group, flow or link that the metric describes, or two groups, `["a", "b"]`, for a
        metric that compares them. Without it, the metric is that of the whole run. Takes a text, or a
        list; each: a text. Example: "bulk".
    class_: The codepoint of the packets, for a metric that a link has for each codepoint: "not-ect",
        "ect0", "ect1" or "ce", on arrival at the link that `of` names, or at the lab's first link.
        Takes "not-ect", "ect1", "ect0", "ce". Example: "not-ect".
    in_: One of the windows that `[run.windows]` names; by default the whole run after its warm-up.
        Takes a text. Example: "loaded".
    statistic: The statistic, for a metric that is a distribution; by default its mean. Takes "mean",
        "p1", "p25", "p50", "p75", "p99". Default: "mean". Example: "mean".
    where: The cells of the tree: for each named level a label, or a list of labels; by default all
        cells. Takes a table whose keys are names of your choice. Example: {'queue': 'pie'}.
    repeats: How a cell's repeats are combined; by default their mean. Takes "mean", "median",
        "deviation", "variation". Default: "mean". Example: "mean".
    against: The value to which this one is relative. With labels of levels, `{ background = "newreno"
        }`, it is that of the cell which has these labels there and the same ones on all other levels.
        It may be that of another group, `{ of = "foreground" }`, of another codepoint, `{ class =
        "ect0" }`, or of another window, `{ in = "before" }`. With `{ engine = "sim" }` it is that of
        the other engine, and is judged only where both engines have run. Several of these may be
        combined. Takes a table whose keys are names of your choice. Example: {'background': 'newreno'}.
    as_: How the two values are combined; by default the change, in percent. Takes "change", "ratio",
        "difference". Example: "change".
    along: Judges, instead of the metric's value, the point along a level at which it passes a bound: `{
        level = "rate", above = 50 }` is the number at the start of the first label at which the metric
        is above 50; `below` likewise. Takes a table.
    over: Whether a claim about several cells must hold for each of them or for their mean; by default
        for each. Takes "each", "mean". Default: "each". Example: "each".
    by: The level whose labels `value` or `order` lists. Takes a text. Example: "queue".
    value: The expected value, in the metric's unit or the unit of the combined value; with `by`, a
        table of labels with a value each. Takes a number, or a table whose keys are names of your
        choice. Example: 15.0.
    tolerance: How far the measured value may be from the expected one: a number in the same unit, or a
        share such as "5 %". Takes a number, or a text. Example: "5 %".
    at_least: The lowest accepted value. Takes a number. Example: 90.0.
    at_most: The highest accepted value. Takes a number. Example: 20.0.
    order: The order of the cells' values along `by`: `"a ~ b < c"` means that a and b both are less
        than c, and says nothing about a and b; `>` means that values fall. Takes a text. Example: "pie
        < tail-drop".
    source: The source of the value: a paper's section, figure or table, a standard, an issue. Takes a
        text. Example: "RFC 8033, section 4.2".
    differs: Why a difference is known and accepted, with a link to the evidence: an address, or a file
        such as "docs/why.md". Such claims are counted separately. Takes a text. Example:
        "docs/judge.md".
    """

    class Along(LabTable):
        """Judges, instead of the metric's value, the point along a level at which it passes a bound: `{ level
            = "rate", above = 50 }` is the number at the start of the first label at which the metric is
            above 50; `below` likewise. `expect.along` of a lab.

        level: The level. Its labels begin with numbers (`"130 Mbit/s"`) and are searched in the order of
            the tree. Takes a text. Example: "rate".
        above: The metric has passed if it is above this. Takes a number. Example: 1.0.
        below: The metric has passed if it is below this. Takes a number. Example: 1.0.
        """

        def __init__(
            self,
            *,
            level: str | None = None,
            above: float | None = None,
            below: float | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        row: str | None = None,
        metric: str | None = None,
        of: str | Sequence[str] | None = None,
        class_: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        in_: str | None = None,
        statistic: Literal["mean", "p1", "p25", "p50", "p75", "p99"] | None = None,
        where: Mapping[str, Value] | None = None,
        repeats: Literal["mean", "median", "deviation", "variation"] | None = None,
        against: Mapping[str, Value] | None = None,
        as_: Literal["change", "ratio", "difference"] | None = None,
        along: Mapping[str, Value] | None = None,
        over: Literal["each", "mean"] | None = None,
        by: str | None = None,
        value: float | Mapping[str, Value] | None = None,
        tolerance: float | str | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        order: str | None = None,
        source: str | None = None,
        differs: str | None = None,
    ) -> None: ...

class Plot(LabTable):
    """Two metrics against each other, drawn in the report. `plot` of a lab.

    title: Title above the plot. Takes a text. Example: "Goodput against the round-trip time".
    x: The metric on the horizontal axis. Takes a table.
    y: The metric on the vertical axis. Takes a table.
    colour: The level whose labels differ in colour; each choice on the other levels has a plot of its
        own. Takes a text. Example: "queue".
    """

    class X(LabTable):
        """The metric on the horizontal axis. `plot.x` of a lab.

        metric: The metric, as `weir list metrics` names it. Takes a text. Example: "rtt_ms".
        of: A traffic group, a flow or a link; by default the whole run. Takes a text. Example: "bulk".
        in_: A window of `[run.windows]`; by default the whole run after its warm-up. Takes a text. Example:
            "start".
        """

        def __init__(
            self,
            *,
            metric: str | None = None,
            of: str | None = None,
            in_: str | None = None,
        ) -> None: ...
    class Y(LabTable):
        """The metric on the vertical axis. `plot.y` of a lab.

        metric: The metric, as `weir list metrics` names it. Takes a text. Example: "rtt_ms".
        of: A traffic group, a flow or a link; by default the whole run. Takes a text. Example: "bulk".
        in_: A window of `[run.windows]`; by default the whole run after its warm-up. Takes a text. Example:
            "start".
        """

        def __init__(
            self,
            *,
            metric: str | None = None,
            of: str | None = None,
            in_: str | None = None,
        ) -> None: ...
    def __init__(
        self,
        *,
        title: str | None = None,
        x: Mapping[str, Value] | None = None,
        y: Mapping[str, Value] | None = None,
        colour: str | None = None,
    ) -> None: ...

class LabKeys(TypedDict, total=False):
    """The keys at the top of a lab."""

    format: Literal[1] | None
    name: str | None
    title: str | None
    extends: str | None
    run: Mapping[str, Value] | None
    dumbbell: Mapping[str, Value] | None
    chain: Mapping[str, Value] | None
    parking_lot: Mapping[str, Value] | None
    star: Mapping[str, Value] | None
    graph: Mapping[str, Value] | None
    stations: Mapping[str, Value] | None
    overlay: Mapping[str, Value] | None
    traffic: Mapping[str, Value] | None
    nic: Mapping[str, Value] | None
    vary: Mapping[str, Value] | None
    only: Mapping[str, Value] | None
    expect: Sequence[Mapping[str, Value]] | None
    plot: Sequence[Mapping[str, Value]] | None
    full: Mapping[str, Value] | None
    live: Mapping[str, Value] | None
