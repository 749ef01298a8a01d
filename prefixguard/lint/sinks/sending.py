"""Calls that send or set up a request: SDKs of the table, and plain HTTP to a known path.

Part of the third step of the linter; the parts that are found go to `requests`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import members
from prefixguard.lint.request import sent
from prefixguard.lint.sinks import arguments, frameworks, judging
from prefixguard.lint.summary import Sink
from prefixguard.lint.tables import Sdk, SinkCall
from prefixguard.lint.values import (
    NOTHING,
    External,
    Fields,
    Items,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_PARTS = ("system", "tools", "messages", "model", "thinking", "tool_choice", "format", "key", "user")


_MODELS = re.compile(r"(^|_)(llm|model|chat|chain|agent|runnable|graph|app)", re.IGNORECASE)


def request(frame: Frame, node: f.Call, dotted: str, external: bool, given: list[Any]) -> Value | None:
    """A call that sends or sets up a request. None when it is no such call."""
    last = dotted.rsplit(".", 1)[-1]
    candidates = frame.knowledge.calls.get(last)
    if candidates:
        named_args = arguments.argument_names(frame, given)
        for match, sink, sdk in candidates:
            if not (dotted == match or dotted.endswith("." + match)):
                continue
            if not (
                sink.always
                or frameworks.imported(frame, sdk)
                or (sink.given and set(sink.given) <= named_args)
            ):
                continue
            if (
                external
                and not sink.always
                and "()" not in dotted
                and sdk.imports
                and match == last
                and "." in dotted
                and not _of(dotted, sdk)
            ):
                continue
            if sink.given and sdk.name not in {"openai", "anthropic"} and not set(sink.given) & named_args:
                continue
            if sink.model_like and not (
                isinstance(node.func, f.Attr) and _MODELS.search(walk.last_name(node.func.base))
            ):
                continue
            if match == "messages.create" and "messages" not in named_args and "model" not in named_args:
                continue
            return _sent(frame, node, sink, sdk, given)
    return _raw(frame, node, dotted, given)


def _of(dotted: str, sdk: Sdk) -> bool:
    return any(
        dotted.startswith((wanted.removesuffix("/*") + ".", wanted.removesuffix("/*") + "/"))
        for wanted in sdk.imports
    )


def _sent(frame: Frame, node: f.Call, sink: SinkCall, sdk: Sdk, given: list[Any]) -> Value:
    if sink.trims or sink.filters or sink.prunes:
        from prefixguard.lint.history import noting

        base = given[0][1] if given else NOTHING
        if sink.filters:
            return base.but(place=None)
        code = sink.prunes or "PG301"
        what = {
            "PG301": "only the newest messages are kept",
            "PG303": "history is replaced by a summary",
        }.get(code, "older results are cleared")
        change = noting.note(frame, code, what, node.at, "threshold" if sink.prunes else None, weak=True)
        return noting.marked(base.but(place=None) if base is not NOTHING else Value(), change)
    values: dict[str, Value] = {}
    nodes: dict[str, f.Expr | None] = {}
    for part in _PARTS:
        values[part], nodes[part] = arguments.argument(frame, given, getattr(sink, part), sink.order)
    systems = [values["system"]]
    systems.extend(
        arguments.argument(frame, given, extra, sink.order)[0] for extra in (sink.system2, sink.system3)
    )
    if sink.config is not None:
        config, _ = arguments.argument(frame, given, sink.config)
        for name, part in (
            ("system_instruction", "system"),
            ("systemInstruction", "system"),
            ("tools", "tools"),
        ):
            inner = members.attribute(frame, config, name, node.at) if config is not NOTHING else NOTHING
            if part == "system":
                systems.append(inner)
            elif values["tools"] is NOTHING:
                values["tools"] = inner
    if sink.options is not None:
        options, _ = arguments.argument(frame, given, sink.options)
        systems.append(
            members.attribute(frame, options, "systemPrompt", node.at) if options is not NOTHING else NOTHING
        )
    if sink.template is not None:
        template, _ = arguments.argument(frame, given, sink.template)
        return sent.template(frame, node, sink, template)
    if sink.chat is not None:
        chat, _ = arguments.argument(frame, given, sink.chat)
        if isinstance(chat.shape, Fields) and not chat.shape.name:
            for key, value in chat.shape.entries.items():
                if frame.is_list_name(key):
                    values["messages"] = value
        elif chat.shape is None or isinstance(chat.shape, Items):
            values["messages"] = chat
    sent.sent(frame, node, sink, sdk.name, values, systems, nodes, given)
    if sink.built:
        return Value(
            shape=External(f"{sdk.imports[0] if sdk.imports else sdk.name}.{walk.last_name(node.func)}()"),
            origin="agent",
        )
    return Value(origin="reply")


def _raw(frame: Frame, node: f.Call, dotted: str, given: list[Any]) -> Value | None:
    """A request over plain HTTP to a known path."""
    last = dotted.rsplit(".", 1)[-1]
    for pattern, path in frame.knowledge.paths:
        if last not in path.methods or not given:
            continue
        address = ""
        for arg, _value in given[:2]:
            if arg is not None:
                texts = [
                    str(item.value)
                    for item in walk.inside(arg.value)
                    if isinstance(item, f.Lit) and isinstance(item.value, str)
                ]
                address = next((text for text in texts if pattern.search(text.rstrip("/"))), address)
        if not address:
            continue
        body = NOTHING
        for name in path.bodies:
            found, _ = arguments.argument(frame, given, name)
            if found is not NOTHING:
                body = found
                break
        if body is NOTHING and frame.file.family == "typescript" and len(given) > 1:
            body = given[1][1]
        values = dict.fromkeys(_PARTS, NOTHING)
        for key, part in (
            ("messages", "messages"),
            ("input", "messages"),
            ("contents", "messages"),
            ("system", "system"),
            ("instructions", "system"),
            ("systemInstruction", "system"),
            ("tools", "tools"),
            ("model", "model"),
        ):
            inner = (
                members.attribute(frame, body, key, node.at) if isinstance(body.shape, Fields) else NOTHING
            )
            if inner is not NOTHING:
                values[part] = inner
        spec = SinkCall(match=last, api="http")
        if not isinstance(body.shape, Fields) and body.flat():
            judging.judge(
                frame,
                Sink(
                    "system", "request", frame.file.index, node.at, "http", 1, "is sent in the request body"
                ),
                body,
            )
        sent.sent(frame, node, spec, "http", values, [values["system"]], {}, given)
        return Value(origin="reply")
    return None
