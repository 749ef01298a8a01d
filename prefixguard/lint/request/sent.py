"""All parts of one request, judged; and a note that it is sent.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.request import breakpoints, chosen, turns
from prefixguard.lint.sinks import judging
from prefixguard.lint.summary import Hit, Sink
from prefixguard.lint.tables import SESSION, TURN, SinkCall
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Fields,
    Items,
    Step,
    Value,
    Words,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


LONG = 4096


_SHARED = 1000


def sent(
    frame: Frame,
    node: f.Call,
    spec: SinkCall,
    sdk: str,
    values: dict[str, Value],
    systems: list[Value],
    nodes: dict[str, f.Expr | None],
    given: list[Any],
) -> None:
    """Judge all parts of one request."""
    kind = "built" if spec.built else "request"
    api = spec.api or sdk
    base = Sink(
        "messages",
        kind,
        frame.file.index,
        node.at,
        api,
        2,
        f"is sent by `{walk.dotted(node.func) or sdk}`",
        talks=frame.talking,
    )
    listed = values["messages"]
    size = sum(value.size for value in [*systems, values["tools"]]) + _system_size(listed)
    history = turns.has_history(frame, listed)
    base.one_shot = not (
        history or frame.talking or spec.built or size >= LONG or values["tools"] is not NOTHING
    )
    if listed is NOTHING and not spec.built and spec.messages is not None:
        base.one_shot = False
    for system in systems:
        if system is not NOTHING:
            sink = sink_at(base, "system", nodes.get("system"))
            judging.judge(frame, sink, judging.called(frame, system, node.at))
    if listed is not NOTHING:
        turns.messages(frame, base, listed)
    if values["tools"] is not NOTHING:
        chosen.tools_given(frame, base, values["tools"], nodes.get("tools"))
    if not spec.built:
        _covered(frame, base, [values["tools"], *systems])
        _volatile_first(frame, base, systems, listed)
    for part in ("model", "thinking", "tool_choice", "format", "key"):
        if values[part] is not NOTHING:
            chosen.chosen(frame, sink_at(base, part, None), values[part], part)
    if not spec.built:
        breakpoints.checked(frame, node, api, values, systems, given, size, history)
        _record(frame, node, api, values, systems, history)


def _covered(frame: Frame, base: Sink, values: list[Value]) -> None:
    """Breakpoints on blocks that change: what they write is never read."""
    for value in values:
        parts = turns.flattened(value) if isinstance(value.shape, Items) else [(False, value)]
        for _, part in parts:
            shape = part.shape
            if not isinstance(shape, Fields) or "cache_control" not in shape.entries or shape.at is None:
                continue
            for change in part.flat():
                settled = judging.settled(frame, base, change) if not change.edit else None
                if settled is None or settled.lifetime >= SESSION or settled.confidence == 0:
                    continue
                covered = Change(
                    "PG501",
                    f"a breakpoint covers {settled.what}",
                    shape.file,
                    shape.at,
                    TURN,
                    confidence=settled.confidence,
                )
                trace = (*settled.trace, Step(base.file, base.at, base.label))
                frame.flow.hits.append(
                    Hit(covered, sink_at(base, "parameters", None), "parameters", trace, 0)
                )
                break


def _volatile_first(frame: Frame, base: Sink, systems: list[Value], listed: Value) -> None:
    """Text that is known to be the same behind text that is not: the other order would be shared."""
    texts = [value for value in systems if isinstance(value.shape, Words)]
    if isinstance(listed.shape, Items) and not turns.has_history(frame, listed):
        texts.extend(
            content
            for _, part in turns.flattened(listed)
            if isinstance((content := turns.spoken(part)).shape, Words)
        )
    for text in texts:
        assert isinstance(text.shape, Words)
        parts = text.shape.parts
        first = next((i for i, part in enumerate(parts) if part.all_refs() and not part.size), None)
        if first is None:
            continue
        behind = sum(part.size for part in parts[first + 1 :])
        if behind < _SHARED:
            continue
        change = Change(
            "PG510",
            "a text that differs stands before a text that is always the same",
            frame.file.index,
            base.at,
            TURN,
        )
        frame.flow.hits.append(Hit(change, sink_at(base, "parameters", None), "parameters", (), 0, behind))


def sink_at(base: Sink, position: str, node: f.Expr | None) -> Sink:
    return Sink(
        position,
        base.kind,
        base.file,
        base.at,
        base.api,
        base.confidence,
        base.label,
        base.one_shot,
        base.scope,
        base.talks,
    )


def _system_size(listed: Value) -> int:
    if not isinstance(listed.shape, Items):
        return 0
    return sum(part.size for _, part in listed.shape.parts if turns.role_of(part) in {"system", "developer"})


def template(frame: Frame, node: f.Call, spec: SinkCall, value: Value) -> Value:
    """`ChatPromptTemplate.from_messages([("system", text), ...])`: filled anew for each request."""
    sink = Sink("system", "built", frame.file.index, node.at, spec.api, 2, "is part of the prompt template")
    for _, part in turns.flattened(value):
        shape = part.shape
        if (
            isinstance(shape, Items)
            and len(shape.parts) == 2
            and shape.parts[0][1].const in {"system", "developer"}
        ):
            judging.judge(frame, sink, shape.parts[1][1])
        elif turns.role_of(part) == "system":
            judging.judge(frame, sink, turns.spoken(part))
    return Value(
        shape=Fields({"0": value}, name="template", at=node.at, file=frame.file.index), origin="template"
    )


def _record(
    frame: Frame, node: f.Call, api: str, values: dict[str, Value], systems: list[Value], history: bool
) -> None:
    """Note the request, so that side requests can be told from the main one."""
    listed = values["messages"]
    quotes = False
    if not history and isinstance(listed.shape, Items):
        for ref in listed.all_refs():
            names = [name for name in ref[2] if not name.startswith("[")]
            if not names:
                function = frame.flow.function(ref[0]) if ref[0][1] >= 0 else None
                offset = (
                    1
                    if function is not None and function.owner >= 0 and frame.file.family == "typescript"
                    else 0
                )
                if function is not None and 0 <= ref[1] - offset < len(function.params):
                    names = [function.params[ref[1] - offset].name]
            quotes = quotes or any(frame.is_list_name(name) for name in names)
    frame.flow.requests.append(
        {
            "file": frame.file.index,
            "owner": frame.owner,
            "at": node.at,
            "api": api,
            "history": history,
            "quotes": quotes,
            "system": any(value is not NOTHING for value in systems),
            "tools": values["tools"] is not NOTHING,
        }
    )
