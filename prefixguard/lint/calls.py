"""What a call gives, and what it does to what it was given.

Part of the third step of the linter: project functions by their summary,
sources by the table, well-known functions and methods in `methods`, and the
rest by what goes in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prefixguard.lint import clocks, methods, walk
from prefixguard.lint import facts as f
from prefixguard.lint.expressions import evaluation, members, picking
from prefixguard.lint.history import binding, removal
from prefixguard.lint.knowledge import LIFETIMES, SESSION, Source
from prefixguard.lint.sinks import judging, naming, sending
from prefixguard.lint.summary import Pending
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    Either,
    External,
    Fields,
    Func,
    FunctionId,
    Instance,
    Items,
    Klass,
    Ref,
    Value,
    join,
    merge_refs,
    mixed,
    outlive,
    session,
    substitute,
    transform,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_WRITES = re.compile(
    r"(?i)format|render|str|text|fmt|print|serial|dump|join|encode|escape|wrap|indent|template|stamp|compile|build|concat|append|interp|fill|dedent|describe|markdown|html|iso"
)
type Given = tuple[f.Arg | None, Value]

_COMMON = {
    "get", "set", "run", "call", "append", "add", "update", "close", "open", "read", "write", "send", "start", "stop",  # noqa: E501
    "items", "keys", "values", "pop", "format", "join", "render", "load", "save", "create", "delete", "find", "name",  # noqa: E501
    "execute", "process", "handle", "parse", "build", "invoke", "stream", "next", "push", "map", "filter", "toString",  # noqa: E501
    "then", "catch", "connect", "clear", "reset", "copy", "replace", "strip", "split", "encode", "decode", "log",  # noqa: E501
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
        return construct(frame, node, shape, given)
    name = shape.name if isinstance(shape, External) else ""
    dotted = name or walk.dotted(node.func)
    requested = sending.request(frame, node, dotted, bool(name), given)
    if requested is not None:
        return requested
    method = node.func.name if isinstance(node.func, f.Attr) else ""
    if name or not isinstance(node.func, f.Attr):
        known = methods.function(frame, node, dotted, given)
        if known is not None:
            return known
    source = frame.knowledge.source(dotted) or frame.knowledge.source_method(dotted)
    if source is not None and not _shadowed(frame, node, name):
        return sourced(frame, source, node.at, node, given)
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
    return unknown(frame, node, dotted, base if method else target, given)


def looked_up(frame: Frame, node: f.Call, made: Value, given: list[Given]) -> Value:
    """What a call gives whose name says that it looks something up for the turn."""
    name = walk.last_name(node.func)
    lookup = frame.knowledge.lookup(walk.owner_name(node.func), name)
    if lookup is None or made.flat() or isinstance(made.shape, (Func, Klass)):
        return made
    # A search without anything to search for, or one that the project itself answers, may be the same each time.  # noqa: E501
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


def sourced(
    frame: Frame, source: Source, at: f.At, node: f.Call | None = None, given: Sequence[Given] = ()
) -> Value:
    """A value read from a source of the table."""
    if source.set:
        inner = picking.element(frame, given[0][1], at) if given else NOTHING
        return Value(shape=Items("set", ((True, _spread(inner)),) if given else ()))
    if source.code == "PG110" and _seeded(frame):
        return mixed([value for _, value in given])
    what = source.what
    if source.what == "the output of a process" and node is not None:
        words = " ".join(sorted(walk.strings([arg.value for arg in node.args])))
        if any(mark in words for mark in ("--version", "uname", "which ", "nproc")) or words in {
            "uname",
            "which",
            "-v",
            "node -v",
        }:
            return NOTHING
        if "git" in words.split() or words.startswith("git"):
            what = "the state of the repository"
    if (
        node is not None
        and node.new
        and source.grain
        and given
        and not any(isinstance(v.shape, External) for _, v in given)
    ):
        # `new Date(value)` is a given time, not the clock; a difference with one is.
        return mixed([value for _, value in given])
    if source.grain and not node and source.lifetime == "call":
        return NOTHING
    if (
        source.code in {"PG101", "PG103"}
        and given
        and dotted_is(node, ("strftime", "localtime", "gmtime", "ctime", "dayjs", "moment"))
    ):
        first = given[0][1]
        if dotted_is(node, ("strftime",)) and isinstance(first.const, str):
            if len(given) > 1:
                return mixed([v for _, v in given[1:]])
            change = frame.change(source.code, what, at, LIFETIMES.index(source.lifetime), grain="second")
            return Value((clocks.formatted(change, first.const, frame.knowledge),))
        if not dotted_is(node, ("strftime",)):
            return mixed([value for _, value in given])
    change = frame.change(
        source.code,
        what,
        at,
        LIFETIMES.index(source.lifetime),
        grain=source.grain,
        order=source.order,
        content=source.content,
        confidence=("low", "medium", "high").index(source.confidence),
    )
    rest = mixed([value for _, value in given]) if source.code == "PG110" else NOTHING
    if node is not None and source.code == "PG110" and dotted_is(node, ("shuffle",)) and node.args:
        shuffled = change._replace(order=True)
        base = given[0][1]
        frame.rebind(node.args[0].value, base.but(changes=unique((*base.changes, shuffled)), _flat=None))
        return Value((shuffled,), rest.refs)
    return Value(unique((change, *rest.flat())), rest.all_refs())


def dotted_is(node: f.Call | None, ends: tuple[str, ...]) -> bool:
    """Whether the called name ends in one of these."""
    return node is not None and walk.last_name(node.func) in ends


def _seeded(frame: Frame) -> bool:
    """Whether the file fixes the random generator with a constant."""
    key = f"seed:{frame.file.index}"
    known = frame.flow.modules.get(frame.file.index, {}).get(key)
    if known is None:
        found = False
        module = frame.file.module
        for body in [module.body, *(function.body for function in module.functions)]:
            for item in walk.inside(body):
                if (
                    isinstance(item, f.Call)
                    and walk.last_name(item.func) == "seed"
                    and item.args
                    and isinstance(item.args[0].value, f.Lit)
                ):
                    found = True
        known = Value(const=found)
        frame.flow.modules.setdefault(frame.file.index, {})[key] = known
    return bool(known.const)


def _spread(value: Value) -> Value:
    return Value(shape=Items("many", ((False, value),)))


def unknown(frame: Frame, node: f.Call, dotted: str, base: Value, given: list[Given]) -> Value:
    """A call of something that the project does not hold."""
    knowledge = frame.knowledge
    last = dotted.rsplit(".", 1)[-1]
    if dotted in knowledge.stops or last in knowledge.stop_methods or dotted.startswith(knowledge.stop_roots):
        return NOTHING
    naming.keywords(frame, node, given, dotted)
    for _, value in given:
        if isinstance(value.shape, Func) and value.shape.function[1] >= 0:
            apply(
                frame,
                value.shape.function,
                value.shape.bound,
                [],
                {},
                node.at,
                "called back",
                value.shape.scope,
            )
    if last[:1].isupper() or node.new:
        entries: dict[str, Value] = {}
        spread: list[Value] = []
        position = 0
        for arg, value in given:
            if arg is None or arg.star:
                if isinstance(value.shape, Fields):
                    entries.update(value.shape.entries)
                else:
                    spread.append(value)
            elif arg.name:
                entries[arg.name] = value
            elif isinstance(value.shape, Fields) and len(given) == 1 and not value.shape.name:
                entries.update(value.shape.entries)
            else:
                entries[str(position)] = value
                position += 1
        made = Value(shape=Fields(entries, tuple(spread), dotted, node.at, frame.file.index))
        made.size = sum(value.size for value in entries.values())
        naming.constructed(frame, node, dotted, made)
        return made
    if isinstance(node.func, f.Attr) and base.flat():
        if isinstance(base.shape, (Fields, Instance)) and not given:
            return NOTHING if isinstance(base.shape, Instance) else Value(base.flat(), base.all_refs())
        return Value(
            tuple(change for change in base.flat() if not change.edit),
            merge_refs(base.all_refs(), *(v.all_refs() for _, v in given)),
        )
    values = [value for _, value in given if not isinstance(value.shape, Func)]
    made = mixed(values)
    for arg, value in given:
        if (
            arg is not None
            and isinstance(value.shape, Fields)
            and value.shape.name.endswith(("BytesIO", "StringIO", "Buffer"))
        ):
            # What is written into a buffer is what the buffer gives back.
            frame.rebind(
                arg.value,
                Value(unique((*value.changes, *made.flat())), made.refs, value.shape, place=value.place),
            )
    if not isinstance(base.shape, (External, Func)):
        made = Value(made.flat(), merge_refs(base.all_refs(), made.all_refs()))
    if not made.flat():
        return Value(refs=made.refs) if made.refs else NOTHING
    # What an unknown function makes of its arguments is a guess: most look something up under an id or a time.  # noqa: E501
    if not _WRITES.search(last) and not node.new:
        kept = tuple(c for c in made.flat() if not c.edit and c.code not in {"PG104", "PG110", "PG206"})
        return Value(tuple(c._replace(confidence=0) for c in kept), made.refs)
    return Value(
        tuple(
            change._replace(confidence=max(0, change.confidence - 1))
            for change in made.flat()
            if not change.edit
        ),
        made.refs,
    )


def _by_name(frame: Frame, node: f.Call, method: str, base: Value, given: list[Given]) -> Value | None:
    """A method of an unknown object, when the project has only one or two of that name."""
    if method in _COMMON or len(method) < 6 or isinstance(base.shape, External):
        return None
    candidates = [fid for fid in frame.flow.methods_named(method) if fid != frame.fid]
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
    made = apply(frame, func.function, func.bound, positional, named, node.at, note, func.scope, nodes)
    flow = frame.flow
    if func.bound is not None and function.owner >= 0 and not made.flat():
        owner = (func.function[0], function.owner)
        for other in flow.overrides(owner, function.name):
            made = join(made, apply(frame, other, func.bound, positional, named, node.at, note, None, nodes))
    if guessed and made.flat():
        made = transform(made, lambda change: change._replace(confidence=min(1, change.confidence)))
    return made


def apply(
    frame: Frame,
    fid: FunctionId,
    bound: Value | None,
    positional: list[Value],
    named: dict[str, Value],
    at: f.At,
    note: str,
    scope: Frame | None = None,
    nodes: dict[int | str, f.Expr] | None = None,
) -> Value:
    """Use the summary of a function: its result, its sinks and its edits, with these arguments."""
    flow = frame.flow
    summary = flow.summary(fid, scope)
    function = flow.function(fid)
    arguments, expressions_of = _match(frame, function, bound, positional, named, nodes or {})
    if summary is None:
        return mixed([*positional, *named.values()])
    lookup = _lookup(frame, fid, arguments, bound, at)
    loops = frame.loop_ids
    step = frame.step(at, note)

    def moved(change: Change) -> Change:
        return change._replace(loops=loops).step(step)

    returned = substitute(transform(summary.returns, moved), lookup)
    alone = bool(summary.pending) and not frame.talking and _alone(frame, function, arguments)
    for pending in summary.pending:
        refs = pending.value.all_refs()
        if any(ref[0] == fid and ref[1] in arguments for ref in refs):
            judging.replayed(
                frame, pending, substitute(pending.value, lookup), at, function.name, one_shot=alone
            )
    for index, path, kind, value in summary.mutations:
        target = expressions_of.get(index)
        left = path
        if index == 0 and target is None and bound is not None and bound.place == ("self",) and path:
            target = f.Attr(at, f.Name(at, "this" if frame.file.family == "typescript" else "self"), path[0])
            left = path[1:]
        if target is not None:
            for name in left:
                if name.startswith("["):
                    break
                target = f.Attr(at, target, name)
            removal.replayed(
                frame,
                target,
                kind,
                value if not isinstance(value, Value) else substitute(transform(value, moved), lookup),
                at,
                function.name,
            )
    if bound is not None and isinstance(bound.shape, Instance) and summary.writes:
        for name, value in summary.writes.items():
            bound.shape.fields.setdefault(name, substitute(transform(value, moved), lookup))
    return returned


def _alone(frame: Frame, function: f.FunctionFacts, arguments: dict[int, Value]) -> bool:
    """Whether a function is given a list of messages that is made for this call, without any history."""
    from prefixguard.lint import requests

    offset = 1 if function.owner >= 0 and not function.static and frame.file.family == "typescript" else 0
    for index, param in enumerate(function.params, offset):
        value = arguments.get(index)
        if value is None or not frame.is_list_name(param.name) or not isinstance(value.shape, Items):
            continue
        stored = value.place is not None and not value.place[0].startswith("local:")
        if not stored and not requests.has_history(frame, value):
            return True
    return False


def _match(
    frame: Frame,
    function: f.FunctionFacts,
    bound: Value | None,
    positional: list[Value],
    named: dict[str, Value],
    nodes: dict[int | str, f.Expr],
) -> tuple[dict[int, Value], dict[int, f.Expr]]:
    """Arguments by the position of their parameter."""
    arguments: dict[int, Value] = {}
    where: dict[int, f.Expr] = {}
    method = function.owner >= 0 and not function.static
    typescript = frame.flow.project.files[frame.file.index].family == "typescript"
    offset = 1 if method and typescript else 0
    params = list(enumerate(function.params, offset))
    if method:
        arguments[0] = bound if bound is not None else NOTHING
        if not typescript:
            params = params[1:]
    position = 0
    for index, param in params:
        if param.star == 1:
            rest = positional[position:]
            if rest:
                arguments[index] = Value(
                    shape=Items("list", tuple((False, value) for value in rest[:MAX_PARTS]))
                )
            position = len(positional)
        elif param.star == 2:
            known = {p.name for p in function.params}
            extra = {name: value for name, value in named.items() if name not in known}
            if extra:
                arguments[index] = Value(shape=Fields(extra))
        elif param.star == 3:
            position = len(positional)
        elif position < len(positional):
            arguments[index] = positional[position]
            if position in nodes:
                where[index] = nodes[position]
            position += 1
        elif param.name in named:
            arguments[index] = named[param.name]
            if param.name in nodes:
                where[index] = nodes[param.name]
    for name, value in named.items():
        for index, param in params:
            if param.name == name and index not in arguments:
                arguments[index] = value
                if name in nodes:
                    where[index] = nodes[name]
    return arguments, where


def _lookup(
    frame: Frame, fid: FunctionId, arguments: dict[int, Value], bound: Value | None, at: f.At
) -> Callable[[Ref], Value | None]:
    """How references of a called function are resolved: its parameters, and what its object was made with."""
    cached: dict[Ref, Value | None] = {}
    constructor: FunctionId | None = None
    instance: Instance | None = None
    if bound is not None and isinstance(bound.shape, Instance):
        instance = bound.shape
        constructor = frame.flow.constructor(instance.owner)

    def lookup(ref: Ref) -> Value | None:
        if ref not in cached:
            cached[ref] = _find(ref)
        return cached[ref]

    def _find(ref: Ref) -> Value | None:
        if ref[0] == fid:
            value = arguments.get(ref[1], NOTHING)
        elif (
            constructor is not None
            and ref[0] == constructor
            and instance is not None
            and ref[1] < len(instance.args)
        ):
            value = session(instance.args[ref[1]], "constructor")
        else:
            return None
        for name in ref[2]:
            if value is NOTHING:
                break
            if name == methods.SORTED:
                value = methods.unordered_gone(value)
            elif name.startswith("["):
                value = picking.element(frame, value, at)
            elif value.place == ("self",) and value.shape is None:
                # The caller's own object: its fields are known to the callee already.
                value = Value(
                    refs=tuple((r[0], r[1], (*r[2], name)) for r in value.refs if len(r[2]) < 4),
                    place=(*value.place, name),
                )
            else:
                value = members.attribute(frame, value, name, at)
        return value

    return lookup


def construct(frame: Frame, node: f.Call, klass: Klass, given: list[Given]) -> Value:
    """An object of a class of the project."""
    flow = frame.flow
    owner = klass.owner
    facts = flow.klass(owner)
    positional = [value for arg, value in given if arg is None or (not arg.name and not arg.star)]
    named = {arg.name: value for arg, value in given if arg is not None and arg.name}
    for arg, value in given:
        if arg is not None and arg.star == 2 and isinstance(value.shape, Fields):
            named.update(value.shape.entries)
    constructor = flow.constructor(owner)
    naming.keywords(frame, node, given, facts.name, built=True)
    if constructor is None:
        fields = dict(named)
        order = [name for item in reversed(flow.lineage(owner)) for name in flow.klass(item).annotations]
        fields.update(zip(order, positional, strict=False))
        made = Value(shape=Instance(owner, fields), size=sum(v.size for v in fields.values()))
        naming.constructed(
            frame, node, facts.name, Value(shape=Fields(fields, (), facts.name, node.at, frame.file.index))
        )
        return made
    summary = flow.summary(constructor)
    function = flow.function(constructor)
    arguments, _ = _match(frame, function, None, positional, named, {})
    size = max(arguments, default=0) + 1
    args = tuple(arguments.get(index, NOTHING) for index in range(size))
    fields = {}
    if summary is not None:
        lookup = _lookup(frame, constructor, arguments, None, node.at)
        for name, value in summary.writes.items():
            fields[name] = substitute(value, lookup)
    made = Value(shape=Instance(owner, fields, args))
    if any(value.flat() for value in args):
        kept = {index: _kept(frame, value) for index, value in arguments.items()}
        lookup = _lookup(frame, constructor, kept, None, node.at)
        for pending in flow.pending_of(owner, constructor):
            judging.replayed(
                frame, pending, substitute(pending.value, lookup), node.at, facts.name, built=True
            )
    naming.constructed(
        frame,
        node,
        facts.name,
        Value(shape=Fields({**fields, **named}, (), facts.name, node.at, frame.file.index)),
    )
    return made


def _kept(frame: Frame, value: Value) -> Value:
    """What an object was given when it was made lives as long as the object."""
    if frame.fid[1] < 0:
        return value
    return outlive(value, SESSION, "constructor")


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


__all__ = ["Given", "Pending", "apply", "call"]
