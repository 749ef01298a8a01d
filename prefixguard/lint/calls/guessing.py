"""A call of something that the project does not hold.

Part of the third step of the linter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint.calls import applying
from prefixguard.lint.known.order import Given
from prefixguard.lint.sinks import naming
from prefixguard.lint.values import (
    NOTHING,
    External,
    Fields,
    Func,
    Instance,
    Value,
    merge_refs,
    mixed,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_WRITES = re.compile(
    r"(?i)format|render|str|text|fmt|print|serial|dump|join|encode|escape|wrap|indent|template|stamp|compile|build|concat|append|interp|fill|dedent|describe|markdown|html|iso"
)


def unknown(frame: Frame, node: f.Call, dotted: str, base: Value, given: list[Given]) -> Value:
    """A call of something that the project does not hold."""
    knowledge = frame.knowledge
    last = dotted.rsplit(".", 1)[-1]
    if dotted in knowledge.stops or last in knowledge.stop_methods or dotted.startswith(knowledge.stop_roots):
        return NOTHING
    naming.keywords(frame, node, given, dotted)
    for _, value in given:
        if isinstance(value.shape, Func) and value.shape.function[1] >= 0:
            applying.apply(
                frame,
                value.shape.function,
                value.shape.bound,
                [],
                {},
                node.at,
                "called back",
                value.shape.scope,
            )
    if last[:1].isupper() or node.new:
        entries: dict[str, Value] = {}
        spread: list[Value] = []
        position = 0
        for arg, value in given:
            if arg is None or arg.star:
                if isinstance(value.shape, Fields):
                    entries.update(value.shape.entries)
                else:
                    spread.append(value)
            elif arg.name:
                entries[arg.name] = value
            elif isinstance(value.shape, Fields) and len(given) == 1 and not value.shape.name:
                entries.update(value.shape.entries)
            else:
                entries[str(position)] = value
                position += 1
        made = Value(shape=Fields(entries, tuple(spread), dotted, node.at, frame.file.index))
        made.size = sum(value.size for value in entries.values())
        naming.constructed(frame, node, dotted, made)
        return made
    if isinstance(node.func, f.Attr) and base.flat():
        if isinstance(base.shape, (Fields, Instance)) and not given:
            return NOTHING if isinstance(base.shape, Instance) else Value(base.flat(), base.all_refs())
        return Value(
            tuple(change for change in base.flat() if not change.edit),
            merge_refs(base.all_refs(), *(v.all_refs() for _, v in given)),
        )
    values = [value for _, value in given if not isinstance(value.shape, Func)]
    made = mixed(values)
    for arg, value in given:
        if (
            arg is not None
            and isinstance(value.shape, Fields)
            and value.shape.name.endswith(("BytesIO", "StringIO", "Buffer"))
        ):
            # What is written into a buffer is what the buffer gives back.
            frame.rebind(
                arg.value,
                Value(unique((*value.changes, *made.flat())), made.refs, value.shape, place=value.place),
            )
    if not isinstance(base.shape, (External, Func)):
        made = Value(made.flat(), merge_refs(base.all_refs(), made.all_refs()))
    if not made.flat():
        return Value(refs=made.refs) if made.refs else NOTHING
    # What an unknown function makes of its arguments is a guess:
    # most look something up under an id or a time.
    if not _WRITES.search(last) and not node.new:
        kept = tuple(c for c in made.flat() if not c.edit and c.code not in {"PG104", "PG110", "PG206"})
        return Value(tuple(c._replace(confidence=0) for c in kept), made.refs)
    return Value(
        tuple(
            change._replace(confidence=max(0, change.confidence - 1))
            for change in made.flat()
            if not change.edit
        ),
        made.refs,
    )
