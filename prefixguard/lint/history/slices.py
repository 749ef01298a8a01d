"""Windows: `messages[-20:]`, `messages[a:b] = ...`, `del messages[:n]`.

Part of the third step of the linter, called where a slice is read, assigned or deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation
from prefixguard.lint.history import noting
from prefixguard.lint.values import (
    NOTHING,
    External,
    Fields,
    Func,
    Items,
    Value,
    Words,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def sliced(frame: Frame, node: f.Slice, base: Value) -> Value:
    """`base[low:high]`: the newest messages are a window, the older ones a place."""
    shape = base.shape
    if isinstance(shape, (External, Func)) or isinstance(base.const, str):
        return Value(base.changes) if base.changes else NOTHING
    if isinstance(shape, Words) or (shape is None and base.size):
        return base.but(const=None, place=None)
    place = base.elements or ((*base.place, "[]") if base.place is not None else None)
    changes = base.changes
    if (
        any(change.grain for change in base.flat())
        and isinstance(node.high, f.Lit)
        and isinstance(node.high.value, int)
        and 0 < node.high.value <= 10
    ):
        from prefixguard.lint import clocks
        from prefixguard.lint.values import transform

        return transform(base, clocks.coarse)
    low = evaluation.evaluate(frame, node.low) if node.low is not None else NOTHING
    older = node.high is not None and not (isinstance(node.high, f.Lit) and node.high.value in {-1})
    listed = noting.is_list(frame, node.base, base)
    if node.low is not None and node.high is None and listed and _moves(node.low, low):
        definition = frame.definition(node.low)
        guard = (
            "quantised"
            if walk.is_quantised(node.low) or walk.is_quantised(definition)
            else noting.rarely(frame)
        )
        change = noting.note(frame, "PG301", "only the newest messages are kept", node.at, guard)
        if definition is not None and definition is not node.low:
            change = change.step(frame.step(definition.at, "the start of the window"))
        changes = unique((*changes, change))
    if older and place is not None:
        place = (*place[:-1], "[<]")
    if isinstance(shape, Items):
        parts = shape.parts
        if isinstance(low.const, int) and low.const > 0 and not any(s for s, _ in parts[: low.const]):
            parts = parts[low.const :]
        return Value(changes, (), Items(shape.kind, parts), elements=place)
    if not listed and shape is None and base.place is None:
        return base.but(changes=changes, origin="slice", _flat=None)
    return Value(changes, base.refs, None, elements=place, origin="slice")


def _moves(low: f.Expr, value: Value) -> bool:
    """Whether the start of a slice moves with the length of the list."""
    if isinstance(low, f.Lit):
        return isinstance(low.value, int) and low.value < 0
    if isinstance(low, f.Op) and low.op in {"u-", "-"}:
        return True
    if isinstance(value.const, int):
        return value.const < 0
    return True


def slice_assigned(frame: Frame, target: f.Slice, value: Value, at: f.At) -> None:
    """`messages[a:b] = value`."""
    base = evaluation.evaluate(frame, target.base)
    if not noting.is_list(frame, target.base, base):
        return
    whole = target.low is None and target.high is None
    summary = frame.knowledge.is_summary_name(noting.words_around(frame, target))
    if not whole or _summarised(frame, value):
        code = "PG303" if summary or _summarised(frame, value) else "PG302"
        change = noting.note(frame, code, "a part of the history is replaced", at, weak=True)
        noting.touch(frame, base.place or ("local:" + walk.last_name(target.base),), change)
        return
    for change in value.flat():
        if change.edit:
            noting.touch(frame, base.place or ("local:" + walk.last_name(target.base),), change)
            frame.flow.edits.setdefault(change.key, (change, frame.file.index, ""))


def _summarised(frame: Frame, value: Value) -> bool:
    return any(change.edit and change.code == "PG303" for change in value.flat())


def deleted(frame: Frame, target: f.Slice | f.Index, at: f.At) -> None:
    """`del messages[...]`."""
    base = evaluation.evaluate(frame, target.base)
    if not noting.is_list(frame, target.base, base) or isinstance(base.shape, Fields):
        return
    if isinstance(target, f.Index):
        key = evaluation.evaluate(frame, target.key)
        if (
            isinstance(key.const, str)
            or key.const == -1
            or noting.about_system(frame)
            or noting.is_last(frame, target.key, target.base)
        ):
            return
    elif (
        isinstance(target.low, f.Lit)
        and target.high is None
        and isinstance(target.low.value, int)
        and target.low.value < 0
    ) or (target.low is not None and target.high is None):
        return
    change = noting.note(frame, "PG301", "the oldest messages are dropped", at, weak=True)
    noting.touch(frame, base.place or ("local:" + walk.last_name(target.base),), change)
