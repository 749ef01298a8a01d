"""One door to files that other tools wrote: the format is told by the content, captures come out.

Used by `prefixguard import`, which stores them, and by every reading command,
which analyses them without storing anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from prefixguard.errors import InputError
from prefixguard.exchange import Capture
from prefixguard.importers.captures import SESSION, capture_of
from prefixguard.importers.exchange_log import read_log
from prefixguard.importers.formats import (
    HEAD,
    FormatRule,
    named_format,
    packaged_formats,
    recognise,
    records_of,
)
from prefixguard.importers.order import in_time_order
from prefixguard.importers.records import opened
from prefixguard.importers.told import Told

OWN = "exchange-log"
TRACE = "hash-trace"
_READERS = {
    "claude-code": "claude_code",
    "codex": "codex",
    "har": "har",
    "langfuse": "langfuse",
    "litellm": "litellm",
    "mini-swe-agent": "trajectory",
    "mitmproxy": "flows",
    "otel": "otel",
}
"""The module whose `read` reads a format, imported when a file of it comes."""
_KEPT_ORDER = frozenset({"claude-code", "codex", OWN})
"""Formats whose threads come one behind the other, or in order already."""


def format_of(path: Path) -> FormatRule | None:
    """The format of a file, None for one that is not known. Raises InputError when it cannot be read."""
    with opened(path) as stream:
        return recognise(stream)


def read_foreign(path: Path, rule: FormatRule, told: Told, session: str | None = None) -> Iterator[Capture]:
    """The requests to models in a file, by time. session: the name of the run that all of them belong to.

    told: takes what has to be said of the file. Raises InputError when nothing of it can be read.
    """
    told.title = rule.title
    if rule.name == TRACE:
        raise InputError(
            f"{path}: a trace of hashed blocks holds no requests; `prefixguard simulate` plays it, "
            "nothing else can be said of it"
        )
    if rule.name == OWN:
        captures = _own(path, told)
    else:
        read: Callable[[Path, FormatRule, Told], Iterator[Capture]] = importlib.import_module(
            f"prefixguard.importers.{_READERS[rule.name]}"
        ).read
        captures = read(path, rule, told)
    if rule.name not in _KEPT_ORDER:
        captures = in_time_order(captures)
    for capture in captures:
        yield capture if session is None else _named(capture, session)


def which_format(path: Path, name: str | None) -> FormatRule:
    """The named format, or the one that the file shows. Raises InputError naming those that are known."""
    if name is not None:
        return named_format(name)
    found = format_of(path)
    if found is not None:
        return found
    with opened(path) as stream:
        keys = next(iter(records_of(stream.read(HEAD))), frozenset())
    top = sorted(key for key in keys if "." not in key)
    said = f"; its first record has {', '.join(top[:8])}" if top else "; it holds no JSON records"
    raise InputError(
        f"{path}: not a format that is known ({', '.join(packaged_formats())}){said}; name it with --from"
    )


def _own(path: Path, told: Told) -> Iterator[Capture]:
    for number, exchange in enumerate(read_log(path), 1):
        told.took()
        yield capture_of(exchange, number)


def _named(capture: Capture, session: str) -> Capture:
    return replace(capture, headers={**capture.headers, SESSION: session})
