"""`map`, `filter`, `reduce` and their kin with a function of the project.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.calls import applying
from prefixguard.lint.expressions import picking
from prefixguard.lint.history import marks, splitting
from prefixguard.lint.known import order
from prefixguard.lint.values import (
    NOTHING,
    External,
    Func,
    Items,
    Value,
    mixed,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def called_back(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[order.Given]
) -> Value | None:
    target = order.first(given)
    name = func.name
    part = picking.element(frame, base, node.at)
    if not isinstance(target.shape, Func):
        if name == "filter":
            return base.but(
                place=None, elements=base.elements or ((*base.place, "[]") if base.place else None)
            )
        if isinstance(base.shape, External):
            return None
        return mixed([base])
    callback = target.shape
    made = applying.apply(
        frame,
        callback.function,
        callback.bound,
        [part, NOTHING, base],
        {},
        node.at,
        f"mapped by `{name}`",
        callback.scope,
    )
    if name in {"map", "flatMap", "forEach"} and callback.function[0] == frame.file.index:
        marks.given_out(frame, func.base, frame.flow.function(callback.function).body)
    if name in {"filter", "find", "findLast", "some", "every"}:
        if name in {"some", "every"}:
            return NOTHING
        if name != "filter":
            return part
        kept = base.but(place=None, elements=base.elements or ((*base.place, "[]") if base.place else None))
        return splitting.callback(frame, node, func, base, callback, kept, made)
    if name == "forEach":
        return NOTHING
    if name.startswith("reduce"):
        return mixed([made, *(value for _, value in given[1:])])
    result = Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, made),)))),)))
    if name == "flatMap" and isinstance(made.shape, Items):
        result = Value(shape=Items("list", made.shape.parts))
    if made.shape is None and made.place is not None and made.place[-1:] == ("[]",):
        result = base
    return splitting.callback(frame, node, func, base, callback, result, made)


def filled(frame: Frame, value: Value, at: f.At) -> Value:
    """What a replacement gives: a text, or what a function returns for each match."""
    shape = value.shape
    if not isinstance(shape, Func) or shape.function[1] < 0:
        return value
    return applying.apply(frame, shape.function, shape.bound, [], {}, at, "filled in by it", shape.scope)
