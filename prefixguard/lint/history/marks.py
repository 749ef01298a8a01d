"""Breakpoints that are put on messages: where they stand, and whether they stay on stored ones.

Part of the third step of the linter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import noting
from prefixguard.lint.knowledge import snake
from prefixguard.lint.summary import Hit, Sink
from prefixguard.lint.tables import TURN
from prefixguard.lint.values import (
    Fields,
    Items,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def breakpoint_set(frame: Frame, place: tuple[str, ...], at: f.At) -> None:
    """`message["cache_control"] = ...` on every message of a loop."""
    if "[]" not in place or noting.placed(frame) or not any(loop.over for loop in frame.loops):
        return
    if any(part in {"[-1]", "[<]"} for part in place[: place.index("[]")]):
        return
    frame.flow.marks.append((frame.file.index, at, True))


_MARKS = {"cache_control", "cacheControl", "cachePoint"}
_SYSTEM = re.compile(r"(^|_)system(_?(blocks|parts|messages|prompts?|content))?$")


def given_out(frame: Frame, source: f.Expr | None, body: list[f.Stmt]) -> None:
    """Breakpoints given out from the front: to each block of the system text, to the first large messages.

    body: what is done with each block, as facts. Where a test asks for the place
    of the block in the list (the last one, for example), nothing is said.
    """
    name = snake(walk.last_name(source))
    system = _SYSTEM.search(name) is not None
    if not system and not frame.is_list_name(walk.last_name(source)):
        return
    marked = [at for item in walk.inside(body) if (at := _marks_at(item)) is not None]
    if not marked:
        return
    tests = [item.test for item in walk.inside(body) if isinstance(item, (f.If, f.Choice))]
    if any(walk.is_place_test(test, frame.indexes) or walk.strings(test) & {"role"} for test in tests):
        return
    limited = any(
        walk.names(test) & walk.counters([*body] if isinstance(body, list) else [body]) for test in tests
    )
    if system:
        code, what = (
            "PG502",
            "each block of the system text takes a breakpoint, and none may be left for the tail",
        )
    elif limited:
        code, what = (
            "PG504",
            "breakpoints go to the earliest messages, so that the growing tail is left without one",
        )
    else:
        return
    change = frame.change(code, what, marked[0], TURN, confidence=0)
    sink = Sink("parameters", "name", frame.file.index, marked[0], "", 0, "is given a breakpoint")
    trace = tuple(frame.step(at, "a breakpoint is set") for at in marked)
    frame.flow.hits.append(Hit(change, sink, "parameters", trace, 0))


def _marks_at(item: Any) -> f.At | None:
    """Where a fact sets a breakpoint, if it does."""
    if isinstance(item, f.Map):
        keys = {key.value for key, _ in item.entries if isinstance(key, f.Lit)}
        return item.at if keys & _MARKS else None
    if isinstance(item, f.Assign):
        target = item.targets[0]
        return item.at if isinstance(target, (f.Index, f.Attr)) and walk.last_name(target) in _MARKS else None
    return None


def remember_breakpoint(frame: Frame, value: Value) -> None:
    for at in breakpoints(value):
        frame.flow.marks.append((frame.file.index, at, frame.talking or not frame.loops))


def breakpoints(value: Value, depth: int = 0) -> list[f.At]:
    """The places of all blocks with a breakpoint in a value."""
    shape = value.shape
    found: list[f.At] = []
    if depth > 6:
        return found
    if isinstance(shape, Fields):
        if ("cache_control" in shape.entries or "cachePoint" in shape.entries) and shape.at is not None:
            found.append(shape.at)
        for child in shape.entries.values():
            found.extend(breakpoints(child, depth + 1))
    elif isinstance(shape, Items):
        for _, part in shape.parts:
            found.extend(breakpoints(part, depth + 1))
    return found
