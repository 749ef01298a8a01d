"""History rewritten by a function whose name says so, where the edit itself is not seen.

Part of the third step of the linter, called for assignments, for calls made for
their effect, and once a function has been read. What is found here is a remark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation
from prefixguard.lint.history import noting
from prefixguard.lint.knowledge import snake
from prefixguard.lint.values import Func, Value

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_LISTED = re.compile(r"(?i)\b(list|sequence|iterable|array|generator|iterator)\b|\[\]$|messages|history")


_PLAIN = {"mask", "prune", "compact", "trim", "truncate", "evict"}


def assigned(frame: Frame, node: f.Assign, value: Value) -> None:
    """`messages = trim_history(messages)`: what the function is called says that it rewrites history."""
    call = node.value
    if not isinstance(call, f.Call) or any(change.edit for change in value.flat()):
        return
    name = walk.last_name(call.func)
    while name in {"list", "tuple"} and len(call.args) == 1 and isinstance(call.args[0].value, f.Call):
        call = call.args[0].value
        name = walk.last_name(call.func)
    if not name or not frame.knowledge.is_rewrite_name(name):
        return
    # A result of another name may hold the list beside figures; then the name must be plain.
    kept = frame.is_list_name(walk.last_name(node.targets[0]))
    if not kept and snake(name).lstrip("_").split("_")[0] not in _PLAIN:
        return
    if any(frame.is_list_name(walk.last_name(arg.value)) for arg in call.args):
        noting.note(frame, _code(frame, name), f"`{name}` rewrites the messages", call.at, "event", weak=True)


def done(frame: Frame, call: f.Call) -> None:
    """`compact_results(messages, 3)`: called for what it does to the messages that it is given."""
    name = walk.last_name(call.func)
    if not name or not frame.knowledge.is_rewrite_name(name) or len(snake(name).strip("_").split("_")) < 2:
        return
    target = evaluation.evaluate(frame, call.func).shape
    summary = frame.flow.summaries.get(target.function) if isinstance(target, Func) else None
    if summary is not None and any(kind == "edit" for _, _, kind, _ in summary.mutations):
        return
    for arg in call.args[:2]:
        given = evaluation.evaluate(frame, arg.value)
        if noting.is_list(frame, arg.value, given):
            guard = noting.rarely(frame) or "event"
            what = f"`{name}` rewrites the messages that it is given"
            noting.note(frame, _code(frame, name), what, call.at, guard, weak=True)
            return


def _code(frame: Frame, name: str) -> str:
    plain = snake(name)
    if frame.knowledge.is_summary_name(plain):
        return "PG303"
    if re.search(r"image|screenshot|picture|media", plain):
        return "PG304"
    if re.search(r"trim|truncat|window|limit|drop|fit|cap|reduce", plain):
        return "PG301"
    if re.search(r"refresh|rebuild", plain):
        return "PG311"
    return noting.kind_of(plain, "PG302")


def undescribed(frame: Frame, function: f.FunctionFacts) -> None:
    """A function whose name says that it rewrites the messages it was given, in a way not seen here."""
    if not function.name or not frame.knowledge.is_rewrite_name(function.name):
        return
    lists = {param.name for param in function.params if frame.is_list_name(param.name)}
    if not lists:
        return
    summary = frame.knowledge.is_summary_name(function.name)
    if frame.edited and not summary:
        return
    changed = _changed_at(frame, function, lists)
    whole = (function.at[0], function.at[1], function.at[0], function.at[1] + 1)
    if changed is None and not summary and _picks(function, lists):
        changed = whole
    if changed is None:
        return
    code = "PG303" if summary else _code(frame, function.name)
    what = f"`{function.name}` rewrites the messages that it is given"
    noting.note(frame, code, what, whole if summary else changed, "event", weak=True, written=changed)


def _changed_at(frame: Frame, function: f.FunctionFacts, lists: set[str]) -> f.At | None:
    """Where the messages are written: an element, a part of the list, or the list itself."""
    for item in walk.inside(function.body):
        if isinstance(item, f.Assign):
            target = item.targets[0]
            base = target.base if isinstance(target, (f.Slice, f.Index)) else None
            if (isinstance(base, f.Name) and base.name in lists) or (
                isinstance(target, f.Attr) and target.name.endswith("content")
            ):
                return item.at
        elif (
            isinstance(item, f.Call)
            and isinstance(item.func, f.Attr)
            and item.func.name in {"clear", "remove", "splice", "append", "push", "extend"}
        ):
            named = walk.last_name(item.func.base)
            if named in lists or frame.is_list_name(named):
                return item.at
    return None


def _picks(function: f.FunctionFacts, lists: set[str]) -> bool:
    """Whether it goes through the messages, stops or skips somewhere, and gives a list of them."""
    if not function.generator and not _LISTED.search(function.returns):
        return False
    loops = [
        item
        for item in walk.inside(function.body)
        if isinstance(item, f.Loop) and walk.names(item.source) & lists
    ]
    return any(
        isinstance(item, f.Stop) and item.kind in {"break", "continue"}
        for loop in loops
        for item in walk.inside(loop.body)
    )
