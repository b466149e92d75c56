"""Classes of workloads. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence

from ._weir import Value
from ._labs import LabTable

class Bulk(LabTable):
    """A stream that always has data to send. "bulk" in a lab.

    writes: How the application writes. `blocking` sleeps until a third of the socket's buffer is free;
        `greedy` always keeps it full, so that there are no bursts. Takes "blocking", "greedy". Default:
        "blocking". Example: "blocking".
    """

    def __init__(
        self,
        *,
        writes: Literal["blocking", "greedy"] | None = None,
    ) -> None: ...

class Transfer(LabTable):
    """A stream that sends a given number of bytes and closes. "transfer" in a lab.

    size: Number of bytes to send. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default:
        "1 MB". Example: "64 KiB".
    """

    def __init__(
        self,
        *,
        size: str | None = None,
    ) -> None: ...

class Web(LabTable):
    """Short flows that arrive at random, each a connection of its own. "web" in a lab.

    rate: Mean number of flows of the group that begin each second; 10 unless this or `load` is given.
        Takes a number. Example: 1.0.
    load: Mean offered load of all flows of the group, instead of `rate`, which then follows from the
        mean size. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Example: "10 Mbit/s".
    size: Size of each flow: a fixed size (`"30 kB"`), Pareto (`{ shape = 1.2, mean = "30 kB", cap = "3
        MB" }`), or a list with weights (`[{ size = "1 kB", weight = 9 }, { size = "1 MB", weight = 1
        }]`). Takes a text, or a table, or a list; each: a table. Example: "30 kB".
    """

    def __init__(
        self,
        *,
        rate: float | None = None,
        load: str | None = None,
        size: str | Mapping[str, Value] | Sequence[Mapping[str, Value]] | None = None,
    ) -> None: ...

class Requests(LabTable):
    """Requests and answers over a connection, with think times in between. "requests" in a lab.

    request: Length of a request: a size, a Pareto distribution or a list, as in `web`. Takes a text, or
        a table, or a list; each: a table. Default: "400 B". Example: "400 B".
    response: Length of an answer: a size, a Pareto distribution or a list, as in `web`. Takes a text,
        or a table, or a list; each: a table. Default: "30 kB". Example: "30 kB".
    think: Mean think time between an answer and the client's next request. Takes a time with its unit
        (ns, us, ms, s, min or h). Default: "500 ms". Example: "25 ms".
    think_times: Distribution of the think times: `fixed` or `exponential`. Takes "fixed",
        "exponential". Default: "exponential". Example: "exponential".
    """

    def __init__(
        self,
        *,
        request: str | Mapping[str, Value] | Sequence[Mapping[str, Value]] | None = None,
        response: str | Mapping[str, Value] | Sequence[Mapping[str, Value]] | None = None,
        think: str | None = None,
        think_times: Literal["fixed", "exponential"] | None = None,
    ) -> None: ...

class Http(LabTable):
    """One resource over HTTP: the receiving host requests it, and closes when it has the whole answer.
        "http" in a lab.

    size: Length of the answer's content, without its header. Takes a size with its unit (B, kB, KiB,
        MB, MiB, GB or GiB). Default: "1 MB". Example: "64 KiB".
    """

    def __init__(
        self,
        *,
        size: str | None = None,
    ) -> None: ...

class Udp(LabTable):
    """Datagrams at a constant rate. "udp" in a lab.

    rate: Rate in IP bytes. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Default: "1
        Mbit/s". Example: "10 Mbit/s".
    packet: Length of each IP packet, headers included: 28 bytes or more. Takes a size with its unit (B,
        kB, KiB, MB, MiB, GB or GiB). Default: "1500 B". Example: "64 KiB".
    ecn: ECN codepoint of each packet. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect".
        Example: "not-ect".
    source: What sends the packets: `fabric` injects them at exact times (live runs then have no sender
        noise), `socket` sends them as an application does. Takes "fabric", "socket". Default: "fabric".
        Example: "fabric".
    """

    def __init__(
        self,
        *,
        rate: str | None = None,
        packet: str | None = None,
        ecn: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        source: Literal["fabric", "socket"] | None = None,
    ) -> None: ...

class Onoff(LabTable):
    """Datagrams at a constant rate during on-times, and none during off-times. "onoff" in a lab.

    rate: Rate during on-times, in IP bytes. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or
        Gbit/s). Default: "1 Mbit/s". Example: "10 Mbit/s".
    on: Mean length of an on-time; at least 1 ms. Takes a time with its unit (ns, us, ms, s, min or h).
        Default: "1 s". Example: "25 ms".
    off: Mean length of an off-time. Takes a time with its unit (ns, us, ms, s, min or h). Default: "1
        s". Example: "25 ms".
    times: Distribution of these times: `fixed` or `exponential`. Takes "fixed", "exponential". Default:
        "exponential". Example: "exponential".
    packet: Length of each IP packet, headers included: 28 bytes or more. Takes a size with its unit (B,
        kB, KiB, MB, MiB, GB or GiB). Default: "1500 B". Example: "64 KiB".
    ecn: ECN codepoint of each packet. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect".
        Example: "not-ect".
    source: What sends the packets: `fabric` injects them at exact times, `socket` sends them as an
        application does. Takes "fabric", "socket". Default: "fabric". Example: "fabric".
    """

    def __init__(
        self,
        *,
        rate: str | None = None,
        on: str | None = None,
        off: str | None = None,
        times: Literal["fixed", "exponential"] | None = None,
        packet: str | None = None,
        ecn: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        source: Literal["fabric", "socket"] | None = None,
    ) -> None: ...

class Frames(LabTable):
    """Media frames in datagrams, several to a frame, with a deadline for each frame. "frames" in a lab.

    fps: Frames per second. Takes a number. Default: 30.0. Example: 30.0.
    size: Mean size of a frame, without headers. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or
        GiB). Default: "8 kB". Example: "64 KiB".
    pattern: Sizes of successive frames relative to each other, repeated: `[4, 1, 1, 1]` makes every
        fourth frame four times as large as the others, with the same mean. By default all frames have
        the same size. Takes a list; each: a number. Default: []. Example: [].
    spread: Largest relative deviation of a frame's size, drawn uniformly: 0.2 means up to a fifth more
        or less. Takes a number. Default: 0.0. Example: 0.0.
    deadline: A frame is on time if its last packet is read within this time after the frame was due to
        leave. Takes a time with its unit (ns, us, ms, s, min or h). Default: "100 ms". Example: "25
        ms".
    pace: Time over which the packets of a frame are spread evenly; 0 s sends them all at once. Takes a
        time with its unit (ns, us, ms, s, min or h). Default: "0 s". Example: "25 ms".
    packet: Length of a full IP packet, headers included. Takes a size with its unit (B, kB, KiB, MB,
        MiB, GB or GiB). Default: "1500 B". Example: "64 KiB".
    ecn: ECN codepoint of each packet. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect".
        Example: "not-ect".
    source: What sends the packets: `fabric` injects them at exact times, `socket` sends them as an
        application does. `stream` writes each frame whole to a stream, as of CP-RUDP or TCP, without
        packets of its own. Takes "fabric", "socket", "stream". Default: "fabric". Example: "fabric".
    adapt: How frames adapt to what the socket tells: `drop` drops whole frames, `shrink` makes them
        smaller. By default they do not adapt. A source `fabric` has no socket, so it cannot adapt.
        Takes "drop", "shrink". Example: "drop".
    least: The smallest part of its size to which `adapt = "shrink"` makes a frame, from 0 to 1; one
        that would become smaller is dropped. Takes a number from 0.0 to 1.0. Default: 0.2. Example:
        0.2.
    """

    def __init__(
        self,
        *,
        fps: float | None = None,
        size: str | None = None,
        pattern: Sequence[float] | None = None,
        spread: float | None = None,
        deadline: str | None = None,
        pace: str | None = None,
        packet: str | None = None,
        ecn: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
        source: Literal["fabric", "socket", "stream"] | None = None,
        adapt: Literal["drop", "shrink"] | None = None,
        least: float | None = None,
    ) -> None: ...

class Ping(LabTable):
    """Echo requests in datagrams, which measure round-trip times and losses. "ping" in a lab.

    interval: Time from one request to the next. Takes a time with its unit (ns, us, ms, s, min or h).
        Default: "100 ms". Example: "25 ms".
    packet: Length of each IP packet, headers included: 40 bytes or more. The default is that of
        ping(8). Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default: "84 B". Example:
        "64 KiB".
    timeout: Time after which a request without an answer is lost. Takes a time with its unit (ns, us,
        ms, s, min or h). Default: "2 s". Example: "25 ms".
    ecn: ECN codepoint of each packet. Takes "not-ect", "ect1", "ect0", "ce". Default: "not-ect".
        Example: "not-ect".
    """

    def __init__(
        self,
        *,
        interval: str | None = None,
        packet: str | None = None,
        timeout: str | None = None,
        ecn: Literal["not-ect", "ect1", "ect0", "ce"] | None = None,
    ) -> None: ...

class Ensembles(LabTable):
    """Frames of several flows that are captured at one instant and belong together. "ensembles" in a lab.

    size: Mean size of a frame. Takes a size with its unit (B, kB, KiB, MB, MiB, GB or GiB). Default:
        "25 KiB". Example: "64 KiB".
    pattern: The size of each flow's frames, `M` for large and `m` for small, repeated over the flows:
        "MMmmmm". By default all frames have the same size. Takes a text. Default: "". Example: "".
    dispersion: How much smaller small frames are, as a share of the mean; 0 up to but not including 1.
        Large frames are larger so that the mean is kept. Takes a number from 0.0 to 1.0. Default: 0.0.
        Example: 0.0.
    swap: Number of ensembles after which the pattern is shifted by as many flows as it has large
        frames; 0 means never. Takes a whole number of 0 or more. Default: 0. Example: 0.
    fps: Ensembles per second; by default the next one is captured when all flows are ready. Takes a
        number. Example: 1.0.
    adapt: How the source adapts to what its sockets tell: `drop` skips an ensemble whole if, when it is
        due, what waits in a flow's socket takes longer to leave than an ensemble's interval, or a flow
        is still writing. By default none is skipped. Needs `fps`. Takes "drop", "shrink". Example:
        "drop".
    """

    def __init__(
        self,
        *,
        size: str | None = None,
        pattern: str | None = None,
        dispersion: float | None = None,
        swap: int | None = None,
        fps: float | None = None,
        adapt: Literal["drop", "shrink"] | None = None,
    ) -> None: ...

class Command(LabTable):
    """Any command inside a host (live only). "command" in a lab.

    run: The command, as typed into a shell. Placeholders: `{sender}` and `{receiver}` are the hosts'
        addresses, `{port}` a port that no other flow uses, `{flow}` the flow's name, `{seed}` the run's
        seed, and `{duration}` the seconds from the command's start to the end of the run. Takes a text.
        Default: "". Example: "iperf3 -c {receiver} -p {port}".
    host: The host in which the command runs. Takes "sender", "receiver". Default: "sender". Example:
        "sender".
    peer: A command for the other host, for example a server. It starts just before and is ended with
        the run; its exit status is ignored. Takes a text. Example: "iperf3 -s -p {port}".
    environment: Environment variables for both commands, in addition to those of weir. Takes a table
        whose keys are names of your choice. Example: {'LANG': 'C'}.
    may_fail: Whether the run is valid if the command ends with a status other than 0. A run that fails
        because of a command is not retried, whatever `--retries` says, since the command's effects
        outside the lab would occur twice. Takes true or false. Default: False. Example: False.
    """

    def __init__(
        self,
        *,
        run: str | None = None,
        host: Literal["sender", "receiver"] | None = None,
        peer: str | None = None,
        environment: Mapping[str, Value] | None = None,
        may_fail: bool | None = None,
    ) -> None: ...
