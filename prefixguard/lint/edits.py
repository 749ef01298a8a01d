"""Edits of message lists: windows, pruning, compaction, what is sent but not stored.

Part of the third step of the linter. An edit is a `Change` that rides on the
list; it becomes a finding when the list reaches a request (`sinks`), or, at low
confidence, when the code's own words say that it rewrites history.
What is the same for every message, wherever it stands, is no edit: it gives the
same bytes each time. So each rule here asks for a dependence on place or size.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixguard.lint import expressions, walk
from prefixguard.lint import facts as f
from prefixguard.lint.knowledge import TURN, snake
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Value,
    Words,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_BUILDS = re.compile(
    r"(prompt|message|history|context|conversation|description|transcript|llm_input|request_body)"
)
_SPOKEN = {
    "content",
    "text",
    "parts",
    "blocks",
    "tool_calls",
    "toolCalls",
    "data",
    "source",
    "image_url",
    "output",
    "result",
    "arguments",
    "thinking",
    "reasoning",
    "images",
    "function",
    "args",
    "input",
}
_MEDIA = (
    "image",
    "screenshot",
    "picture",
    "audio",
    "video",
    "media",
    "photo",
    "base64",
    "inline_data",
    "inlineData",
)
_REASONING = ("thinking", "reasoning", "thought", "<think")
_RESULTS = ("tool", "result", "output", "observation", "function")


def note(
    frame: Frame, code: str, what: str, at: f.At, guard: str | None = None, *, weak: bool = False
) -> Change:
    """An edit, seen here. `weak`: worth a remark even when no request is seen to take the list."""
    if guard is None:
        guard = rarely(frame)
    change = frame.change(code, what, at, TURN, edit=True, guard=guard)
    name = frame.function.name if frame.function is not None else ""
    named = bool(name) and (
        frame.knowledge.is_rewrite_name(name) or (code == "PG301" and _BUILDS.search(snake(name)) is not None)
    )
    frame.edited = True
    if weak or named:
        frame.flow.edits.setdefault(change.key, (change, frame.file.index, name))
    return change


def rarely(frame: Frame) -> str:
    """What keeps the current statement from running on every turn, if anything."""
    kinds = ""
    for guard in frame.guards:
        if guard.kind == "handler":
            return "error"
        test = guard.test
        if guard.kind not in {"if", "while"} or test is None or walk.is_place_test(test, frame.indexes):
            continue
        if walk.is_size_test(test):
            kinds = "threshold"
    return kinds


def placed(frame: Frame) -> bool:
    """Whether a guard asks where in the list the current element stands."""
    return any(
        guard.test is not None
        and guard.kind in {"if", "filter"}
        and walk.is_place_test(guard.test, frame.indexes)
        for guard in frame.guards
    )


def words_around(frame: Frame, *nodes: Any) -> str:
    """The words in the guards above and in these expressions, to tell what is edited."""
    found: set[str] = set()
    now = frame.statement if isinstance(frame.statement, (f.Assign, f.Do, f.Return, f.Delete)) else None
    for node in [*(guard.test for guard in frame.guards), now, *nodes]:
        if node is not None:
            found |= walk.strings(node) | walk.names(node)
    if frame.function is not None:
        found.add(frame.function.name)
    return " ".join(found).lower()


def kind_of(words: str, default: str = "PG311") -> str:
    """The code of an edit of earlier messages, by the words around it."""
    if any(word in words for word in _MEDIA):
        return "PG304"
    if any(word in words for word in _REASONING):
        return "PG306"
    if any(word in words for word in _RESULTS):
        return "PG302"
    return default


def place_name(frame: Frame, place: tuple[str, ...] | None) -> str:
    """The name of the list at a place."""
    if not place:
        return ""
    for part in reversed(place):
        if part.startswith("["):
            continue
        if part.startswith("param:"):
            return next((name for name, index in frame.parameters.items() if index == int(part[6:])), "")
        return part.rsplit(":", 1)[-1]
    return ""


def is_list(frame: Frame, node: f.Expr | None, value: Value) -> bool:
    """Whether a list holds messages: by its name, its place, or what stands in it."""
    if node is not None and frame.is_list_name(walk.last_name(node)):
        return True
    place = value.elements or value.place
    if place is not None and frame.is_list_name(place_name(frame, place)):
        return True
    return _has_messages(value)


def _has_messages(value: Value, depth: int = 0) -> bool:
    shape = value.shape
    if isinstance(shape, Items) and depth < 3:
        return any(_has_messages(part, depth + 1) for _, part in shape.parts[:8])
    if isinstance(shape, (Fields, Instance)):
        names = shape.entries if isinstance(shape, Fields) else shape.fields
        return "role" in names or (isinstance(shape, Fields) and shape.name.endswith("Message"))
    return False


def marked(value: Value, change: Change) -> Value:
    """The list with an edit noted on it."""
    if isinstance(value.shape, (External, Func)):
        return value
    return value.but(changes=unique((*value.changes, change)), _flat=None, _refs=None)


def touch(frame: Frame, place: tuple[str, ...], change: Change) -> None:
    """Note an edit on the list that lives at a place."""
    cut = next((i for i, part in enumerate(place) if part.startswith("[")), len(place))
    root = place[:cut]
    if not root:
        return
    node: f.Expr | None = None
    head = root[0]
    if head == "self":
        node = f.Name(change.at, "this" if frame.file.family == "typescript" else "self")
    elif head.startswith("param:"):
        name = place_name(frame, (head,))
        node = f.Name(change.at, name) if name else None
        frame.summary.mutations.append((int(head[6:]), root[1:], "edit", change))
    elif head.startswith(("local:", "global:")):
        node = f.Name(change.at, head.rsplit(":", 1)[-1])
    if node is None:
        return
    for part in root[1:]:
        node = f.Attr(change.at, node, part)
    before = expressions.evaluate(frame, node)
    frame.rebind(node, marked(before, change))


# --- slices ------------------------------------------------------------------


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
    low = expressions.evaluate(frame, node.low) if node.low is not None else NOTHING
    older = node.high is not None and not (isinstance(node.high, f.Lit) and node.high.value in {-1})
    listed = is_list(frame, node.base, base)
    if node.low is not None and node.high is None and listed and _moves(node.low, low):
        definition = frame.definition(node.low)
        guard = "quantised" if walk.is_quantised(node.low) or walk.is_quantised(definition) else rarely(frame)
        change = note(frame, "PG301", "only the newest messages are kept", node.at, guard)
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
    base = expressions.evaluate(frame, target.base)
    if not is_list(frame, target.base, base):
        return
    whole = target.low is None and target.high is None
    summary = frame.knowledge.is_summary_name(words_around(frame, target))
    if not whole or _summarised(frame, value):
        code = "PG303" if summary or _summarised(frame, value) else "PG302"
        change = note(frame, code, "a part of the history is replaced", at, weak=True)
        touch(frame, base.place or ("local:" + walk.last_name(target.base),), change)
        return
    for change in value.flat():
        if change.edit:
            touch(frame, base.place or ("local:" + walk.last_name(target.base),), change)
            frame.flow.edits.setdefault(change.key, (change, frame.file.index, ""))


def _summarised(frame: Frame, value: Value) -> bool:
    return any(change.edit and change.code == "PG303" for change in value.flat())


# --- elements ----------------------------------------------------------------


def element(frame: Frame, place: tuple[str, ...], key: str, value: Value, at: f.At) -> None:
    """`message[key] = value`, for a message of a list at `place`."""
    if key not in _SPOKEN or not frame.is_list_name(place_name(frame, place[:-1])):
        cut = next((i for i, part in enumerate(place) if part.startswith("[")), 0)
        if key not in _SPOKEN or not frame.is_list_name(place_name(frame, place[:cut])):
            return
    if "[-1]" in place:
        return
    if "[0]" in place:
        if value.const is not None or value.plain:
            return
        code = "PG107" if any(change.code == "PG107" for change in value.flat()) else "PG311"
        change = note(frame, code, "the first message is written anew", at, weak=True)
        touch(frame, place, change)
        return
    if "[<]" not in place and not placed(frame):
        return
    words = words_around(frame) + " " + key + " " + str(value.const or "").lower() + " " + _texts(value)
    code = kind_of(words, "PG302" if value.const is not None else "PG311")
    change = note(frame, code, "an earlier message is changed in place", at, weak=True)
    touch(frame, place, change)


def _texts(value: Value) -> str:
    found = []
    for child in [value, *value.children()]:
        if isinstance(child.const, str):
            found.append(child.const)
        for inner in child.children():
            if isinstance(inner.const, str):
                found.append(inner.const)
            found.extend(deep.const for deep in inner.children() if isinstance(deep.const, str))
    return " ".join(found).lower()[:400]


def item_assigned(frame: Frame, target: f.Index, base: Value, key: Value, value: Value, at: f.At) -> None:
    """`messages[i] = value`."""
    if not is_list(frame, target.base, base) or isinstance(base.shape, Fields):
        return
    name = walk.dotted(target.base)
    copied = (
        base.place is None
        or (base.place[0] == "local:" + name and frame.is_fresh(name))
        or base.origin in {"copy", "deepcopy"}
    )
    if is_last(frame, target.key, target.base) or key.const == -1:
        if (
            copied
            and (base.elements is not None or base.origin in {"copy", "deepcopy", "slice"})
            and not value.plain
        ):
            change = note(
                frame,
                "PG309",
                "the newest message is changed in what is sent, not in what is stored",
                at,
                weak=True,
            )
            frame.rebind(target.base, marked(base, change))
        return
    if key.const == 0:
        if not value.plain and frame.talking:
            change = note(frame, "PG311", "the first message is written anew", at, weak=True)
            frame.rebind(target.base, marked(base, change))
        return
    guard = rarely(frame)
    if guard or placed(frame) or (frame.loops and isinstance(target.key, f.Name)):
        words = words_around(frame) + " " + _texts(value)
        if not guard and not placed(frame) and kind_of(words, "") == "":
            return
        change = note(
            frame,
            kind_of(words, "PG302"),
            "an earlier message is replaced",
            at,
            guard,
            weak=bool(guard) or placed(frame),
        )
        frame.rebind(target.base, marked(base, change))


def is_last(frame: Frame, key: f.Expr, base: f.Expr) -> bool:
    """Whether an index is that of the last element."""
    if isinstance(key, f.Lit):
        return key.value == -1
    if isinstance(key, f.Name):
        if "last" in snake(key.name).split("_"):
            return True
        definition = frame.definition(key)
        return (
            definition is not None
            and definition is not key
            and not isinstance(definition, f.Name)
            and is_last(frame, definition, base)
        )
    if isinstance(key, f.Op) and key.op == "-" and len(key.operands) == 2:
        left, right = key.operands
        if isinstance(right, f.Lit) and right.value == 1:
            return (isinstance(left, f.Call) and walk.last_name(left.func) == "len") or (
                isinstance(left, f.Attr) and left.name == "length"
            )
    return False


# --- building and binding lists ------------------------------------------------


def assembled(frame: Frame, node: Any, made: Value) -> Value:
    """A list built from parts: a window beside a summary is a compaction."""
    shape = made.shape
    if not isinstance(shape, Items):
        return made
    windows = [c for _, part in shape.parts for c in part.changes if c.edit and c.code == "PG301"]
    if windows and any(not spread for spread, _ in shape.parts) and _speaks_of_summary(frame, node):
        guard = windows[0].guard or rarely(frame)
        change = note(frame, "PG303", "history is replaced by a summary", node.at, guard, weak=True)
        for window in windows:
            frame.flow.edits.pop(window.key, None)
        parts = tuple(
            (
                spread,
                part.but(changes=tuple(c for c in part.changes if c not in windows), _flat=None)
                if part.changes
                else part,
            )
            for spread, part in shape.parts
        )
        return made.but(shape=Items(shape.kind, parts), changes=unique((*made.changes, change)), _flat=None)
    return made


def _speaks_of_summary(frame: Frame, node: Any) -> bool:
    words = walk.names(node) | walk.strings(node)
    for name in list(walk.names(node)):
        definition = frame.definitions.get(name)
        if definition is not None:
            words |= walk.names(definition) | walk.strings(definition)
    return any(frame.knowledge.is_summary_name(word) for word in words)


def rebound(frame: Frame, name: str, place: tuple[str, ...], value: Value, at: f.At) -> Value:
    """A value bound to a name: what is stored is what will be sent, so "not stored" falls away."""
    if not frame.is_list_name(name):
        return value
    stored = (
        place[0] in {"self"}
        or place[0].startswith(("param:", "global:"))
        or (len(place) == 1 and name in frame.parameters)
    )
    if value.flat():
        for change in value.changes:
            if change.edit and change.code == "PG301" and (stored or frame.loops):
                frame.flow.edits.setdefault(change.key, (change, frame.file.index, name))
    if stored and any(change.code == "PG309" for change in value.changes):
        dropped = tuple(change for change in value.changes if change.code != "PG309")
        for change in value.changes:
            if change.code == "PG309":
                frame.flow.edits.pop(change.key, None)
        value = value.but(changes=dropped, _flat=None)
    return value


def iterates(frame: Frame, node: f.Expr, value: Value) -> bool:
    """Whether a loop runs over messages, also by `enumerate` and its kin."""
    inner = node
    while isinstance(inner, f.Call) and walk.last_name(inner.func) in {
        "enumerate",
        "reversed",
        "list",
        "zip",
        "entries",
    }:
        if inner.args:
            inner = inner.args[0].value
        elif isinstance(inner.func, f.Attr):
            inner = inner.func.base
        else:
            break
    return frame.is_list_name(walk.last_name(inner)) or (
        value.elements is not None and frame.is_list_name(place_name(frame, value.elements))
    )


def replaced(frame: Frame, before: Value | None, value: Value, at: f.At) -> Value:
    """A message of a list put anew under a name, because of its place: a changed copy."""
    if before is None or before.place is None or not before.place[-1].startswith("["):
        return value
    return changed_copy(frame, value, at)


def changed_copy(frame: Frame, value: Value, at: f.At) -> Value:
    """A message built in a loop over messages: an edit when it depends on the place in the list."""
    shape = value.shape
    if not any(loop.over for loop in frame.loops) or not placed(frame):
        return value
    if not isinstance(shape, Fields):
        return _copied_with(frame, value, at)
    spoken = [shape.entries[name] for name in ("content", "parts", "text") if name in shape.entries]
    if (
        not spoken
        or not value.all_refs()
        or set(shape.entries) & {"cache_control", "cachePoint", "cacheControl"}
    ):
        return value
    if any(breakpoints(part) for part in spoken):
        return value
    words = words_around(frame) + " " + _texts(value)
    if _about_system(frame):
        return value
    change = note(frame, kind_of(words, "PG302"), "an earlier message is sent changed", at, weak=True)
    return marked(value, change)


def _copied_with(frame: Frame, value: Value, at: f.At) -> Value:
    """`message.replace(content=...)`, `message.model_copy(update=...)`: a changed copy of an object."""
    now = frame.statement
    source = now.value if isinstance(now, f.Assign) else None
    if not isinstance(source, f.Call) or walk.last_name(source.func) not in {
        "replace",
        "_replace",
        "model_copy",
        "copy_with",
        "copy",
        "with_content",
    }:
        return value
    if not {arg.name for arg in source.args} & {"content", "update", "text", "parts"}:
        return value
    change = note(
        frame, kind_of(words_around(frame), "PG302"), "an earlier message is sent changed", at, weak=True
    )
    return marked(value, change)


def rewritten_by_name(frame: Frame, node: f.Assign, value: Value) -> None:
    """`messages = trim_history(messages)`: what the function is called says that it rewrites history."""
    call = node.value
    if not isinstance(call, f.Call) or any(change.edit for change in value.flat()):
        return
    name = walk.last_name(call.func)
    while name in {"list", "tuple"} and len(call.args) == 1 and isinstance(call.args[0].value, f.Call):
        call = call.args[0].value
        name = walk.last_name(call.func)
    if (
        not name
        or not frame.knowledge.is_rewrite_name(name)
        or not frame.is_list_name(walk.last_name(node.targets[0]))
    ):
        return
    if not any(frame.is_list_name(walk.last_name(arg.value)) for arg in call.args):
        return
    plain = snake(name)
    if frame.knowledge.is_summary_name(plain):
        code = "PG303"
    elif re.search(r"trim|truncat|window|limit|drop|fit|cap|reduce", plain):
        code = "PG301"
    else:
        code = kind_of(plain, "PG302")
    note(frame, code, f"`{name}` rewrites the messages", call.at, "event", weak=True)


def breakpoint_set(frame: Frame, place: tuple[str, ...], at: f.At) -> None:
    """`message["cache_control"] = ...` on every message of a loop."""
    if "[]" not in place or placed(frame) or not any(loop.over for loop in frame.loops):
        return
    if any(part in {"[-1]", "[<]"} for part in place[: place.index("[]")]):
        return
    frame.flow.marks.append((frame.file.index, at, True))


def appended(
    frame: Frame, target: f.Expr, before: Value, value: Value, at: f.At, *, spread: bool = False
) -> bool:
    """A message added to a list. True when the list is stored, so that the message is sent again unchanged."""  # noqa: E501
    key = walk.dotted(target)
    listed = is_list(frame, target, before) or _has_messages(value)
    if (
        before.place is not None
        and before.place[0].startswith("param:")
        and (value.flat() or value.all_refs())
    ):
        frame.summary.mutations.append(
            (int(before.place[0][6:]), before.place[1:], "extend" if spread else "append", value)
        )
    if frame.is_fresh(key):
        return False
    if not listed:
        return False
    _mark_safe(frame, value)
    _remember_breakpoint(frame, value)
    return True


def _mark_safe(frame: Frame, value: Value, depth: int = 0) -> None:
    shape = value.shape
    if isinstance(shape, Fields):
        if shape.at is not None:
            frame.flow.safe.add((shape.file, shape.at))
    elif isinstance(shape, Items) and depth < 3:
        for _, part in shape.parts:
            _mark_safe(frame, part, depth + 1)


def _remember_breakpoint(frame: Frame, value: Value) -> None:
    for at in breakpoints(value):
        frame.flow.marks.append((frame.file.index, at, frame.talking or not frame.loops))


def breakpoints(value: Value, depth: int = 0) -> list[f.At]:
    """The places of all blocks with a breakpoint in a value."""
    shape = value.shape
    found: list[f.At] = []
    if depth > 6:
        return found
    if isinstance(shape, Fields):
        if ("cache_control" in shape.entries or "cachePoint" in shape.entries) and shape.at is not None:
            found.append(shape.at)
        for child in shape.entries.values():
            found.extend(breakpoints(child, depth + 1))
    elif isinstance(shape, Items):
        for _, part in shape.parts:
            found.extend(breakpoints(part, depth + 1))
    return found


_ALTERS = {"sub", "replace", "replaceAll", "split", "partition", "removeprefix", "removesuffix", "subn"}
_REPLIES = {"content", "text", "output_text", "choices", "message", "completion", "outputText"}
_WRITES = {"dumps", "stringify"}
_READS = {"loads", "parse"}


def echoed(frame: Frame, node: f.Map) -> None:
    """An assistant message whose text is not the reply as the server gave it."""
    content = next(
        (item for key, item in node.entries if isinstance(key, f.Lit) and key.value == "content"), None
    )
    source = frame.definition(content)
    if source is None:
        return
    for item in walk.inside(source):
        if isinstance(item, f.Call) and walk.last_name(item.func) in _ALTERS and walk.names(item) & _REPLIES:
            note(
                frame,
                "PG307",
                "the reply is sent back with other words than the server gave",
                item.at,
                "",
                weak=True,
            )
            return


def rewritten_arguments(frame: Frame, node: f.Map) -> None:
    """The arguments of a tool call, read and written again: other bytes than the server gave."""
    for key, item in node.entries:
        if not isinstance(key, f.Lit) or key.value not in {"arguments", "input"}:
            continue
        source = frame.definition(item)
        if isinstance(source, f.Call) and walk.last_name(source.func) in _WRITES:
            inner = source.args[0].value if source.args else None
            parsed = any(
                isinstance(part, f.Call) and walk.last_name(part.func) in _READS
                for part in walk.inside(inner)
            )
            named = walk.last_name(inner) in {"arguments", "input", "args"}
            if parsed or named:
                note(frame, "PG203", "a tool call's arguments are written again", item.at, "", weak=True)


_CLEARS = re.compile(r"(^|_)(reset|clear|new|start|init|restart|delete|close|load|restore|switch)")


def undescribed(frame: Frame, function: f.FunctionFacts) -> None:
    """A function whose name says that it rewrites the messages it was given, and that does so in a way not seen here."""  # noqa: E501
    if frame.edited or not function.name or not frame.knowledge.is_rewrite_name(function.name):
        return
    lists = {param.name for param in function.params if frame.is_list_name(param.name)}
    if not lists:
        return
    summary = frame.knowledge.is_summary_name(function.name)
    for item in walk.inside(function.body):
        at = None
        if isinstance(item, f.Assign):
            target = item.targets[0]
            base = target.base if isinstance(target, (f.Slice, f.Index)) else None
            if (isinstance(base, f.Name) and base.name in lists) or (
                isinstance(target, f.Attr) and frame.loops == [] and target.name.endswith("content")
            ):
                at = item.at
        elif (
            isinstance(item, f.Call)
            and isinstance(item.func, f.Attr)
            and item.func.name in {"clear", "remove", "splice", "append", "push", "extend"}
        ):
            named = walk.last_name(item.func.base)
            if named in lists or frame.is_list_name(named):
                at = item.at
        if at is not None:
            code = "PG303" if summary else kind_of(function.name.lower(), "PG302")
            at = (function.at[0], function.at[1], function.at[0], function.at[1] + 1) if summary else at
            note(
                frame,
                code,
                f"`{function.name}` rewrites the messages that it is given",
                at,
                "event",
                weak=True,
            )
            return


def mapped(frame: Frame, node: f.Comp, source: Value, value: Value, made: Value) -> Value:
    """A comprehension over messages: one that treats some of them differently by their place."""
    clause = node.clauses[0] if node.clauses else None
    if clause is None:
        return made
    inner = clause.source
    if (
        isinstance(inner, f.Call)
        and walk.last_name(inner.func) in {"enumerate", "reversed", "zip", "list"}
        and inner.args
    ):
        inner = inner.args[0].value
        source = expressions.evaluate(frame, inner)
    if not is_list(frame, inner, source):
        return made
    tests = [test for part in node.clauses for test in part.tests]
    if any(walk.is_place_test(test, frame.indexes) for test in tests):
        change = note(
            frame,
            kind_of(words_around(frame, tests), "PG301"),
            "messages are left out by their place",
            node.at,
            weak=True,
        )
        return marked(made, change)
    found = _split(node.element, frame.indexes)
    if found is not None:
        split = _split_note(frame, found, node.element, node.at)
        return marked(made, split) if split is not None else made
    return made


def _split(body: Any, indexes: set[str]) -> tuple[f.Expr, bool] | None:
    """A test of place in it, and whether the branch for a true test is the changed one."""
    for item in walk.inside(body):
        if isinstance(item, f.Choice) and walk.is_place_test(item.test, indexes):
            return item.test, not isinstance(item.then, (f.Name, f.Lit))
        if isinstance(item, f.If) and walk.is_place_test(item.test, indexes):
            returned = next((s for s in item.then if isinstance(s, f.Return)), None)
            plain = returned is not None and isinstance(returned.value, f.Name)
            return item.test, not plain
    return None


def _split_note(frame: Frame, found: tuple[f.Expr, bool], body: Any, at: f.At) -> Change | None:
    test, when_true = found
    equal = any(
        isinstance(item, f.Op) and item.op.removeprefix("compare:") in {"==", "===", "is"}
        for item in walk.inside(test)
    )
    newest = equal == when_true and _asks_for_last(test)
    words = words_around(frame, body)
    keys = walk.strings(body)
    if (
        keys & {"cache_control", "cacheControl", "cachePoint"}
        or "cachecontrol" in words
        or "cache_control" in words
        or "cachepoint" in words
    ):
        return None
    where = next((i.at for i in walk.inside(body) if isinstance(i, (f.Map, f.Call)) and i.at[0] >= at[0]), at)
    if newest:
        return note(
            frame,
            "PG309",
            "the newest message is changed in what is sent, not in what is stored",
            where,
            weak=True,
        )
    return note(
        frame, kind_of(words, "PG302"), "earlier messages are changed by their place", where, weak=True
    )


def _asks_for_last(test: f.Expr) -> bool:
    for item in walk.inside(test):
        if isinstance(item, f.Name) and "last" in item.name.lower():
            return True
        if (
            isinstance(item, f.Op)
            and item.op == "-"
            and isinstance(item.operands[-1], f.Lit)
            and item.operands[-1].value == 1
        ):
            return True
    return False


def callback(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, target: Func, result: Value, made: Value
) -> Value:
    """`messages.map(...)`, `messages.filter(...)`, by the place of a message."""
    if not is_list(frame, func.base, base):
        return result
    facts = frame.flow.function(target.function)
    if target.function[0] != frame.file.index:
        return result
    indexes = {facts.params[1].name} if len(facts.params) > 1 else set()
    if func.name == "filter":
        tests = [s.value for s in facts.body if isinstance(s, f.Return) and s.value is not None]
        if indexes and any(walk.is_place_test(test, indexes) or walk.names(test) & indexes for test in tests):
            change = note(
                frame,
                kind_of(words_around(frame, tests), "PG301"),
                "messages are left out by their place",
                node.at,
                weak=True,
            )
            return marked(result, change)
        return result
    if not indexes:
        return result
    found = _split(facts.body, indexes)
    if found is None:
        return result
    split = _split_note(frame, found, facts.body, node.at)
    return marked(result, split) if split is not None else result


# --- methods -------------------------------------------------------------------


def method(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Any]) -> Value | None:
    """insert, pop, shift, splice, remove and their kin."""
    name = func.name
    if isinstance(base.shape, External):
        return None
    first = given[0][1] if given else NOTHING
    if name in {"pop", "remove", "clear", "splice", "shift"}:
        tool_list_changed(frame, func, base, node.at, "PG402")
    listed = is_list(frame, func.base, base)
    if name in {"insert", "unshift"}:
        return _inserted(frame, node, func, base, given, listed)
    if name == "splice" and len(given) > 2 and given[1][1].const == 0:
        for _, value in given[2:]:
            _insert_parts(frame, func.base, base, value, at_front=first.const == 0)
        return NOTHING
    taken = expressions.element(frame, base, node.at) if name in {"pop", "shift", "popleft"} else NOTHING
    if not listed or isinstance(base.shape, Fields):
        return taken if name in {"pop", "shift", "popleft"} else None
    if name in {"pop", "shift", "popleft"}:
        tail = name == "pop" and (
            not given
            or is_last(frame, given[0][0].value, func.base)
            or first.const in {-1}
            or isinstance(first.const, str)
        )
        if tail or _about_system(frame):
            return taken
        if name == "pop" and not given:
            return taken
        inside = (
            any(guard.kind == "while" for guard in frame.guards) or bool(rarely(frame)) or bool(frame.loops)
        )
        guard = rarely(frame)
        if guard == "threshold" and any(g.kind == "while" for g in frame.guards):
            guard = "window"
        code = "PG301" if name != "pop" or first.const in {0, 1} else "PG313"
        change = note(
            frame,
            code,
            "the oldest messages are dropped" if code == "PG301" else "a message is taken out",
            node.at,
            guard,
            weak=inside,
        )
        touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return taken
    if name == "splice":
        start, count = first, given[1][1] if len(given) > 1 else NOTHING
        if count.const == 0:
            return NOTHING
        if isinstance(start.const, int) and start.const < 0:
            return NOTHING
        code = (
            "PG303"
            if len(given) > 2 and _speaks_of_summary(frame, node)
            else "PG301"
            if len(given) < 3
            else "PG302"
        )
        change = note(frame, code, "earlier messages are cut out", node.at, weak=True)
        touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if name == "remove" and frame.loops:
        change = note(
            frame, kind_of(words_around(frame, node), "PG313"), "a message is taken out", node.at, weak=True
        )
        touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if name == "clear" and frame.function is not None and not _CLEARS.search(snake(frame.function.name)):
        note(frame, "PG313", "the messages are taken out, to be built anew", node.at, "event", weak=True)
    return NOTHING if name in {"clear", "reverse", "remove"} else None


_TOOLS = re.compile(r"(^|_)(tools|functions|tool_(defs|definitions|schemas|specs|list))$")


def tool_list_changed(frame: Frame, func: f.Attr, base: Value, at: f.At, code: str) -> None:
    """A tool added to or taken from the list while a conversation runs."""
    if (
        not frame.talking
        or not _TOOLS.search(snake(walk.last_name(func.base)))
        or frame.is_fresh(walk.dotted(func.base))
    ):
        return
    what = "a tool is added" if code == "PG401" else "a tool is taken out"
    change = frame.change(code, f"{what} while the conversation runs", at, TURN, confidence=1)
    touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)


def tool_edited(frame: Frame, place: tuple[str, ...], key: str, value: Value, at: f.At) -> None:
    """A tool's text changed in place while a conversation runs."""
    root = place_name(
        frame, tuple(part for part in place[:-1] if not part.startswith("[") and part != "function")
    )
    if (
        not frame.talking
        or key not in {"description", "parameters", "input_schema", "name"}
        or not _TOOLS.search(snake(root))
    ):
        return
    change = frame.change("PG403", f"a tool's {key} is written anew", at, TURN, confidence=1)
    touch(frame, place, change)


