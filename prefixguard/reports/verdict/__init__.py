"""The gate's verdict, one file per format: the verdict and the catalogue in, bytes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from prefixguard.gate import Fault, Verdict
from prefixguard.rulebook import FindingRule

FORMATS = ("text", "json", "junit", "github", "sarif", "markdown")

type Rows = Mapping[str, Sequence[int]]
"""By input, where it is a log: the line of each of its exchanges, from 1."""

type Write = Callable[[Verdict, Mapping[str, FindingRule], Rows], bytes]


def written(name: str, verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """The verdict in one of `FORMATS`, in UTF-8 with a final line end."""
    module = import_module(f"prefixguard.reports.verdict.{name}")
    write: Write = module.write
    return write(verdict, findings, rows)


def row_of(fault: Fault, rows: Rows) -> int | None:
    """The line of the log that holds the fault's exchange; None where there is no such line."""
    lines = rows.get(fault.input, ())
    return lines[fault.turn.index] if fault.turn.index < len(lines) else None
