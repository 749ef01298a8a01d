"""Breakpoints and usage of one request: how many, in which order, and whether any.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint.history import marks
from prefixguard.lint.request import sent
from prefixguard.lint.sinks import arguments
from prefixguard.lint.summary import Hit, Sink
from prefixguard.lint.tables import LIFETIMES
from prefixguard.lint.values import (
    Change,
    Fields,
    Items,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


MAX_BREAKPOINTS = 4


def checked(
    frame: Frame,
    node: f.Call,
    api: str,
    values: dict[str, Value],
    systems: list[Value],
    given: list[Any],
    size: int,
    history: bool,
) -> None:
    found = [at for part in (values["tools"], *systems, values["messages"]) for at in marks.breakpoints(part)]
    names = arguments.argument_names(frame, given)
    if api in {"anthropic-messages", "bedrock-converse"}:
        if len(found) > MAX_BREAKPOINTS:
            _direct(
                frame,
                node,
                api,
                "PG502",
                f"{len(found)} breakpoints are set, the API takes {MAX_BREAKPOINTS}",
                2,
            )
        lives = [live for part in (values["tools"], *systems, values["messages"]) for live in _lives(part)]
        if "1h" in lives and "5m" in lives[: len(lives) - 1 - lives[::-1].index("1h")]:
            _direct(
                frame, node, api, "PG506", "a breakpoint of one hour stands behind one of five minutes", 2
            )
    if (
        api == "anthropic-messages"
        and not found
        and (history or frame.talking)
        and size >= sent.LONG
        and "cache_control" not in names
        and b"cache_control" not in frame.file.source
        and b"cacheControl" not in frame.file.source
    ):
        _direct(frame, node, api, "PG503", "no breakpoint is set, so nothing of this prompt is cached", 0)
    if api == "openai-chat":
        stream, _ = arguments.argument(frame, given, "stream")
        if (
            stream.const is True
            and "stream_options" not in names
            and not any(a is not None and a.star == 2 for a, _ in given)
        ):
            _direct(
                frame,
                node,
                api,
                "PG802",
                "the stream does not ask for usage, so cache hits cannot be seen",
                0,
            )


def _direct(frame: Frame, node: f.Call, api: str, code: str, what: str, confidence: int) -> None:
    change = Change(code, what, frame.file.index, node.at, LIFETIMES.index("turn"), confidence=confidence)
    sink = Sink("parameters", "request", frame.file.index, node.at, api, 2, "is sent")
    frame.flow.hits.append(Hit(change, sink, "parameters", (), confidence))


def _lives(value: Value, depth: int = 0) -> list[str]:
    shape = value.shape
    out: list[str] = []
    if depth > 6:
        return out
    if isinstance(shape, Fields):
        mark = shape.entries.get("cache_control")
        for name, child in shape.entries.items():
            if name != "cache_control":
                out.extend(_lives(child, depth + 1))
        if mark is not None and isinstance(mark.shape, Fields):
            ttl = mark.shape.entries.get("ttl")
            out.append(str(ttl.const) if ttl is not None and ttl.const else "5m")
    elif isinstance(shape, Items):
        for _, part in shape.parts:
            out.extend(_lives(part, depth + 1))
    return out