def _about_system(frame: Frame) -> bool:
    """Whether a guard above speaks of the system message: it is being moved, not dropped."""
    for guard in frame.guards:
        if guard.test is not None and walk.strings(guard.test) & {"system", "developer"}:
            return True
        if guard.test is not None and any("system" in name.lower() for name in walk.names(guard.test)):
            return True
    return False


def _inserted(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Any], listed: bool
) -> Value | None:
    if func.name == "insert" and len(given) < 2:
        return None
    where = given[0][1] if func.name == "insert" else Value(const=0)
    values = [value for _, value in (given[1:] if func.name == "insert" else given)]
    front = where.const == 0
    for value in values:
        _insert_parts(frame, func.base, base, value, at_front=front)
    if not listed or frame.is_fresh(walk.dotted(func.base)):
        return NOTHING
    if front:
        if frame.talking and not rarely(frame) and not any(g.kind == "if" for g in frame.guards):
            change = note(
                frame, "PG308", "a message is put before the history on every turn", node.at, weak=True
            )
            touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
        return NOTHING
    if func.name == "insert" and not (isinstance(where.const, int) and where.const > 0 and not frame.loops):
        change = note(
            frame,
            "PG308",
            "a message is put into the history",
            node.at,
            "event",
            weak=bool(frame.loops) and where.const != -1,
        )
        touch(frame, base.place or ("local:" + walk.last_name(func.base),), change)
    return NOTHING


