"""Text known by a name: variables, attributes, keywords, keys, prompt functions, built messages.

Part of the third step of the linter. A name says less than a request that is seen being sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.history import echoes
from prefixguard.lint.knowledge import snake
from prefixguard.lint.request import turns
from prefixguard.lint.sinks import judging
from prefixguard.lint.summary import Sink
from prefixguard.lint.tables import PROCESS, SESSION
from prefixguard.lint.values import (
    NOTHING,
    Either,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Value,
    Words,
    mixed,
    outlive,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_EXAMPLES = 3
_MANY = 6
_TAIL = 40
"""Characters of known text that are more than the end of a tag."""


def named(
    frame: Frame,
    name: str,
    value: Value,
    at: f.At,
    *,
    attribute: bool = False,
    owner: str = "",
    key: bool = False,
) -> None:
    """A value bound to a name, an attribute or a key that says "prompt"."""
    if value.plain and not isinstance(value.shape, Func):
        return
    known = frame.knowledge.prompt_name(name)
    if known is None:
        return
    if known.confidence != "high" and (not judging.mentions_models(frame) or key):
        return
    if known.position == "prompt":
        _prompt_text(frame, name, value, at)
        return
    if isinstance(value.shape, (External, Instance)) or _is_reply(value):
        return
    confidence = 2 if known.confidence == "high" else 1
    sink = Sink(
        known.position,
        "name",
        frame.file.index,
        at,
        "",
        confidence,
        f"becomes `{owner + '.' if owner else ''}{name}`",
    )
    judging.judge(frame, sink, judging.called(frame, value, at))


def _prompt_text(frame: Frame, name: str, value: Value, at: f.At) -> None:
    """A text named "prompt": where it will stand is not known, so a clock or an id in it is only a remark."""
    if not isinstance(value.shape, Words):
        return
    sink = Sink("prompt", "name", frame.file.index, at, "", 0, f"becomes `{name}`")
    kept = tuple(
        c
        for c in value.flat()
        if c.code in {"PG101", "PG103", "PG104", "PG110"} and c.lifetime < SESSION and c.confidence > 0
    )
    if kept:
        judging.judge(frame, sink, Value(kept))


def spoken_anew(frame: Frame, name: str, value: Value, at: f.At) -> None:
    """A clock or an id put into the text of a message that may have been sent before: a remark."""
    kept = tuple(
        c
        for c in value.flat()
        if c.code in {"PG101", "PG103", "PG104", "PG110"} and c.lifetime <= PROCESS and c.confidence > 0
    )
    if kept and isinstance(value.shape, Words):
        sink = Sink("history", "name", frame.file.index, at, "", 0, f"is added to a message's `{name}`")
        judging.judge(frame, sink, Value(kept))


def _is_reply(value: Value) -> bool:
    return value.origin == "reply"


def keywords(frame: Frame, node: f.Call, given: list[Any], dotted: str, *, built: bool = False) -> None:
    """Arguments by name that say "prompt", of any call."""
    for arg, value in given:
        if arg is None or not arg.name:
            continue
        if value.plain and not isinstance(value.shape, Func):
            continue
        known = frame.knowledge.prompt_name(arg.name)
        if known is not None and known.position == "prompt":
            _prompt_text(frame, arg.name, value, arg.value.at)
            continue
        if known is None or (known.confidence != "high" and not judging.mentions_models(frame)):
            continue
        last = dotted.rsplit(".", 1)[-1]
        confidence = 2 if known.confidence == "high" else 1
        kind = "built" if built or last[:1].isupper() else "name"
        sink = Sink(
            known.position, kind, frame.file.index, arg.value.at, "", confidence, f"is given as `{arg.name}`"
        )
        judging.judge(frame, sink, judging.called(frame, value, arg.value.at))


def built(frame: Frame, node: f.Map, made: Value) -> None:
    """A dict that is a system message, or that holds prompt text under a known key."""
    shape = made.shape
    assert isinstance(shape, Fields)
    entries = shape.entries
    role = entries.get("role")
    if role is not None and role.const in {"system", "developer"}:
        content = entries.get("content") or entries.get("parts") or NOTHING
        sink = Sink("system", "message", frame.file.index, node.at, "", 1, "becomes a system message")
        judging.judge(frame, sink, content)
        return
    if role is not None:
        if role.const in {"assistant", "model"}:
            echoes.echoed(frame, node)
        else:
            _ahead_of_text(frame, node.at, entries.get("content") or NOTHING)
        return
    echoes.rewritten_arguments(frame, node)
    for key, value in entries.items():
        known = frame.knowledge.prompt_name(key)
        if known is None or known.position == "prompt" or (value.plain and not isinstance(value.shape, Func)):
            continue
        if known.confidence != "high" and (
            snake(key) not in {"system", "instructions"}
            or not judging.mentions_models(frame)
            or not _request_like(entries)
        ):
            continue
        at = next((item.at for k, item in node.entries if isinstance(k, f.Lit) and k.value == key), node.at)
        sink = Sink(known.position, "name", frame.file.index, at, "", 1, f"is put under `{key}`")
        judging.judge(frame, sink, judging.called(frame, value, at))


def _ahead_of_text(frame: Frame, at: f.At, content: Value) -> None:
    """A clock or a counter in a message, with other text behind it: a remark.

    It does no harm in a message that is stored as it was sent. In one that is
    made anew for each request it parts the prompt where it stands.
    """
    if isinstance(content.shape, Either):
        for option in content.shape.options:
            _ahead_of_text(frame, at, option)
    if isinstance(content.shape, Words):
        parts = content.shape.parts
        last = max((i for i, part in enumerate(parts) if not part.plain or part.size >= _TAIL), default=0)
        front = mixed(parts[:last])
    elif content.shape is None and content.place is None and len(content.all_refs()) >= _MANY:
        front = content  # a text of so many parts that their order was lost
    else:
        return
    if not front.plain:
        sink = Sink("message", "message", frame.file.index, at, "", 0, "stands ahead of a message's text")
        judging.judge(frame, sink, front)


def seeded(frame: Frame, value: Value, at: f.At) -> None:
    """Examples that open each conversation: what changes in them parts all that follows."""
    if not isinstance(value.shape, Items) or len(value.shape.parts) < _EXAMPLES:
        return
    parts = [part for _, part in value.shape.parts]
    if "assistant" not in {turns.role_of(part) for part in parts}:
        return
    # The last one may be the question itself.
    said = mixed(turns.spoken(part) for part in parts[:-1] if turns.role_of(part) in {"user", "assistant"})
    if said.flat():
        label = "stands in examples that open the conversation"
        judging.judge(
            frame, Sink("history", "message", frame.file.index, at, "", 0, label), Value(said.flat())
        )


def _request_like(entries: dict[str, Value]) -> bool:
    return bool(
        {"messages", "model", "tools", "input", "contents", "prompt", "max_tokens", "maxTokens"}
        & set(entries)
    )


def constructed(frame: Frame, node: f.Call, dotted: str, made: Value) -> None:
    """A message object: `SystemMessage(...)`, `Message(role="system", ...)`, `Message("system", ...)`."""
    shape = made.shape
    assert isinstance(shape, Fields)
    last = dotted.rsplit(".", 1)[-1]
    entries = shape.entries
    known = frame.knowledge.message_classes.get(last)
    if known is not None and known.position == "system":
        content = entries.get(known.field) or entries.get("0") or NOTHING
    elif "Message" in last or "role" in entries:
        role = entries.get("role") or entries.get("0") or NOTHING
        word = role.const if isinstance(role.const, str) else _enum_word(role)
        if word not in {"system", "developer"}:
            # A message to a person, such as `OutboundMessage`, has the same name but no role.
            if last.endswith(("UserMessage", "HumanMessage")) or word == "user":
                _ahead_of_text(frame, node.at, entries.get("content") or entries.get("0") or NOTHING)
            return
        content = entries.get("content") or entries.get("1") or entries.get("text") or NOTHING
    else:
        return
    sink = Sink("system", "message", frame.file.index, node.at, "", 1, "becomes a system message")
    judging.judge(frame, sink, content)


def _enum_word(value: Value) -> str:
    name = value.origin or (value.shape.name if isinstance(value.shape, External) else "")
    return name.rsplit(".", 1)[-1].lower()


def returned(frame: Frame, function: f.FunctionFacts) -> None:
    """What a function with a prompt's name returns; and what a cache around a function keeps."""
    value = frame.summary.returns
    for decorator in function.decorators:
        name = walk.last_name(decorator)
        if name in {"lru_cache", "cache", "cached", "ttl_cache", "memoize", "alru_cache", "once"}:
            value = outlive(value, PROCESS, "cached")
        elif name in {"cached_property"}:
            value = outlive(value, SESSION, "cached")
    frame.summary.returns = value
    if value.plain or not function.name:
        return
    known = frame.knowledge.prompt_function(function.name)
    if known is None or (known.confidence != "high" and not judging.mentions_models(frame)):
        return
    confidence = 1 if known.confidence == "high" else 0
    sink = Sink(
        "system", "function", frame.file.index, function.at, "", confidence, f"`{function.name}` returns it"
    )
    body = value
    if isinstance(value.shape, Items):
        body = mixed(value.children())
    judging.judge(frame, sink, Value(body.flat(), (), body.shape))
