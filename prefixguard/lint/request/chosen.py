"""What enters the cache key and is chosen: tools, model, thinking, tool choice, format, key.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.request import sent
from prefixguard.lint.sinks import judging, varying
from prefixguard.lint.summary import Hit, Pending, Sink
from prefixguard.lint.tables import SESSION, TURN
from prefixguard.lint.values import (
    Change,
    Either,
    Step,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_CHOICES = {"model": "PG405", "thinking": "PG406", "tool_choice": "PG407", "format": "PG408"}


def tools_given(frame: Frame, base: Sink, value: Value, node: f.Expr | None) -> None:
    sink = sent.sink_at(base, "tools", node)
    judging.judge(frame, sink, value)
    source = frame.definition(node)
    if source is None:
        return
    turnish = False
    for item in walk.inside(source):
        if isinstance(item, f.Comp):
            tests = [test for clause in item.clauses for test in clause.tests]
            turnish = turnish or any(_turnish(frame, test) for test in tests)
        elif isinstance(item, f.Call):
            name = walk.last_name(item.func).lower()
            picks = any(
                word in name
                for word in ("select", "filter", "relevant", "choose", "pick", "route", "retrieve")
            )
            turnish = turnish or (picks and any(_turnish(frame, arg.value) for arg in item.args))
        elif isinstance(item, f.Choice):
            turnish = turnish or varying.varies(frame, item.test)
    if isinstance(value.shape, Either) and value.shape.varies:
        turnish = True
    if turnish:
        change = frame.change("PG404", "the tool list is chosen anew", source.at, TURN, confidence=1)
        frame.flow.hits.append(Hit(change, sink, "tools", (Step(sink.file, sink.at, sink.label),), 1))


def _turnish(frame: Frame, node: Any) -> bool:
    for name in walk.names(node):
        plain = name.lower()
        if frame.is_list_name(name) or plain in {
            "query",
            "question",
            "user_input",
            "user_message",
            "step",
            "turn",
            "last_message",
            "last",
            "text",
            "prompt",
            "task",
            "stage",
            "phase",
            "mode",
        }:
            return True
    return False


def chosen(
    frame: Frame, sink: Sink, value: Value, position: str, known: frozenset[Any] = frozenset()
) -> None:
    """A parameter that enters the cache key: it must not vary from turn to turn."""
    if position == "key":
        for change in value.flat():
            if change.key in known or change.edit:
                continue
            made = judging.settled(frame, sink, change)
            if made is not None and made.lifetime < SESSION:
                made = made._replace(code="PG508", what=f"the cache key holds {made.what}")
                trace = (*made.trace, Step(sink.file, sink.at, sink.label))
                frame.flow.hits.append(Hit(made, sink, "parameters", trace, made.confidence))
        return
    code = _CHOICES.get(position)
    if code is None:
        return
    shape = value.shape
    if isinstance(shape, Either) and shape.varies:
        at = shape.at or sink.at
        change = Change(
            code,
            f"the {position.replace('_', ' ')} is chosen anew",
            shape.file if shape.file >= 0 else frame.file.index,
            at,
            TURN,
            confidence=2,
        )
        if not any(guard.kind == "handler" for guard in frame.guards):
            trace = (Step(change.file, at, "chosen here"), Step(sink.file, sink.at, sink.label))
            frame.flow.hits.append(Hit(change, sink, "parameters", trace, 2 if frame.talking else 1))
    for change in value.flat():
        if (
            change.key in known
            or change.edit
            or change.order
            or change.code not in {"PG110", "PG105"}
            or change.confidence == 0
        ):
            continue
        made = judging.settled(frame, sink, change)
        if made is not None and made.lifetime < SESSION:
            made = made._replace(code=code, what=f"the {position.replace('_', ' ')} depends on {made.what}")
            frame.flow.hits.append(
                Hit(
                    made,
                    sink,
                    "parameters",
                    (*made.trace, Step(sink.file, sink.at, sink.label)),
                    made.confidence,
                )
            )
    if value.all_refs() and len(frame.summary.pending) < 80:
        frame.summary.pending.append(Pending(sink, value, 4))
