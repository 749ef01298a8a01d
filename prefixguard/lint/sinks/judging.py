"""A value at a sink: each change in it is a hit, settled by how often it is really read there.

Under every other file of `sinks`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.calls import applying
from prefixguard.lint.request import chosen, turns
from prefixguard.lint.summary import Hit, Pending, Sink
from prefixguard.lint.tables import PROCESS, SESSION, TURN
from prefixguard.lint.values import (
    Change,
    Fields,
    Func,
    Items,
    Step,
    Value,
    Words,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_MODEL_WORDS = re.compile(
    rb"openai|anthropic|litellm|langchain|langgraph|llama_index|pydantic_ai|\bllm\b|LLM|gpt-|claude|gemini|[\"']role[\"']|ChatCompletion"
    rb"|\brole:|system_prompt|systemPrompt|system_message|chat_model|smolagents|crewai|autogen|@ai-sdk|ModelMessage"
)


_TOLD = {"message": {"PG101", "PG103", "PG104", "PG105", "PG110"}, "decision": {"PG107"}}
"""What is told of at two weak positions: what a message must not be made anew with, and modes that decide."""


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
    codes = _TOLD.get(place)
    place = {"message": "history", "decision": "system"}.get(place, place)
    for change in value.flat():
        if change.key in known or change.edit:
            continue
        if codes is not None and (change.code not in codes or change.lifetime > TURN):
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
        made = applying.apply(
            frame,
            value.shape.function,
            value.shape.bound,
            [],
            {},
            at,
            "called for each request",
            value.shape.scope,
        )
        # What it reads itself is read anew each time, wherever it is handed over; what it finds is not.
        file = value.shape.function[0]
        body = frame.flow.function(value.shape.function).body
        first, last = (body[0].at[0], body[-1].at[2]) if body else (0, 0)
        return transform(
            made,
            lambda c: (
                c._replace(scope="hook")
                if c.scope == "call" and c.file == file and first <= c.at[0] <= last
                else c
            ),
        )
    return value


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
        turns.messages(frame, sink, moved, known, pending.depth + 1)
    elif sink.position in {"model", "thinking", "tool_choice", "format", "key"}:
        chosen.chosen(frame, sink, moved, sink.position, known)
    else:
        judge(frame, sink, moved, known, pending.depth + 1)
