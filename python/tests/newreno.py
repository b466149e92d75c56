"""NewReno as a Python class, in the integers of Linux: the example of a controller, which tests compare with weir's own."""

import weir

NO_THRESHOLD = 0x7FFFFFFF


class Segments:
    """A window in whole segments, as Linux keeps it."""

    def begin(self, start):
        self.mss, self.cwnd, self.ssthresh, self.count = start.mss, start.initial_window, NO_THRESHOLD, 0
        self.prior, self.reducing = None, False

    def remembered(self):
        return self.ssthresh if self.reducing else max(self.ssthresh, self.cwnd // 2 + self.cwnd // 4)


@weir.controller("python-newreno")
class NewReno(Segments, weir.Controller):
    """NewReno (RFC 5681), counted in segments as in Linux."""

    def __init__(self, start):
        self.begin(start)

    def window(self):
        return self.cwnd * self.mss

    def slow_start_threshold(self):
        return 2**64 - 1 if self.ssthresh == NO_THRESHOLD else self.ssthresh * self.mss

    def on_ack(self, ack):
        if not (ack.may_grow and ack.cwnd_limited):
            return
        delivered = ack.delivered_segments
        if self.cwnd < self.ssthresh:
            grown = min(self.cwnd + delivered, self.ssthresh)
            delivered -= grown - self.cwnd
            self.cwnd = grown
        if delivered:
            if self.count >= self.cwnd:
                self.count = 0
                self.cwnd += 1
            self.count += delivered
            if self.count >= self.cwnd:
                more, self.count = divmod(self.count, self.cwnd)
                self.cwnd += more

    def on_enter_recovery(self, congestion):
        self.prior = (self.cwnd, self.remembered()) if congestion.signal == "loss" else None
        self.ssthresh = self.cwnd = max(self.cwnd // 2, 2)
        self.count, self.reducing = 0, True

    def on_exit_recovery(self, now):
        self.reducing = False

    def on_undo(self, now):
        if self.prior:
            self.cwnd, self.ssthresh = max(self.cwnd, self.prior[0]), max(self.ssthresh, self.prior[1])
            self.prior = None
        self.reducing = False

    def on_timeout(self, timeout):
        if timeout.reduce:
            halved = max(self.cwnd // 2, 2)
            self.prior, self.ssthresh = (self.cwnd, self.remembered()), halved
        self.cwnd = -(-timeout.in_flight // self.mss) + 1
        self.count, self.reducing = 0, False

    def on_restart(self, restart):
        if restart.kind == "idle":
            self.ssthresh = self.remembered()
            floor = min(max(restart.initial_window, 1), self.cwnd)
            left = max(restart.idle - restart.rto, 0)
            while left > 0 and self.cwnd > floor:
                self.cwnd = max(self.cwnd // 2, floor)
                left = max(left - restart.rto, 0)
        elif restart.kind == "unused":
            used = max(restart.used, restart.initial_window)
            if used < self.cwnd:
                self.ssthresh = self.remembered()
                self.cwnd = (self.cwnd + used) // 2

    def state(self):
        return {"cwnd_segments": self.cwnd, "cwnd_cnt": self.count}
