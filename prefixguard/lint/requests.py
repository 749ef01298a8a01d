"""The parts of one request: what stands where, and what is sent again behind it.

Part of the third step of the linter. A message in front of the history is as
much a prefix as the system text; what stands behind the history is the tail
and may change. Parameters that enter the cache key must not vary by turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import marks
from prefixguard.lint.knowledge import LIFETIMES, SESSION, TURN, SinkCall
from prefixguard.lint.sinks import arguments, judging, varying
from prefixguard.lint.summary import Hit, Pending, Sink
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Either,
    Fields,
    Instance,
    Items,
    Step,
    Value,
    Words,
    mixed,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_SPOKEN = (
    "content",
    "text",
    "parts",
    "blocks",
    "tool_calls",
    "toolCalls",
    "data",
    "source",
    "image_url",
    "0",
    "1",
    "input",
    "output",
    "name",
    "function_call",
    "arguments",
    "id",
    "tool_call_id",
)
_CHOICES = {"model": "PG405", "thinking": "PG406", "tool_choice": "PG407", "format": "PG408"}
_LONG = 4096
_SHARED = 1000
MAX_BREAKPOINTS = 4


def spoken(value: Value, depth: int = 0) -> Value:
    """What the model reads of a message: its content, not the time it was made at."""
    shape = value.shape
    if isinstance(shape, Either) and depth < 4:
        return mixed([spoken(option, depth + 1) for option in shape.options])
    names = (
        shape.entries if isinstance(shape, Fields) else shape.fields if isinstance(shape, Instance) else None
    )
    if names is None:
        return value
    message = "role" in names or "content" in names or (isinstance(shape, Fields) and "Message" in shape.name)
    if not message:
        return value
    parts = [part for name, part in names.items() if name in _SPOKEN]
    if isinstance(shape, Fields):
        parts.extend(shape.spread)
    return mixed(parts) if len(parts) != 1 else parts[0]


def role_of(value: Value) -> str:
    """The role of a message, or ""."""
    shape = value.shape
    if isinstance(shape, Fields):
        role = shape.entries.get("role")
        if role is not None and isinstance(role.const, str):
            return role.const
        last = shape.name.rsplit(".", 1)[-1]
        if last.startswith("System"):
            return "system"
        first = shape.entries.get("0")
        if "Message" in last and first is not None and isinstance(first.const, str):
            return first.const
        return "user" if last.startswith("Human") else ""
    if isinstance(shape, Instance):
        role = shape.fields.get("role")
        return role.const if role is not None and isinstance(role.const, str) else ""
    return ""


def _opaque(spread: bool, value: Value) -> bool:
    """Whether a part of the list stands for messages of earlier turns."""
    shape = value.shape
    if isinstance(shape, Items) and shape.kind == "many":
        return True
    if isinstance(shape, (Fields, Instance, Words)):
        return False
    if isinstance(shape, Items):
        return any(_opaque(s, part) for s, part in shape.parts)
    return spread


def flattened(value: Value) -> list[tuple[bool, Value]]:
    """The parts of a list, spread lists of known parts opened."""
    out: list[tuple[bool, Value]] = []
    shape = value.shape
    if not isinstance(shape, Items):
        return [(True, value)]
    for spread, part in shape.parts:
        if spread and isinstance(part.shape, Items) and part.shape.kind not in {"many", "set"}:
            inner = flattened(part)
            if part.changes:
                inner = [
                    (s, v.but(changes=unique((*v.changes, *part.changes)), _flat=None)) for s, v in inner
                ]
            out.extend(inner)
        else:
            out.append((spread, part))
    return out


def messages(
    frame: Frame, sink: Sink, value: Value, known: frozenset[Any] = frozenset(), depth: int = 0
) -> bool:
    """Judge a list of messages. True when it holds messages of earlier turns."""
    shape = value.shape
    if isinstance(shape, Either):
        return any(messages(frame, sink, option, known, depth) for option in shape.options)
    if isinstance(shape, Words) or isinstance(value.const, str):
        return False
    for change in value.flat():
        if change.edit and change.key not in known:
            trace = (*change.trace, Step(sink.file, sink.at, sink.label))
            frame.flow.hits.append(
                Hit(change, sink, "history", trace, min(sink.confidence, change.confidence))
            )
    if value.all_refs() and depth < 6 and len(frame.summary.pending) < 80:
        frame.summary.pending.append(Pending(sink, value, depth))
    if not isinstance(shape, Items):
        persistent = value.place is not None or bool(value.refs) or value.elements is not None
        return persistent or shape is None
    parts = flattened(value)
    opaque = [_opaque(spread, part) for spread, part in parts]
    last = max((i for i, flag in enumerate(opaque) if flag), default=-1)
    for index, (_spread, part) in enumerate(parts):
        if index < last or (last < 0 and role_of(part) in {"system", "developer"}):
            content = spoken(part)
            position = "system" if role_of(part) in {"system", "developer"} else "history"
            if isinstance(part.shape, Items) and part.shape.kind == "many":
                content = mixed([spoken(p) for _, p in part.shape.parts])
            _judge_part(frame, sink, content, position, known)
        elif index == last and opaque[index]:
            if isinstance(part.shape, Items) and part.shape.kind == "many":
                content = mixed([spoken(p) for _, p in part.shape.parts])
                _judge_part(frame, sink, content, "history", known)
        elif index > last >= 0:
            _safe(frame, part)
    return last >= 0


def _safe(frame: Frame, part: Value) -> None:
    if isinstance(part.shape, Fields) and part.shape.at is not None:
        frame.flow.safe.add((part.shape.file, part.shape.at))


def _judge_part(frame: Frame, sink: Sink, content: Value, position: str, known: frozenset[Any]) -> None:
    stated = content
    if position == "history":
        # A name alone says nothing of a message that may have been stored.
        kept = tuple(change for change in content.flat() if change.confidence > 0)
        if not kept:
            return
        stated = Value(kept)
    judging.judge(frame, sink, stated, known, 9, position)


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
    history = has_history(frame, listed)
    base.one_shot = not (
        history or frame.talking or spec.built or size >= _LONG or values["tools"] is not NOTHING
    )
    if listed is NOTHING and not spec.built and spec.messages is not None:
        base.one_shot = False
    for system in systems:
        if system is not NOTHING:
            sink = _at(base, "system", nodes.get("system"))
            judging.judge(frame, sink, judging.called(frame, system, node.at))
    if listed is not NOTHING:
        messages(frame, base, listed)
    if values["tools"] is not NOTHING:
        _tools(frame, base, values["tools"], nodes.get("tools"))
    if not spec.built:
        _covered(frame, base, [values["tools"], *systems])
        _volatile_first(frame, base, systems, listed)
    for part in ("model", "thinking", "tool_choice", "format", "key"):
        if values[part] is not NOTHING:
            chosen(frame, _at(base, part, None), values[part], part)
    if not spec.built:
        _breakpoints(frame, node, api, values, systems, given, size, history)
        _record(frame, node, api, values, systems, history)


def _covered(frame: Frame, base: Sink, values: list[Value]) -> None:
    """Breakpoints on blocks that change: what they write is never read."""
    for value in values:
        parts = flattened(value) if isinstance(value.shape, Items) else [(False, value)]
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
                frame.flow.hits.append(Hit(covered, _at(base, "parameters", None), "parameters", trace, 0))
                break


def _volatile_first(frame: Frame, base: Sink, systems: list[Value], listed: Value) -> None:
    """Text that is known to be the same behind text that is not: the other order would be shared."""
    texts = [value for value in systems if isinstance(value.shape, Words)]
    if isinstance(listed.shape, Items) and not has_history(frame, listed):
        texts.extend(
            content for _, part in flattened(listed) if isinstance((content := spoken(part)).shape, Words)
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
        frame.flow.hits.append(Hit(change, _at(base, "parameters", None), "parameters", (), 0, behind))


def _at(base: Sink, position: str, node: f.Expr | None) -> Sink:
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
    return sum(part.size for _, part in listed.shape.parts if role_of(part) in {"system", "developer"})


def has_history(frame: Frame, listed: Value) -> bool:
    """Whether a list of messages holds those of earlier turns."""
    shape = listed.shape
    if listed is NOTHING or isinstance(shape, Words) or isinstance(listed.const, str):
        return False
    if isinstance(shape, Either):
        return any(has_history(frame, option) for option in shape.options)
    if isinstance(shape, Items):
        if listed.place is not None and not listed.place[0].startswith("local:"):
            return True
        return any(_opaque(spread, part) for spread, part in flattened(listed))
    return True


def _tools(frame: Frame, base: Sink, value: Value, node: f.Expr | None) -> None:
    sink = _at(base, "tools", node)
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


def template(frame: Frame, node: f.Call, spec: SinkCall, value: Value) -> Value:
    """`ChatPromptTemplate.from_messages([("system", text), ...])`: filled anew for each request."""
    sink = Sink("system", "built", frame.file.index, node.at, spec.api, 2, "is part of the prompt template")
    for _, part in flattened(value):
        shape = part.shape
        if (
            isinstance(shape, Items)
            and len(shape.parts) == 2
            and shape.parts[0][1].const in {"system", "developer"}
        ):
            judging.judge(frame, sink, shape.parts[1][1])
        elif role_of(part) == "system":
            judging.judge(frame, sink, spoken(part))
    return Value(
        shape=Fields({"0": value}, name="template", at=node.at, file=frame.file.index), origin="template"
    )


def _breakpoints(
    frame: Frame,
    node: f.Call,
    api: str,
    values: dict[str, Value],
    systems: list[Value],
    given: list[Any],
    size: int,
    history: bool,
) -> None:
    found = [at for part in (values["tools"], *systems, values["messages"]) for at in marks.breakpoints(part)]
    names = arguments.argument_names(frame, given)
    if api in {"anthropic-messages", "bedrock-converse"}:
        if len(found) > MAX_BREAKPOINTS:
            _direct(
                frame,
                node,
                api,
                "PG502",
                f"{len(found)} breakpoints are set, the API takes {MAX_BREAKPOINTS}",
                2,
            )
        lives = [live for part in (values["tools"], *systems, values["messages"]) for live in _lives(part)]
        if "1h" in lives and "5m" in lives[: len(lives) - 1 - lives[::-1].index("1h")]:
            _direct(
                frame, node, api, "PG506", "a breakpoint of one hour stands behind one of five minutes", 2
            )
    if (
        api == "anthropic-messages"
        and not found
        and (history or frame.talking)
        and size >= _LONG
        and "cache_control" not in names
        and b"cache_control" not in frame.file.source
        and b"cacheControl" not in frame.file.source
    ):
        _direct(frame, node, api, "PG503", "no breakpoint is set, so nothing of this prompt is cached", 0)
    if api == "openai-chat":
        stream, _ = arguments.argument(frame, given, "stream")
        if (
            stream.const is True
            and "stream_options" not in names
            and not any(a is not None and a.star == 2 for a, _ in given)
        ):
            _direct(
                frame,
                node,
                api,
                "PG802",
                "the stream does not ask for usage, so cache hits cannot be seen",
                0,
            )


def _direct(frame: Frame, node: f.Call, api: str, code: str, what: str, confidence: int) -> None:
    change = Change(code, what, frame.file.index, node.at, LIFETIMES.index("turn"), confidence=confidence)
    sink = Sink("parameters", "request", frame.file.index, node.at, api, 2, "is sent")
    frame.flow.hits.append(Hit(change, sink, "parameters", (), confidence))


def _lives(value: Value, depth: int = 0) -> list[str]:
    shape = value.shape
    out: list[str] = []
    if depth > 6:
        return out
    if isinstance(shape, Fields):
        mark = shape.entries.get("cache_control")
        for name, child in shape.entries.items():
            if name != "cache_control":
                out.extend(_lives(child, depth + 1))
        if mark is not None and isinstance(mark.shape, Fields):
            ttl = mark.shape.entries.get("ttl")
            out.append(str(ttl.const) if ttl is not None and ttl.const else "5m")
    elif isinstance(shape, Items):
        for _, part in shape.parts:
            out.extend(_lives(part, depth + 1))
    return out


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
