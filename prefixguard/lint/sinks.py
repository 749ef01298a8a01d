"""Where values become part of a request: SDK calls, built messages, prompt names, hooks.

Part of the third step of the linter. What is found is noted as a `Hit`; a sink
that depends on a parameter waits as `Pending` and is judged where the function
is called. `requests` looks at the parts of one request.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prefixguard.lint import calls, edits, expressions, requests, walk
from prefixguard.lint import facts as f
from prefixguard.lint.knowledge import PROCESS, SESSION, Hook, Sdk, SinkCall, Where, snake
from prefixguard.lint.summary import Hit, Pending, Sink
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Either,
    External,
    Fields,
    Func,
    FunctionId,
    Instance,
    Items,
    Step,
    Value,
    Words,
    mixed,
    outlive,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_MODEL_WORDS = re.compile(
    rb"openai|anthropic|litellm|langchain|langgraph|llama_index|pydantic_ai|\bllm\b|LLM|gpt-|claude|gemini|[\"']role[\"']|ChatCompletion"
    rb"|\brole:|system_prompt|systemPrompt|system_message|chat_model|smolagents|crewai|autogen|@ai-sdk|ModelMessage"
)
_PARTS = ("system", "tools", "messages", "model", "thinking", "tool_choice", "format", "key", "user")
_MODELS = re.compile(r"(^|_)(llm|model|chat|chain|agent|runnable|graph|app)", re.IGNORECASE)
_STARTERS = {
    "__init__",
    "__post_init__",
    "constructor",
    "main",
    "setup",
    "initialize",
    "__enter__",
    "__aenter__",
    "model_post_init",
}


def mentions_models(frame: Frame) -> bool:
    """Whether the file speaks of language models at all."""
    key = "models?"
    env = frame.flow.modules.setdefault(frame.file.index, {})
    known = env.get(key)
    if known is None:
        known = env[key] = Value(const=_MODEL_WORDS.search(frame.file.source) is not None)
    return bool(known.const)


# --- judging a value at a sink -------------------------------------------------


def judge(
    frame: Frame,
    sink: Sink,
    value: Value,
    known: frozenset[Any] = frozenset(),
    depth: int = 0,
    position: str = "",
) -> None:
    """Note each change in a value as a hit; wait for what is not known yet."""
    place = position or sink.position
    for change in value.flat():
        if change.key in known or change.edit:
            continue
        made = settled(frame, sink, change)
        if made is None:
            continue
        after = following(value, made)
        trace = (*made.trace, Step(sink.file, sink.at, sink.label or f"reaches {place}"))
        confidence = min(sink.confidence, made.confidence)
        frame.flow.hits.append(Hit(made, sink, place, trace, confidence, after))
    if value.all_refs() and depth < 6 and len(frame.summary.pending) < 80 and not position:
        frame.summary.pending.append(Pending(sink, value, depth))


def settled(frame: Frame, sink: Sink, change: Change) -> Change | None:
    """A change as it stands at a sink here: how often it is really read; None when it cannot matter."""
    loops = frame.loop_ids
    if change.loop_bound and change.loop_bound not in loops:
        return None
    if change.order and change.loops and loops[: len(change.loops)] == change.loops and not change.content:
        innermost = frame.loops[len(change.loops) - 1]
        if not innermost.talks:
            return None
    for loop in frame.loops:
        if loop.talks and loop.id not in change.loops:
            change = change.live(SESSION, "loop")
    if change.scope == "hook":
        return change
    if frame.fid[1] < 0:
        # A script is read once per process, but for what its own conversation reads anew on each round.
        anew = any(loop.talks and loop.id in change.loops for loop in frame.loops)
        return change if anew else change.live(PROCESS, "module")
    function = frame.function
    scope = frame
    while function is not None and function.kind == "lambda" and scope.scope is not None:
        break
    if (
        function is not None
        and function.name in _STARTERS
        and sink.kind in {"name", "message", "built", "function"}
        and not frame.loops
    ):
        return change.live(SESSION, "constructor")
    if sink.kind == "built" and not _used_here(frame):
        return change.live(SESSION, "constructor")
    return change


def _used_here(frame: Frame) -> bool:
    """Whether the body that makes an agent also runs it."""
    function = frame.function
    if function is None:
        return False
    for item in walk.inside(function.body):
        if (
            isinstance(item, f.Call)
            and isinstance(item.func, f.Attr)
            and item.func.name
            in {
                "run",
                "run_sync",
                "invoke",
                "ainvoke",
                "arun",
                "kickoff",
                "generate",
                "stream",
                "chat",
                "run_stream",
                "call",
            }
        ):
            return True
        if isinstance(item, f.Call) and walk.dotted(item.func).startswith("Runner."):
            return True
    return False


def following(value: Value, change: Change) -> int:
    """How many known characters stand behind the part of a text that holds a change."""
    if isinstance(value.shape, Words):
        parts = value.shape.parts
        for index, part in enumerate(parts):
            if any(c.key == change.key for c in part.flat()):
                return sum(p.size for p in parts[index + 1 :])
    if isinstance(value.shape, Items):
        for _, part in value.shape.parts:
            found = following(part, change)
            if found:
                return found
    if isinstance(value.shape, Fields):
        for part in value.shape.entries.values():
            found = following(part, change)
            if found:
                return found
    return 0


def called(frame: Frame, value: Value, at: f.At) -> Value:
    """A prompt given as a function is what the function returns, on each use."""
    if isinstance(value.shape, Func) and value.shape.function[1] >= 0:
        return calls.apply(
            frame,
            value.shape.function,
            value.shape.bound,
            [],
            {},
            at,
            "called for each request",
            value.shape.scope,
        )
    return value


# --- names ---------------------------------------------------------------------


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
    if known.confidence != "high" and (not mentions_models(frame) or key):
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
    judge(frame, sink, called(frame, value, at))


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
        judge(frame, sink, Value(kept))


def spoken_anew(frame: Frame, name: str, value: Value, at: f.At) -> None:
    """A clock or an id put into the text of a message that may have been sent before: a remark."""
    kept = tuple(
        c
        for c in value.flat()
        if c.code in {"PG101", "PG103", "PG104", "PG110"} and c.lifetime <= PROCESS and c.confidence > 0
    )
    if kept and isinstance(value.shape, Words):
        sink = Sink("history", "name", frame.file.index, at, "", 0, f"is added to a message's `{name}`")
        judge(frame, sink, Value(kept))


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
        if known is None or (known.confidence != "high" and not mentions_models(frame)):
            continue
        last = dotted.rsplit(".", 1)[-1]
        confidence = 2 if known.confidence == "high" else 1
        kind = "built" if built or last[:1].isupper() else "name"
        sink = Sink(
            known.position, kind, frame.file.index, arg.value.at, "", confidence, f"is given as `{arg.name}`"
        )
        judge(frame, sink, called(frame, value, arg.value.at))


def built(frame: Frame, node: f.Map, made: Value) -> None:
    """A dict that is a system message, or that holds prompt text under a known key."""
    shape = made.shape
    assert isinstance(shape, Fields)
    entries = shape.entries
    role = entries.get("role")
    if role is not None and role.const in {"system", "developer"}:
        content = entries.get("content") or entries.get("parts") or NOTHING
        sink = Sink("system", "message", frame.file.index, node.at, "", 1, "becomes a system message")
        judge(frame, sink, content)
        return
    if role is not None:
        if role.const in {"assistant", "model"}:
            edits.echoed(frame, node)
        return
    edits.rewritten_arguments(frame, node)
    for key, value in entries.items():
        known = frame.knowledge.prompt_name(key)
        if known is None or known.position == "prompt" or (value.plain and not isinstance(value.shape, Func)):
            continue
        if known.confidence != "high" and (
            snake(key) not in {"system", "instructions"}
            or not mentions_models(frame)
            or not _request_like(entries)
        ):
            continue
        at = next((item.at for k, item in node.entries if isinstance(k, f.Lit) and k.value == key), node.at)
        sink = Sink(known.position, "name", frame.file.index, at, "", 1, f"is put under `{key}`")
        judge(frame, sink, called(frame, value, at))


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
            return
        content = entries.get("content") or entries.get("1") or entries.get("text") or NOTHING
    else:
        return
    sink = Sink("system", "message", frame.file.index, node.at, "", 1, "becomes a system message")
    judge(frame, sink, content)


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
    if known is None or (known.confidence != "high" and not mentions_models(frame)):
        return
    confidence = 1 if known.confidence == "high" else 0
    sink = Sink(
        "system", "function", frame.file.index, function.at, "", confidence, f"`{function.name}` returns it"
    )
    body = value
    if isinstance(value.shape, Items):
        body = mixed(value.children())
    judge(frame, sink, Value(body.flat(), (), body.shape))


# --- frameworks ------------------------------------------------------------------


def decorated(frame: Frame, function: f.FunctionFacts, fid: FunctionId) -> None:
    """A function that a framework calls for prompt text, by its decorator."""
    if not function.decorators:
        return
    for decorator in function.decorators:
        node = decorator.func if isinstance(decorator, f.Call) else decorator
        name = walk.last_name(node)
        for sdk in frame.knowledge.sdks:
            for known in sdk.decorators:
                if known.match != name or not imported(frame, sdk):
                    continue
                summary = frame.flow.summary(fid, frame if frame.fid[1] >= 0 else None)
                if summary is None:
                    continue
                value = summary.returns
                if known.once and not (
                    isinstance(decorator, f.Call) and any(a.name == "dynamic" for a in decorator.args)
                ):
                    value = outlive(value, SESSION, "constructor")
                sink = Sink(
                    known.position,
                    "request",
                    frame.file.index,
                    function.at,
                    sdk.name,
                    2,
                    f"`@{name}` puts it into the prompt",
                )
                for change in value.flat():
                    if change.edit or change.loop_bound:
                        continue
                    trace = (*change.trace, Step(sink.file, sink.at, sink.label))
                    frame.flow.hits.append(
                        Hit(change, sink, known.position, trace, min(2, change.confidence))
                    )


def hooked(frame: Frame, key: str, item: f.Function, node: f.Map) -> None:
    """A function under a key that a framework calls for each request."""
    hook: Hook | None = frame.knowledge.hooks.get(key)
    if hook is None:
        return
    fid = (frame.file.index, item.index)
    summary = frame.flow.summary(fid, frame if frame.fid[1] >= 0 else None)
    if summary is None:
        return
    for name, position in hook.returns.items():
        value = _each_time(expressions.attribute(frame, summary.returns, name, item.at))
        sink = Sink(position, "request", frame.file.index, item.at, "", 2, f"`{key}` returns it as `{name}`")
        if position == "messages":
            requests.messages(frame, sink, value)
        elif position in {"system", "tools"}:
            judge(frame, sink, value)
        else:
            requests.chosen(frame, sink, value, position)
    for index, fields in hook.edits.items():
        for parameter, path, _, value in summary.mutations:
            if parameter == int(index) and path and path[0] in fields and isinstance(value, Value):
                position = fields[path[0]]
                sink = Sink(
                    position, "request", frame.file.index, item.at, "", 2, f"`{key}` puts it into `{path[0]}`"
                )
                judge(frame, sink, _each_time(value))


def _each_time(value: Value) -> Value:
    """What a hook gives is made anew for each request, wherever the hook is defined."""
    return transform(value, lambda change: change._replace(scope="hook")) if value.flat() else value


def imported(frame: Frame, sdk: Sdk) -> bool:
    """Whether the file imports an SDK."""
    if not sdk.imports:
        return True
    for module in frame.flow.imports(frame.file):
        for wanted in sdk.imports:
            if wanted.endswith("/*"):
                if module.startswith(wanted[:-1]):
                    return True
            elif module == wanted or module.startswith((wanted + ".", wanted + "/")):
                return True
    return False


def template_filled(frame: Frame, node: f.Call, base: Value, made: Value) -> None:
    """`prompt.partial(...)` of a chat template."""
    sink = Sink("system", "request", frame.file.index, node.at, "langchain", 2, "fills the prompt template")
    judge(frame, sink, made)


def piped(frame: Frame, values: list[Value]) -> None:
    """`prompt | model`: nothing is known beyond what the parts are."""


# --- requests --------------------------------------------------------------------


def request(frame: Frame, node: f.Call, dotted: str, external: bool, given: list[Any]) -> Value | None:
    """A call that sends or sets up a request. None when it is no such call."""
    last = dotted.rsplit(".", 1)[-1]
    candidates = frame.knowledge.calls.get(last)
    if candidates:
        named_args = argument_names(frame, given)
        for match, sink, sdk in candidates:
            if not (dotted == match or dotted.endswith("." + match)):
                continue
            if not (sink.always or imported(frame, sdk) or (sink.given and set(sink.given) <= named_args)):
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


def argument_names(frame: Frame, given: list[Any]) -> set[str]:
    """Names of the arguments, of spread dicts and of an options object."""
    names: set[str] = set()
    for arg, value in given:
        if arg is not None and arg.name:
            names.add(arg.name)
        elif isinstance(value.shape, Fields) and (
            arg is None or arg.star == 2 or frame.file.family == "typescript"
        ):
            names |= set(value.shape.entries)
            if value.shape.spread:
                names |= {"messages", "model", "input"}
        elif arg is not None and arg.star == 2:
            names |= {"messages", "model", "input"} if value.refs or value.place else set()
    return names


def argument(
    frame: Frame, given: list[Any], where: Where, order: tuple[str, ...] = ()
) -> tuple[Value, f.Expr | None]:
    """The argument that a part of a request is given as: value, and expression when it stands in the call."""
    if where is None:
        return NOTHING, None
    if isinstance(where, int):
        plain = [(arg, value) for arg, value in given if arg is None or (not arg.name and not arg.star)]
        if where < len(plain):
            arg, value = plain[where]
            return value, arg.value if arg is not None else None
        return NOTHING, None
    for arg, value in given:
        if arg is not None and arg.name == where:
            return value, arg.value
    if where in order:
        found = argument(frame, given, order.index(where))
        if found[0] is not NOTHING:
            return found
    for arg, value in given:
        if isinstance(value.shape, Fields) and (arg is None or arg.star == 2 or not arg.name):
            inner = value.shape.entries.get(where)
            if inner is not None:
                return inner, _entry(arg.value if arg is not None else None, where)
            for spread in value.shape.spread:
                found_value = expressions.attribute(frame, spread, where, f.NOWHERE)
                if spread.shape is None:
                    # Which of the spread values has which change is not known.
                    found_value = Value(refs=found_value.refs, place=found_value.place)
                if found_value is not NOTHING:
                    return found_value, None
        elif (
            arg is not None
            and (arg.star == 2 or frame.file.family == "typescript")
            and value.refs
            and not arg.name
        ):
            return expressions.attribute(frame, value, where, arg.value.at), None
        elif isinstance(value.shape, Either):
            for option in value.shape.options:
                if isinstance(option.shape, Fields) and where in option.shape.entries:
                    return option.shape.entries[where], None
    return NOTHING, None


def _entry(node: f.Expr | None, name: str) -> f.Expr | None:
    if isinstance(node, f.Map):
        for key, item in node.entries:
            if isinstance(key, f.Lit) and key.value == name:
                return item
    return None


def _sent(frame: Frame, node: f.Call, sink: SinkCall, sdk: Sdk, given: list[Any]) -> Value:
    if sink.trims or sink.filters or sink.prunes:
        from prefixguard.lint import edits

        base = given[0][1] if given else NOTHING
        if sink.filters:
            return base.but(place=None)
        code = sink.prunes or "PG301"
        what = {
            "PG301": "only the newest messages are kept",
            "PG303": "history is replaced by a summary",
        }.get(code, "older results are cleared")
        change = edits.note(frame, code, what, node.at, "threshold" if sink.prunes else None, weak=True)
        return edits.marked(base.but(place=None) if base is not NOTHING else Value(), change)
    values: dict[str, Value] = {}
    nodes: dict[str, f.Expr | None] = {}
    for part in _PARTS:
        values[part], nodes[part] = argument(frame, given, getattr(sink, part), sink.order)
    systems = [values["system"]]
    systems.extend(argument(frame, given, extra, sink.order)[0] for extra in (sink.system2, sink.system3))
    if sink.config is not None:
        config, _ = argument(frame, given, sink.config)
        for name, part in (
            ("system_instruction", "system"),
            ("systemInstruction", "system"),
            ("tools", "tools"),
        ):
            inner = expressions.attribute(frame, config, name, node.at) if config is not NOTHING else NOTHING
            if part == "system":
                systems.append(inner)
            elif values["tools"] is NOTHING:
                values["tools"] = inner
    if sink.options is not None:
        options, _ = argument(frame, given, sink.options)
        systems.append(
            expressions.attribute(frame, options, "systemPrompt", node.at)
            if options is not NOTHING
            else NOTHING
        )
    if sink.template is not None:
        template, _ = argument(frame, given, sink.template)
        return requests.template(frame, node, sink, template)
    if sink.chat is not None:
        chat, _ = argument(frame, given, sink.chat)
        if isinstance(chat.shape, Fields) and not chat.shape.name:
            for key, value in chat.shape.entries.items():
                if frame.is_list_name(key):
                    values["messages"] = value
        elif chat.shape is None or isinstance(chat.shape, Items):
            values["messages"] = chat
    requests.sent(frame, node, sink, sdk.name, values, systems, nodes, given)
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
            found, _ = argument(frame, given, name)
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
                expressions.attribute(frame, body, key, node.at)
                if isinstance(body.shape, Fields)
                else NOTHING
            )
            if inner is not NOTHING:
                values[part] = inner
        spec = SinkCall(match=last, api="http")
        if not isinstance(body.shape, Fields) and body.flat():
            judge(
                frame,
                Sink(
                    "system", "request", frame.file.index, node.at, "http", 1, "is sent in the request body"
                ),
                body,
            )
        requests.sent(frame, node, spec, "http", values, [values["system"]], {}, given)
        return Value(origin="reply")
    return None


def replayed(
    frame: Frame,
    pending: Pending,
    value: Value,
    at: f.At,
    name: str,
    *,
    built: bool = False,
    one_shot: bool = False,
) -> None:
    """A sink of a called function, with the arguments of this call."""
    known = frozenset(change.key for change in pending.value.flat())
    sink = pending.sink
    if one_shot and not sink.one_shot:
        sink = replace(sink, one_shot=True)
    step = frame.step(at, f"given to `{name}`")
    moved = transform(value, lambda change: change if change.key in known else change.step(step))
    if sink.position == "messages":
        requests.messages(frame, sink, moved, known, pending.depth + 1)
    elif sink.position in {"model", "thinking", "tool_choice", "format", "key"}:
        requests.chosen(frame, sink, moved, sink.position, known)
    else:
        judge(frame, sink, moved, known, pending.depth + 1)


def varies(frame: Frame, test: f.Expr) -> bool:
    """Whether a test can come out differently from turn to turn."""
    used = walk.names(test)
    if used & frame.indexes and frame.loops:
        return True
    for name in used:
        if frame.is_list_name(name):
            return True
        plain = snake(name)
        if plain in {
            "step",
            "turn",
            "iteration",
            "attempt_count",
            "n_steps",
            "last_message",
            "user_message",
            "user_input",
            "query",
            "question",
            "last_response",
            "last_tool",
            "tool_calls",
            "token_count",
            "used_tokens",
            "needs_reasoning",
            "is_complex",
            "complexity",
            "difficulty",
            "hard",
        } and (frame.talking or name not in frame.parameters or plain not in {"attempt_count"}):
            return frame.talking or plain in {
                "step",
                "turn",
                "iteration",
                "n_steps",
                "last_message",
                "token_count",
                "used_tokens",
                "last_response",
            }
    for item in walk.inside(test):
        if isinstance(item, f.Call):
            value = frame.lookup(item.func.name) if isinstance(item.func, f.Name) else None
            if frame.talking and value is not None and item.args:
                return True
            if walk.dotted(item.func) in {"random.random", "random.choice", "Math.random"}:
                return True
    return False
