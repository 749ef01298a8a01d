"""The value of any expression: each kind of fact has its reader.

Part of the third step of the linter; the readers stand beside this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint.calls import invoking
from prefixguard.lint.expressions import containers, members, operators, picking, texts
from prefixguard.lint.sinks import varying
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Either,
    Func,
    Items,
    Value,
    join,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def evaluate(frame: Frame, node: f.Expr | None) -> Value:
    """The value of an expression; `NOTHING` for one that carries nothing."""
    if node is None:
        return NOTHING
    if not READERS:
        READERS.update(_readers())
    reader = READERS.get(type(node))
    return reader(frame, node) if reader is not None else NOTHING


def literal(frame: Frame, node: f.Lit) -> Value:
    value = node.value
    return Value(const=value, size=len(value) if isinstance(value, str) else 0)


def call(frame: Frame, node: f.Call) -> Value:
    return invoking.call(frame, node)


def choice(frame: Frame, node: f.Choice) -> Value:
    evaluate(frame, node.test)
    from prefixguard.lint.summary import Guard

    frame.guards.append(Guard(node.test, "if"))
    then = evaluate(frame, node.then)
    frame.guards[-1] = Guard(node.test, "if", negated=True)
    other = evaluate(frame, node.other)
    frame.guards.pop()
    made = join(then, other)
    if isinstance(made.shape, Either) and varying.varies(frame, node.test):
        made = made.but(shape=made.shape._replace(varies=True, at=node.at, file=frame.file.index))
    return made


def function(frame: Frame, node: f.Function) -> Value:
    fid = (frame.file.index, node.index)
    frame.nested.append((fid, frame))
    return Value(shape=Func(fid, None, frame))


def assigned(frame: Frame, node: f.Assigned) -> Value:
    value = evaluate(frame, node.value)
    frame.store(node.target, value, node.at)
    return value


def yielded(frame: Frame, node: f.Yield) -> Value:
    if node.value is not None:
        value = evaluate(frame, node.value)
        if isinstance(value.shape, Items) and node.spread:
            frame.yielded.extend(value.shape.parts[:MAX_PARTS])
        else:
            frame.yielded.append((node.spread, frame.traced(value, node.at, "yielded")))
    return NOTHING


def spread(frame: Frame, node: f.Spread) -> Value:
    return evaluate(frame, node.value)


READERS: dict[type[f.Fact], Any] = {}
"""By kind of fact. Filled when first used: the readers import this module."""


def _readers() -> dict[type[f.Fact], Any]:
    return {
        f.Lit: literal,
        f.Name: members.name,
        f.Attr: members.attr,
        f.Index: picking.index,
        f.Slice: picking.slice_,
        f.Call: call,
        f.Text: texts.text,
        f.Format: texts.format_,
        f.Seq: containers.sequence,
        f.Map: containers.mapping,
        f.Spread: spread,
        f.Op: operators.operator,
        f.Choice: choice,
        f.Comp: containers.comprehension,
        f.Function: function,
        f.Assigned: assigned,
        f.Yield: yielded,
    }
