"""The line on sys.stderr that shows how far a session is."""

import sys
import time

BETWEEN_LINES = 10.0
"""Seconds between two lines where a line cannot be redrawn."""


class Line:
    """One line that is redrawn in a terminal or a notebook; elsewhere a plain line now and then."""

    def __init__(self):
        # A program that imports a notebook's client is no notebook: there, the kernel has put its own stream in place.
        self.redraws = sys.stderr is not None and (
            sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel.")
        )
        self.width = 0
        self.next = time.monotonic() + BETWEEN_LINES

    def show(self, text):
        """Shows a text in place of the one before."""
        if self.redraws:
            sys.stderr.write("\r" + text.ljust(self.width))
            self.width = len(text)
        elif sys.stderr is not None and time.monotonic() >= self.next:
            self.next = time.monotonic() + BETWEEN_LINES
            sys.stderr.write(f"weir: {text}\n")
        else:
            return
        sys.stderr.flush()

    def clear(self):
        """Removes the line."""
        if self.redraws and self.width > 0:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
