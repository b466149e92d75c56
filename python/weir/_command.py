"""What `weir run LAB --dask ADDRESS` starts: a sweep over the cluster of a scheduler. It prints what was done as a line of JSON; mistakes
go to the standard error, with the exit status of the command line."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import _sweep, _weir
from ._weir import Error, Lab

CONNECTING = "10 s"
"""How long the scheduler may take to answer."""
WORDS = {
    "rerun=True": "--rerun",
    "out=DIR": "--out DIR",
    "carry=True": "--carry",
    "the same call": "the same command",
}
"""Arguments of Python as options of the command line."""


def main(arguments: list[str]) -> int:
    """Runs the sweep; returns the exit status."""
    parser = argparse.ArgumentParser(prog="weir run --dask")
    parser.add_argument("version")
    parser.add_argument("address")
    parser.add_argument("lab", type=Path)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path)
    for option in ("carry", "rerun", "no-report"):
        parser.add_argument(f"--{option}", action="store_true")
    asked = parser.parse_args(arguments)
    own = f"{_weir.__version__} ({_weir._COMMIT})"
    if own != asked.version:
        return _refuse(
            f"the package weir of python3 is version {own}, and this program is {asked.version}",
            "install the wheel of the same commit: make python",
        )
    try:
        lab = Lab._read(asked.lab, asked.set)
        with _client(asked.address) as client:
            result, done, kept = _sweep.swept(
                lab, client, out=asked.out, carry=asked.carry, rerun=asked.rerun, report=not asked.no_report
            )
    except Error as error:
        message, _, suggestion = str(error).partition("\n  help: ")
        return _refuse(message, suggestion, 1 if getattr(error, "runs_failed", False) else 2)
    except KeyboardInterrupt as interrupt:
        return _refuse(str(interrupt) or "interrupted", "", 130)
    print(json.dumps({"path": str(result.path), "done": done, "kept": kept}))
    return 0


def _client(address: str):
    try:
        from distributed import Client
    except ImportError as missing:
        raise _sweep.error(f"a sweep needs the package distributed: {missing}", "pip install distributed") from None
    try:
        return Client(address, timeout=CONNECTING)
    except (OSError, ValueError, TimeoutError) as why:
        raise _sweep.error(
            f"no scheduler answers at {address} ({why})", "start one with `dask scheduler`, and give the address that it prints"
        ) from None


def _refuse(message: str, suggestion: str, status: int = 2) -> int:
    for text in ([f"weir: {message}", f"  help: {suggestion}"] if suggestion else [f"weir: {message}"]):
        for word, option in WORDS.items():
            text = text.replace(word, option)
        print("".join(each if each.isprintable() or each == "\n" else "?" for each in text), file=sys.stderr)
    return status
