"""The line of code that sent a request, where whoever recorded the exchange knew it.

The pytest plugin writes it into the exchange (`source` and `callers` of a log
line); the analysis hands it on to the findings, so that reports, annotations
and SARIF can point at code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from prefixguard.finding import Finding, SourceLine

FIELD = "source"
CALLERS = "callers"


@dataclass(frozen=True, slots=True)
class Caller:
    """One frame of the stack that led to a request. Rows count from 1."""

    filename: str
    row: int
    function: str = ""


def call_site(extra: Mapping[str, bytes]) -> SourceLine | None:
    """The line that sent an exchange, from its extra fields; None where nobody knew it."""
    raw = extra.get(FIELD)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=SourceLine)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def callers(extra: Mapping[str, bytes]) -> tuple[Caller, ...]:
    """The frames that led to an exchange, the innermost first; () where nobody knew them."""
    raw = extra.get(CALLERS)
    if raw is None:
        return ()
    try:
        return msgspec.json.decode(raw, type=tuple[Caller, ...])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()


def as_extra(stack: tuple[Caller, ...]) -> dict[str, bytes]:
    """The extra fields of an exchange that was sent by this stack, the innermost frame first."""
    if not stack:
        return {}
    return {
        FIELD: msgspec.json.encode(SourceLine(stack[0].filename, stack[0].row)),
        CALLERS: msgspec.json.encode(stack),
    }


def with_source(findings: tuple[Finding, ...], extra: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """The findings, each with the line that sent the exchange unless it names a line already."""
    source = call_site(extra) if findings else None
    if source is None:
        return findings
    return tuple(f if f.source is not None else f.but(source=source) for f in findings)
