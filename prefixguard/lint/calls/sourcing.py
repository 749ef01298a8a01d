"""Values read from a source of the table: clocks, ids, listings, processes.

Part of the third step of the linter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prefixguard.lint import clocks, walk
from prefixguard.lint import facts as f
from prefixguard.lint.expressions import picking
from prefixguard.lint.known.order import Given
from prefixguard.lint.tables import LIFETIMES, Source
from prefixguard.lint.values import (
    NOTHING,
    External,
    Items,
    Value,
    mixed,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def sourced(
    frame: Frame, source: Source, at: f.At, node: f.Call | None = None, given: Sequence[Given] = ()
) -> Value:
    """A value read from a source of the table."""
    if source.set:
        inner = picking.element(frame, given[0][1], at) if given else NOTHING
        return Value(shape=Items("set", ((True, _spread(inner)),) if given else ()))
    if source.code == "PG110" and _seeded(frame):
        return mixed([value for _, value in given])
    what = source.what
    if source.what == "the output of a process" and node is not None:
        words = " ".join(sorted(walk.strings([arg.value for arg in node.args])))
        if any(mark in words for mark in ("--version", "uname", "which ", "nproc")) or words in {
            "uname",
            "which",
            "-v",
            "node -v",
        }:
            return NOTHING
        if "git" in words.split() or words.startswith("git"):
            what = "the state of the repository"
    if (
        node is not None
        and node.new
        and source.grain
        and given
        and not any(isinstance(v.shape, External) for _, v in given)
    ):
        # `new Date(value)` is a given time, not the clock; a difference with one is.
        return mixed([value for _, value in given])
    if source.grain and not node and source.lifetime == "call":
        return NOTHING
    if (
        source.code in {"PG101", "PG103"}
        and given
        and dotted_is(node, ("strftime", "localtime", "gmtime", "ctime", "dayjs", "moment"))
    ):
        first = given[0][1]
        if dotted_is(node, ("strftime",)) and isinstance(first.const, str):
            if len(given) > 1:
                return mixed([v for _, v in given[1:]])
            change = frame.change(source.code, what, at, LIFETIMES.index(source.lifetime), grain="second")
            return Value((clocks.formatted(change, first.const, frame.knowledge),))
        if not dotted_is(node, ("strftime",)):
            return mixed([value for _, value in given])
    change = frame.change(
        source.code,
        what,
        at,
        LIFETIMES.index(source.lifetime),
        grain=source.grain,
        order=source.order,
        content=source.content,
        confidence=("low", "medium", "high").index(source.confidence),
    )
    rest = mixed([value for _, value in given]) if source.code == "PG110" else NOTHING
    if node is not None and source.code == "PG110" and dotted_is(node, ("shuffle",)) and node.args:
        shuffled = change._replace(order=True)
        base = given[0][1]
        frame.rebind(node.args[0].value, base.but(changes=unique((*base.changes, shuffled)), _flat=None))
        return Value((shuffled,), rest.refs)
    return Value(unique((change, *rest.flat())), rest.all_refs())


def dotted_is(node: f.Call | None, ends: tuple[str, ...]) -> bool:
    """Whether the called name ends in one of these."""
    return node is not None and walk.last_name(node.func) in ends


def _seeded(frame: Frame) -> bool:
    """Whether the file fixes the random generator with a constant."""
    key = f"seed:{frame.file.index}"
    known = frame.flow.modules.get(frame.file.index, {}).get(key)
    if known is None:
        found = False
        module = frame.file.module
        for body in [module.body, *(function.body for function in module.functions)]:
            for item in walk.inside(body):
                if (
                    isinstance(item, f.Call)
                    and walk.last_name(item.func) == "seed"
                    and item.args
                    and isinstance(item.args[0].value, f.Lit)
                ):
                    found = True
        known = Value(const=found)
        frame.flow.modules.setdefault(frame.file.index, {})[key] = known
    return bool(known.const)


def _spread(value: Value) -> Value:
    return Value(shape=Items("many", ((False, value),)))
