"""Functions that a framework calls for prompt text: decorators and hooks.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import members
from prefixguard.lint.request import chosen, turns
from prefixguard.lint.sinks import judging
from prefixguard.lint.summary import Hit, Sink
from prefixguard.lint.tables import SESSION, Hook, Sdk
from prefixguard.lint.values import (
    FunctionId,
    Step,
    Value,
    outlive,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


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
        value = _each_time(members.attribute(frame, summary.returns, name, item.at))
        sink = Sink(position, "request", frame.file.index, item.at, "", 2, f"`{key}` returns it as `{name}`")
        if position == "messages":
            turns.messages(frame, sink, value)
        elif position in {"system", "tools"}:
            judging.judge(frame, sink, value)
        else:
            chosen.chosen(frame, sink, value, position)
    for index, fields in hook.edits.items():
        for parameter, path, _, value in summary.mutations:
            if parameter == int(index) and path and path[0] in fields and isinstance(value, Value):
                position = fields[path[0]]
                sink = Sink(
                    position, "request", frame.file.index, item.at, "", 2, f"`{key}` puts it into `{path[0]}`"
                )
                judging.judge(frame, sink, _each_time(value))


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
    judging.judge(frame, sink, made)


def piped(frame: Frame, values: list[Value]) -> None:
    """`prompt | model`: nothing is known beyond what the parts are."""
