"""Classes of transports. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence

from ._weir import Value
from ._labs import LabTable

class Tcp(LabTable):
    """TCP as Linux implements it; on the live engine, the kernel's own. "tcp" in a lab.
    """

    ...

class Udp(LabTable):
    """Datagrams without congestion control. "udp" in a lab.
    """

    ...

class CpUdp(LabTable):
    """Datagrams without congestion control, with a header that aggregation points read. "cp-udp" in a lab.

    application: The application's id at the aggregation points (0 to 31). Takes a whole number from 0
        to 31. Default: 0. Example: 0.
    version: Version of the header: version 1, as published, has 20 bytes, version 2 has 36. Takes a
        whole number from 1 to 2. Default: 1. Example: 1.
    key: The application's key at the aggregation points, 32 hexadecimal digits. With a key, the header
        is of version 2 and sealed. Takes a text. Example: "00112233445566778899aabbccddeeff".
    answers: The receiving end answers datagrams with a header alone, at most once in this time. Only
        then do aggregation points measure the path of an application whose flows are all datagrams, and
        report to their senders. By default it does not answer. Takes a text. Example:
        "00112233445566778899aabbccddeeff".
    """

    def __init__(
        self,
        *,
        application: int | None = None,
        version: int | None = None,
        key: str | None = None,
        answers: str | None = None,
    ) -> None: ...

class Tfrc(LabTable):
    """A stream at TFRC's rate, without retransmissions (RFC 5348). "tfrc" in a lab.

    packet: Length of an IP packet, at most the path's MTU, which is the default. Takes a size with its
        unit (B, kB, KiB, MB, MiB, GB or GiB). Example: "64 KiB".
    discounting: Whether old loss intervals lose weight while the open interval is long (RFC 5348,
        section 5.5). Takes true or false. Default: True. Example: True.
    timeout_rtts: Retransmission timeout of the TCP in the equation, in round trips. Takes a number from
        1.0 to 100.0. Default: 4.0. Example: 4.0.
    """

    def __init__(
        self,
        *,
        packet: str | None = None,
        discounting: bool | None = None,
        timeout_rtts: float | None = None,
    ) -> None: ...

class Rap(LabTable):
    """A stream at RAP's rate, without retransmissions (Rejaie, Handley and Estrin 1999). "rap" in a lab.

    packet: Length of an IP packet, at most the path's MTU, which is the default. Takes a size with its
        unit (B, kB, KiB, MB, MiB, GB or GiB). Example: "64 KiB".
    decrease: Factor by which a loss multiplies the rate. Takes a number from 0.1 to 0.9. Default: 0.5.
        Example: 0.5.
    fine_grain: Whether the fine-grain signal adapts the rate to the round trip time. Takes true or
        false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        packet: str | None = None,
        decrease: float | None = None,
        fine_grain: bool | None = None,
    ) -> None: ...