def _insert_parts(frame: Frame, node: f.Expr, base: Value, value: Value, *, at_front: bool) -> None:
    shape = base.shape
    if base.place is not None and base.place[0].startswith("param:") and (value.flat() or value.all_refs()):
        frame.summary.mutations.append(
            (int(base.place[0][6:]), base.place[1:], "front" if at_front else "append", value)
        )
    parts = (
        shape.parts
        if isinstance(shape, Items)
        else ((True, base),)
        if base is not NOTHING and not isinstance(shape, External)
        else ()
    )
    kind = shape.kind if isinstance(shape, Items) else "list"
    item = (False, frame.traced(value, node.at, "inserted"))
    made = (item, *parts) if at_front else (*parts[:1], item, *parts[1:])
    if isinstance(shape, Items) or frame.is_fresh(walk.dotted(node)) or at_front:
        refs = base.refs if isinstance(shape, Items) else ()
        frame.rebind(
            node,
            base.but(
                shape=Items(kind, made[:MAX_PARTS]),
                refs=refs,
                _flat=None,
                _refs=None,
                changes=base.changes if isinstance(shape, Items) else (),
            ),
        )


def deleted(frame: Frame, target: f.Slice | f.Index, at: f.At) -> None:
    """`del messages[...]`."""
    base = expressions.evaluate(frame, target.base)
    if not is_list(frame, target.base, base) or isinstance(base.shape, Fields):
        return
    if isinstance(target, f.Index):
        key = expressions.evaluate(frame, target.key)
        if (
            isinstance(key.const, str)
            or key.const == -1
            or _about_system(frame)
            or is_last(frame, target.key, target.base)
        ):
            return
    elif (
        isinstance(target.low, f.Lit)
        and target.high is None
        and isinstance(target.low.value, int)
        and target.low.value < 0
    ) or (target.low is not None and target.high is None):
        return
    change = note(frame, "PG301", "the oldest messages are dropped", at, weak=True)
    touch(frame, base.place or ("local:" + walk.last_name(target.base),), change)


