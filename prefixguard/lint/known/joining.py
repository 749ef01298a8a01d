"""Text from many parts: `join`, `format`, templates and their partial filling.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.calls import applying
from prefixguard.lint.expressions import picking, texts
from prefixguard.lint.known import order
from prefixguard.lint.values import (
    External,
    Fields,
    Func,
    Items,
    Value,
    mixed,
    transform,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def join_method(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[order.Given]
) -> Value | None:
    python = frame.file.family == "python"
    if isinstance(base.shape, External) or (python and not given):
        if isinstance(base.shape, External) and base.shape.name.endswith(("path", "posixpath")):
            return mixed([value for _, value in given])
        return None
    items = order.first(given) if python else base
    return joined(frame, items, node.at)


def joined(frame: Frame, items: Value, at: f.At) -> Value:
    """The parts of a list as one text."""
    shape = items.shape
    if isinstance(shape, Items):
        parts: list[Value] = []
        if shape.kind == "set":
            inner = picking.element(frame, items, at)
            return texts.words(frame, [texts.printed(frame, inner, at)], at)
        for spread, part in shape.parts:
            parts.append(texts.printed(frame, picking.element(frame, part, at) if spread else part, at))
        made = texts.words(frame, parts, at)
        own = tuple(change for change in items.changes if not change.edit)
        return made.but(changes=unique((*made.changes, *own))) if own else made
    value = texts.printed(frame, items, at)
    return frame.traced(
        Value(tuple(c for c in value.flat() if not c.edit), value.all_refs(), size=value.size),
        at,
        "joined into a text",
    )


def template(frame: Frame, node: f.Call, base: Value, given: list[order.Given]) -> Value | None:
    if isinstance(base.shape, External) and not given:
        return None
    parts = [base.but(const=None)] if not isinstance(base.shape, External) else []
    for _, value in given:
        if isinstance(value.shape, Fields):
            parts.extend(texts.printed(frame, part, node.at) for part in value.shape.entries.values())
            parts.extend(value.shape.spread)
        else:
            parts.append(texts.printed(frame, value, node.at))
    return texts.words(frame, parts, node.at)


def partial(frame: Frame, node: f.Call, base: Value, given: list[order.Given]) -> Value | None:
    """`prompt.partial(now=lambda: ...)`: a function is called anew for each use."""
    extra: list[Value] = []
    for arg, value in given:
        if arg is None or not arg.name:
            continue
        if isinstance(value.shape, Func):
            made = applying.apply(
                frame,
                value.shape.function,
                value.shape.bound,
                [],
                {},
                arg.value.at,
                "called for each prompt",
                value.shape.scope,
            )
            extra.append(transform(made, lambda change: change._replace(scope="hook")))
        else:
            extra.append(value)
    changed = [value for value in extra if value.flat()]
    if not changed:
        return base
    from prefixguard.lint.sinks import frameworks

    made = mixed(changed)
    frameworks.template_filled(frame, node, base, made)
    return base.but(changes=unique((*base.changes, *made.flat())), _flat=None)
