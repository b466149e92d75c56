"""Classes of stations. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence

from ._weir import Value
from ._labs import LabTable

class Policer(LabTable):
    """Token-bucket policer with three colours (RFC 2697): drops red packets, counts yellow ones. "policer"
        in a lab.

    at: The router at which it stands, by name: "left" or "right" of a dumbbell, "n0", "n1" and so on of
        a chain. Takes a text. Example: "r1".
    links: Links at that router, by name (`["down"]`): the station sees only packets that reach the
        router by one of them or leave it by one. By default it sees every packet. Takes a list; each: a
        text. Default: []. Example: [].
    rate: Committed information rate, counted in IP bytes. Takes a rate with its unit (bit/s, kbit/s,
        Mbit/s or Gbit/s). Default: "10 Mbit/s". Example: "10 Mbit/s".
    burst: Committed burst size: IP bytes that may pass as green after an idle time. A larger packet is
        never green. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "125 kB".
        Example: "64 KiB".
    excess_burst: Excess burst size: IP bytes that may pass as yellow beyond the committed burst. The
        excess bucket fills only while the committed bucket is full. Takes a size with its unit (B, kB,
        KiB, MB, MiB, GB or GiB). Default: "0 B". Example: "64 KiB".
    """

    def __init__(
        self,
        *,
        at: str | None = None,
        links: Sequence[str] | None = None,
        rate: str | None = None,
        burst: str | None = None,
        excess_burst: str | None = None,
    ) -> None: ...

class EcnBleacher(LabTable):
    """Middlebox that clears or rewrites ECN codepoints. "ecn-bleacher" in a lab.

    at: The router at which it stands, by name: "left" or "right" of a dumbbell, "n0", "n1" and so on of
        a chain. Takes a text. Example: "r1".
    links: Links at that router, by name (`["down"]`): the station sees only packets that reach the
        router by one of them or leave it by one. By default it sees every packet. Takes a list; each: a
        text. Default: []. Example: [].
    not_ect: New codepoint of packets that are not ECN-capable. Takes "not-ect", "ect1", "ect0", "ce".
        Default: "not-ect". Example: "not-ect".
    ect1: New codepoint of ECT(1) packets. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect".
        Example: "not-ect".
    ect0: New codepoint of ECT(0) packets. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect".
        Example: "not-ect".
    ce: New codepoint of CE packets. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect". Example:
        "not-ect".
    """

    def __init__(
        self,
        *,
        at: str | None = None,
        links: Sequence[str] | None = None,
        not_ect: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        ect1: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        ect0: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        ce: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
    ) -> None: ...

class AggregationPoint(LabTable):
    """Aggregation point: measures the path for the flows of an application and lets them share it as one.
        "aggregation-point" in a lab.

    at: The router at which it stands, by name: "left" or "right" of a dumbbell, "n0", "n1" and so on of
        a chain. Takes a text. Example: "r1".
    links: Links at that router, by name (`["down"]`): the station sees only packets that reach the
        router by one of them or leave it by one. By default it sees every packet. Takes a list; each: a
        text. Default: []. Example: [].
    application: The applications that may use the aggregation point. Packets of other applications pass
        unchanged. Takes a list; each: a table. Example: [{'id': 1, 'estimator': 'tfrc'}].
    peer_key: Key shared with the other AP, 32 hexadecimal digits. With a key, every header is of
        version 2 and sealed. Takes a text. Example: "00112233445566778899aabbccddeeff".
    flow_lifetime: Time for which a flow and its cells are kept after its last packet. `FLOW.num` counts
        the flow until then. The source gives no value. Takes a time with its unit (ns, us, ms, s, min
        or h). Default: "5 s". Example: "25 ms".
    application_lifetime: Time for which the measurements of an application are kept after its last
        packet. Takes a time with its unit (ns, us, ms, s, min or h). Default: "60 s". Example: "25 ms".
    loss_interval: Length of the intervals over which loss fractions are computed. The source gives no
        value. Takes a time with its unit (ns, us, ms, s, min or h). Default: "1 s". Example: "25 ms".
    reflections_per_second: Largest number of packets a second that the aggregation point reflects for
        each application. Takes a whole number of 0 or more. Default: 1000. Example: 1000.
    """

    def __init__(
        self,
        *,
        at: str | None = None,
        links: Sequence[str] | None = None,
        application: Sequence[Mapping[str, Value]] | None = None,
        peer_key: str | None = None,
        flow_lifetime: str | None = None,
        application_lifetime: str | None = None,
        loss_interval: str | None = None,
        reflections_per_second: int | None = None,
    ) -> None: ...

class OverlayNode(LabTable):
    """Node of the backpressure overlay: sends over every path at once; a lab places them by [overlay].
        "overlay-node" in a lab.

    at: The router at which it stands, by name: "left" or "right" of a dumbbell, "n0", "n1" and so on of
        a chain. Takes a text. Example: "r1".
    links: Links at that router, by name (`["down"]`): the station sees only packets that reach the
        router by one of them or leave it by one. By default it sees every packet. Takes a list; each: a
        text. Default: []. Example: [].
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

    def __init__(
        self,
        *,
        at: str | None = None,
        links: Sequence[str] | None = None,
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

class Echo(LabTable):
    """Responder: sends each datagram that is addressed to it back to where it came from. "echo" in a lab.

    at: The router at which it stands, by name: "left" or "right" of a dumbbell, "n0", "n1" and so on of
        a chain. Takes a text. Example: "r1".
    links: Links at that router, by name (`["down"]`): the station sees only packets that reach the
        router by one of them or leave it by one. By default it sees every packet. Takes a list; each: a
        text. Default: []. Example: [].
    """

    def __init__(
        self,
        *,
        at: str | None = None,
        links: Sequence[str] | None = None,
    ) -> None: ...
