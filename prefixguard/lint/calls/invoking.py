"""A call: whom it reaches, and what comes of it.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.calls import applying, constructing, guessing, sourcing
from prefixguard.lint.expressions import evaluation, members
from prefixguard.lint.history import binding
from prefixguard.lint.known import functions, methods
from prefixguard.lint.known.order import Given
from prefixguard.lint.sinks import naming, sending
from prefixguard.lint.tables import LIFETIMES
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Either,
    External,
    Fields,
    Func,
    Items,
    Klass,
    Value,
    join,
    merge_refs,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_COMMON = {
    "get", "set", "run", "call", "append", "add", "update", "close", "open", "read", "write", "send", "start",
    "stop",
    "items", "keys", "values", "pop", "format", "join", "render", "load", "save", "create", "delete", "find",
    "name",
    "execute", "process", "handle", "parse", "build", "invoke", "stream", "next", "push", "map", "filter",
    "toString",
    "then", "catch", "connect", "clear", "reset", "copy", "replace", "strip", "split", "encode", "decode",
    "log",
    "generate", "search", "query", "list", "model_dump", "to_dict", "dict", "json", "step", "chat",
}  # fmt: skip


def call(frame: Frame, node: f.Call) -> Value:
    """The value of a call."""
    func = node.func
    base = NOTHING
    if isinstance(func, f.Attr):
        base = evaluation.evaluate(frame, func.base)
        target = members.attr(frame, func, base)
    else:
        target = evaluation.evaluate(frame, func)
    given: list[Given] = [(arg, evaluation.evaluate(frame, arg.value)) for arg in node.args]
    return invoke(frame, node, target, base, given)


def invoke(frame: Frame, node: f.Call, target: Value, base: Value, given: list[Given]) -> Value:
    """Call `target`; `base` is what stands before the dot, if anything."""
    shape = target.shape
    if isinstance(shape, Either):
        found = NOTHING
        for option in shape.options:
            if isinstance(option.shape, (Func, Klass)):
                found = join(found, invoke(frame, node, option, base, given))
        if found is not NOTHING:
            return found
    if isinstance(shape, Func):
        naming.keywords(frame, node, given, "")
        return looked_up(frame, node, _project(frame, node, shape, given), given)
    if isinstance(shape, Klass):
        return constructing.construct(frame, node, shape, given)
    name = shape.name if isinstance(shape, External) else ""
    dotted = name or walk.dotted(node.func)
    requested = sending.request(frame, node, dotted, bool(name), given)
    if requested is not None:
        return requested
    method = node.func.name if isinstance(node.func, f.Attr) else ""
    if name or not isinstance(node.func, f.Attr):
        known = functions.function(frame, node, dotted, given)
        if known is not None:
            return known
    source = frame.knowledge.source(dotted) or frame.knowledge.source_method(dotted)
    if source is not None and source.first and (not given or given[0][1].const not in source.first):
        source = None
    if source is not None and not _shadowed(frame, node, name):
        return sourcing.sourced(frame, source, node.at, node, given)
    if isinstance(node.func, f.Attr):
        usual = methods.method(frame, node, node.func, base, given)
        if usual is not None:
            return usual
        named = _by_name(frame, node, method, base, given)
        if named is not None:
            return looked_up(frame, node, named, given)
        if not name.startswith(("re.", "regex.")):
            made = looked_up(frame, node, NOTHING, given)
            if made is not NOTHING:
                return made
    return guessing.unknown(frame, node, dotted, base if method else target, given)


def looked_up(frame: Frame, node: f.Call, made: Value, given: list[Given]) -> Value:
    """What a call gives whose name says that it looks something up for the turn."""
    name = walk.last_name(node.func)
    lookup = frame.knowledge.lookup(walk.owner_name(node.func), name)
    if lookup is None or made.flat() or isinstance(made.shape, (Func, Klass)):
        return made
    # A search for nothing, or one that the project itself answers, may be the same each time.
    sure = bool(given) and made is NOTHING
    confidence = ("low", "medium", "high").index(lookup.confidence) if sure else 0
    change = frame.change(
        lookup.code,
        f"{lookup.what} (`{name}`)",
        node.at,
        LIFETIMES.index(lookup.lifetime),
        confidence=confidence,
    )
    if made.shape is not None:
        return made.but(changes=(*made.changes, change), _flat=None)
    return Value((change,), merge_refs(made.refs, *(value.all_refs() for _, value in given)))


def _shadowed(frame: Frame, node: f.Call, name: str) -> bool:
    """Whether a bare name that looks like a source is something else here: a local of that name."""
    return not name and isinstance(node.func, f.Name) and frame.lookup(node.func.name) is not None


def _by_name(frame: Frame, node: f.Call, method: str, base: Value, given: list[Given]) -> Value | None:
    """A method of an unknown object, when the project has only one or two of that name."""
    if method in _COMMON or len(method) < 6 or isinstance(base.shape, External):
        return None
    candidates = [fid for fid in frame.flow.classes.methods_named(method) if fid != frame.fid]
    if (
        not 1 <= len(candidates) <= 3
        or frame.flow.project.files[candidates[0][0]].family != frame.file.family
    ):
        return None
    found = NOTHING
    for fid in candidates:
        found = join(found, _project(frame, node, Func(fid, base), given, guessed=True))
    return found


def _project(frame: Frame, node: f.Call, func: Func, given: list[Given], *, guessed: bool = False) -> Value:
    positional: list[Value] = []
    named: dict[str, Value] = {}
    nodes: dict[int | str, f.Expr] = {}
    for arg, value in given:
        if arg is None or arg.star == 1:
            if isinstance(value.shape, Items):
                positional.extend(v for _, v in value.shape.parts)
        elif arg.star == 2:
            if isinstance(value.shape, Fields):
                named.update(value.shape.entries)
        elif arg.name:
            named[arg.name] = value
            nodes[arg.name] = arg.value
        else:
            nodes[len(positional)] = arg.value
            positional.append(value)
    function = frame.flow.function(func.function)
    note = f"returned by `{function.name or 'a function'}`"
    made = applying.apply(
        frame, func.function, func.bound, positional, named, node.at, note, func.scope, nodes
    )
    flow = frame.flow
    if func.bound is not None and function.owner >= 0 and not made.flat():
        owner = (func.function[0], function.owner)
        for other in flow.classes.overrides(owner, function.name):
            made = join(
                made, applying.apply(frame, other, func.bound, positional, named, node.at, note, None, nodes)
            )
    if guessed and made.flat():
        made = transform(made, lambda change: change._replace(confidence=min(1, change.confidence)))
    return made


def extended(frame: Frame, target: f.Expr, before: Value, value: Value, at: f.At) -> None:
    """`target.extend(value)`, `target += value`."""
    if binding.appended(frame, target, before, value, at, spread=True):
        return
    shape = before.shape
    parts = shape.parts if isinstance(shape, Items) else ((True, before),) if before is not NOTHING else ()
    kind = shape.kind if isinstance(shape, Items) else "list"
    added = (
        value.shape.parts
        if isinstance(value.shape, Items) and not value.changes and value.shape.kind != "set"
        else ((True, value),)
    )
    frame.rebind(
        target, before.but(shape=Items(kind, (*parts, *added)[:MAX_PARTS]), _flat=None, _refs=None, refs=())
    )
