"""An object of a class of the project, made.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.calls import applying
from prefixguard.lint.known.order import Given
from prefixguard.lint.sinks import judging, naming
from prefixguard.lint.tables import SESSION
from prefixguard.lint.values import (
    NOTHING,
    Fields,
    Instance,
    Klass,
    Value,
    outlive,
    substitute,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def construct(frame: Frame, node: f.Call, klass: Klass, given: list[Given]) -> Value:
    """An object of a class of the project."""
    flow = frame.flow
    owner = klass.owner
    facts = flow.classes.klass(owner)
    positional = [value for arg, value in given if arg is None or (not arg.name and not arg.star)]
    named = {arg.name: value for arg, value in given if arg is not None and arg.name}
    for arg, value in given:
        if arg is not None and arg.star == 2 and isinstance(value.shape, Fields):
            named.update(value.shape.entries)
    constructor = flow.classes.constructor(owner)
    naming.keywords(frame, node, given, facts.name, built=True)
    if constructor is None:
        fields = dict(named)
        order = [
            name
            for item in reversed(flow.classes.lineage(owner))
            for name in flow.classes.klass(item).annotations
        ]
        fields.update(zip(order, positional, strict=False))
        made = Value(shape=Instance(owner, fields), size=sum(v.size for v in fields.values()))
        naming.constructed(
            frame, node, facts.name, Value(shape=Fields(fields, (), facts.name, node.at, frame.file.index))
        )
        return made
    summary = flow.summary(constructor)
    function = flow.function(constructor)
    arguments, _ = applying.matched(frame, function, None, positional, named, {})
    size = max(arguments, default=0) + 1
    args = tuple(arguments.get(index, NOTHING) for index in range(size))
    fields = {}
    if summary is not None:
        lookup = applying.resolver(frame, constructor, arguments, None, node.at)
        for name, value in summary.writes.items():
            fields[name] = substitute(value, lookup)
    made = Value(shape=Instance(owner, fields, args))
    if any(value.flat() for value in args):
        kept = {index: _kept(frame, value) for index, value in arguments.items()}
        lookup = applying.resolver(frame, constructor, kept, None, node.at)
        for pending in flow.classes.pending_of(owner, constructor):
            judging.replayed(
                frame, pending, substitute(pending.value, lookup), node.at, facts.name, built=True
            )
    naming.constructed(
        frame,
        node,
        facts.name,
        Value(shape=Fields({**fields, **named}, (), facts.name, node.at, frame.file.index)),
    )
    return made


def _kept(frame: Frame, value: Value) -> Value:
    """What an object was given when it was made lives as long as the object."""
    if frame.fid[1] < 0:
        return value
    return outlive(value, SESSION, "constructor")