class Rudp(LabTable):
    """A reliable stream at the rate that aggregation points report (CP-RUDP). "rudp" in a lab.

    application: The application's id at the aggregation points (0 to 31). Without an id, the flow keeps
        `rate` and its packets have no CP header. Takes a whole number from 0 to 31. Example: 1.
    scheme: How the application's flows split its total rate. Takes "equal", "weighted", "frames",
        "priority", "ensemble", or a table. Example: "equal".
    address: The general-purpose address (0 to 249) at which the application's flows write their numbers
        for the scheme. Takes a whole number from 0 to 249. Default: 0. Example: 0.
    rate: The flow's rate before the first report; without an application, its rate throughout. Takes a
        rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Default: "500 kbit/s". Example: "10
        Mbit/s".
    max_rate: The flow's maximum rate, whatever is reported. Takes a rate with its unit (bit/s, kbit/s,
        Mbit/s or Gbit/s). Default: "1 Gbit/s". Example: "10 Mbit/s".
    urgent: Whether the flow declares itself urgent while it has data. The scheme `priority` splits the
        rate above the other flows' floors among the urgent flows. Takes true or false. Default: False.
        Example: False.
    buffer_by_flowshare: Whether the send buffer is sized by the rate of a flowshare, as equation 6.2 is
        printed, instead of the flow's own rate. Takes true or false. Default: False. Example: False.
    jitter: Largest random change of a gap between two packets, as a share (0 to 1) of its length. Flows
        with the same rate then do not send in step. Takes a number from 0.0 to 1.0. Default: 0.0.
        Example: 0.0.
    burst: Number of packets that leave together (1 to 64), followed by a gap as long as all their gaps.
        TCP with delayed acknowledgements sends two. At most all but one of the packets of a round trip
        leave together, and one at a time while a loss is repaired. Takes a whole number from 1 to 64.
        Default: 1. Example: 1.
    messages_apart: Whether each message (a frame of an ensemble) begins in a packet of its own.
        Otherwise a packet may hold parts of two messages. Takes true or false. Default: False. Example:
        False.
    holes: When the sender retransmits the first missing segment, which acknowledgements name: "unused"
        (when three later packets were echoed), "once" (when one later packet was echoed) or "each"
        (with each acknowledgement that names it). Takes "unused", "once", "each". Default: "unused".
        Example: "unused".
    """

    def __init__(
        self,
        *,
        application: int | None = None,
        scheme: str | Mapping[str, Value] | None = None,
        address: int | None = None,
        rate: str | None = None,
        max_rate: str | None = None,
        urgent: bool | None = None,
        buffer_by_flowshare: bool | None = None,
        jitter: float | None = None,
        burst: int | None = None,
        messages_apart: bool | None = None,
        holes: Literal["unused", "once", "each"] | None = None,
    ) -> None: ...

class Relay(LabTable):
    """A stream as two TCP proxies of the overlay carry it, each packet admitted by its priority (the GNAT
        report). "relay" in a lab.
    """

    ...

class Sliq(LabTable):
    """Streams and datagrams over lossy paths, each with a reliability of its own (the GNAT report). "sliq"
        in a lab.

    stream: How the flow's stream is delivered. Takes a table.
    second: A second controller, which takes the packets that the group's `cc` may not send. A
        controller that fills buffers is suspended while a stream with a deadline needs it. Takes
        "newreno", "reno", "cubic", "bbr", "dctcp", "prague", "htcp", "vegas", "nice", "lp", "ledbat",
        "westwood", "westwood-lp", "ledbat-plus-plus", "ledbat++", "apple-ledbat", "cdg", "ctcp",
        "yield", "copa", or a table. Example: "newreno".
    coordination: The application of the Coordination Protocol in which the connection takes part as one
        flow. Packets then leave at the rate that aggregation points report, without a congestion
        controller. Takes a table.
    connection: Name of the connection that the flow's stream belongs to. Flows with the same name,
        between the same hosts, are streams of one connection. Takes a text. Example: "both".
    keepalive: A keepalive packet is sent after this time without a packet from the peer, 20 ms or more;
        by default, never. Takes a time with its unit (ns, us, ms, s, min or h). Example: "25 ms".
    idle: The connection ends after this time without a packet from the peer, if all data is
        acknowledged. Takes a time with its unit (ns, us, ms, s, min or h). Default: "5 min". Example:
        "25 ms".
    seal: Whether packets are encrypted and authenticated. Takes "none", "noise". Default: "none".
        Example: "none".
    search_mtu: Whether packets begin with a UDP payload of 1,200 bytes, grow to the size that the path
        is found to carry, and shrink when it no longer carries that size (RFC 8899). By default packets
        are as long as the lab's links allow. Takes true or false. Default: False. Example: False.
    fast_start: When packet pairs measure the path's rate at the start of a connection; congestion
        windows then open to that rate. Takes "never", "long", "always". Default: "long". Example:
        "long".
    """

    def __init__(
        self,
        *,
        stream: Mapping[str, Value] | None = None,
        second: str | Mapping[str, Value] | None = None,
        coordination: Mapping[str, Value] | None = None,
        connection: str | None = None,
        keepalive: str | None = None,
        idle: str | None = None,
        seal: Literal["none", "noise"] | None = None,
        search_mtu: bool | None = None,
        fast_start: Literal["never", "long", "always"] | None = None,
    ) -> None: ...