def replayed(frame: Frame, target: f.Expr, kind: str, value: Any, at: f.At, name: str) -> None:
    """What a called function does to a list or dict that it was given, done here."""
    before = expressions.evaluate(frame, target)
    if isinstance(before.shape, (External, Func)):
        return
    if kind == "edit":
        change: Change = value
        change = change.step(frame.step(at, f"done by `{name}`"))
        guard = change.guard or rarely(frame)
        frame.rebind(target, marked(before, change._replace(guard=guard)))
        if before.place is not None and before.place[0].startswith("param:"):
            frame.summary.mutations.append((int(before.place[0][6:]), before.place[1:], "edit", change))
        return
    if kind in {"append", "extend"}:
        from prefixguard.lint import calls

        if kind == "extend":
            calls.extended(frame, target, before, value, at)
        elif not appended(frame, target, before, value, at):
            parts = (
                before.shape.parts
                if isinstance(before.shape, Items)
                else ((True, before),)
                if before is not NOTHING
                else ()
            )
            listed = before.shape.kind if isinstance(before.shape, Items) else "list"
            frame.rebind(
                target,
                before.but(shape=Items(listed, (*parts, (False, value))[:MAX_PARTS]), _flat=None, _refs=None),
            )
    elif kind == "front":
        _insert_parts(frame, target, before, value, at_front=True)
    elif kind.startswith("set:") and (value.flat() or value.all_refs()):
        frame.put(target, before, kind[4:], value)
    elif kind == "set" and value.flat():
        frame.rebind(target, value)
