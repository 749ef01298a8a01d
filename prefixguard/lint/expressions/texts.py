"""Text: templates, formats, what is printed into one, `+` and `%`.

Part of the third step of the linter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import clocks
from prefixguard.lint import facts as f
from prefixguard.lint.expressions import evaluation, picking
from prefixguard.lint.tables import LIFETIMES
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Value,
    Words,
    mixed,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def text(frame: Frame, node: f.Text) -> Value:
    parts = []
    for part in node.parts:
        value = evaluation.evaluate(frame, part)
        parts.append(printed(frame, value, part.at))
    return words(frame, parts, node.at)


def words(frame: Frame, parts: list[Value], at: f.At) -> Value:
    """Text made of these parts in this order."""
    flat: list[Value] = []
    for part in parts:
        if (
            isinstance(part.shape, Words)
            and not part.changes
            and len(flat) + len(part.shape.parts) <= MAX_PARTS
        ):
            flat.extend(part.shape.parts)
        else:
            flat.append(part)
    size = sum(part.size for part in parts)
    made = Value(shape=Words(tuple(flat[:MAX_PARTS])), size=size)
    return frame.traced(made, at, "put into a text")


def printed(frame: Frame, value: Value, at: f.At) -> Value:
    """A value as text: a set is written in no fixed order."""
    shape = value.shape
    if isinstance(shape, Items) and shape.kind == "set":
        return mixed([value], (picking.unordered(frame, at),))
    if isinstance(shape, Func):
        return NOTHING
    if isinstance(shape, External) and shape.name in {"os.environ", "process.env"}:
        return Value(
            (frame.change("PG209", "a dump of the environment", at, LIFETIMES.index("process"), order=True),)
        )
    if isinstance(shape, (Items, Fields, Instance)):
        return Value(value.flat(), value.all_refs(), size=value.size)
    return value


def format_(frame: Frame, node: f.Format) -> Value:
    value = printed(frame, evaluation.evaluate(frame, node.value), node.at)
    if value.flat() and node.spec:
        return transform(value, lambda change: clocks.formatted(change, node.spec, frame.knowledge))
    return value


_DIRECTIVE = re.compile(r"%(?:\((\w+)\))?[-#0 +]*[\d.*]*[sdifgrxXeEc]")


def percent(frame: Frame, node: f.Op, values: list[Value]) -> Value:
    template, argument = values[0], values[-1]
    if not isinstance(template.const, str) and not isinstance(template.shape, Words) and not template.size:
        return mixed(values) if not isinstance(argument.const, int) else NOTHING
    parts = argument.shape.parts if isinstance(argument.shape, Items) else ((False, argument),)
    pieces: list[Value] = [template.but(const=None)]
    pieces.extend(printed(frame, part, node.at) for _, part in parts)
    if isinstance(template.const, str) and not isinstance(argument.shape, Fields):
        literals = _DIRECTIVE.split(template.const)[::2]
        if len(literals) == len(parts) + 1:
            pieces = []
            for literal_part, (_, part) in zip(literals, parts, strict=False):
                pieces.append(Value(const=literal_part, size=len(literal_part)))
                pieces.append(printed(frame, part, node.at))
            pieces.append(Value(const=literals[-1], size=len(literals[-1])))
    return words(frame, pieces, node.at)
