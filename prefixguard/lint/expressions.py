"""What an expression gives: literals, names, attributes, containers, templates, operators.

Part of the third step of the linter; called by `frame`, calls `calls` for calls.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixguard.lint import calls, clocks, walk
from prefixguard.lint import facts as f
from prefixguard.lint.history import binding, noting, slices, splitting
from prefixguard.lint.knowledge import LIFETIMES, TURN
from prefixguard.lint.sinks import frameworks, naming, varying
from prefixguard.lint.summary import Loop
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    Either,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Klass,
    ModuleRef,
    Value,
    Words,
    join,
    merge_refs,
    mixed,
    transform,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def evaluate(frame: Frame, node: f.Expr | None) -> Value:
    """The value of an expression; `NOTHING` for one that carries nothing."""
    if node is None:
        return NOTHING
    handler = _HANDLERS.get(type(node))
    return handler(frame, node) if handler is not None else NOTHING


def literal(frame: Frame, node: f.Lit) -> Value:
    value = node.value
    return Value(const=value, size=len(value) if isinstance(value, str) else 0)


def name(frame: Frame, node: f.Name) -> Value:
    value = frame.lookup(node.name)
    if value is None:
        source = frame.knowledge.source(node.name)
        if (
            source is not None
            and source.names
            and not source.set
            and source.lifetime == "process"
            and "." in node.name
        ):
            return calls.sourced(frame, source, node.at)
        return Value(shape=External(node.name))
    if value.place is None and isinstance(value.shape, (Items, Fields)):
        return value.but(place=("local:" + node.name,))
    if any(change.loop_bound for change in value.changes):
        # A counter is found where it is used, not where its loop begins.
        return value.but(
            changes=tuple(
                c._replace(at=node.at) if c.loop_bound and not c.trace else c for c in value.changes
            ),
            _flat=None,
        )
    bare = value.shape is None or (isinstance(value.shape, Instance) and not value.shape.fields)
    if bare and value.place is not None and value.const is None and value.refs:
        return stated(frame, value, node.name, "", node.at)
    return value


def stated(frame: Frame, value: Value, name: str, owner: str, at: f.At) -> Value:
    """An unknown value whose name says that it changes."""
    state = frame.knowledge.state(name, owner)
    if state is None or any(change.code == state.code for change in value.changes):
        return value
    what = f"{state.what} (`{owner + '.' if owner else ''}{name}`)"
    change = frame.change(state.code, what, at, LIFETIMES.index(state.lifetime), confidence=0)
    return value.but(changes=unique((*value.changes, change)))


def attr(frame: Frame, node: f.Attr, given: Value | None = None) -> Value:
    """`base.name`; `given` is the base's value when it is known already, so that chains of calls are read once."""  # noqa: E501
    key = walk.dotted(node)
    known = frame.env.get(key) if key else None
    if known is None and key and frame.scope is not None:
        scope: Frame | None = frame.scope
        while known is None and scope is not None:
            known = scope.env.get(key)
            scope = scope.scope
    if known is not None:
        if known.place is None and isinstance(known.shape, (Items, Fields)):
            base = given if given is not None else evaluate(frame, node.base)
            if base.place is not None:
                return known.but(place=(*base.place, node.name))
        return known
    base = given if given is not None else evaluate(frame, node.base)
    value = attribute(frame, base, node.name, node.at, walk.last_name(node.base))
    if frame.owner is not None and base.place == ("self",) and frame.flow.counts(frame.owner, node.name):
        change = frame.change("PG105", f"the counter `{key}`", node.at, TURN, confidence=1)
        value = Value(unique((*value.changes, change)), value.refs, place=value.place)
    return value


def attribute(frame: Frame, base: Value, name: str, at: f.At, owner: str = "") -> Value:
    """`base.name`, or `base["name"]`."""
    shape = base.shape
    place = (*base.place, name) if base.place is not None and len(base.place) < 7 else None
    flow = frame.flow
    if isinstance(shape, External):
        dotted = f"{shape.name}.{name}"
        source = frame.knowledge.source(dotted)
        if (
            source is not None
            and source.lifetime in {"process", "host"}
            and "()" not in dotted
            and frame.file.family == "typescript"
        ):
            return calls.sourced(frame, source, at)
        return Value(shape=External(dotted), place=place)
    if isinstance(shape, ModuleRef):
        found = flow.exported(flow.project.files[shape.file], name)
        if found is not None:
            return found
        folder = flow.project.files[shape.file]
        submodule = flow.project.resolve(folder, name, 1) if folder.family == "python" else None
        return Value(shape=ModuleRef(submodule.index)) if submodule is not None else NOTHING
    if isinstance(shape, Fields):
        found = shape.entries.get(name)
        if found is not None:
            return found if found.place is not None or place is None else found.but(place=place)
        if "*" in shape.entries and not shape.name:
            keyed = mixed(shape.keys)
            return shape.entries["*"] if not keyed.flat() else join(shape.entries["*"], keyed)
        inherited = [attribute(frame, part, name, at, owner) for part in shape.spread]
        inherited = [part for part in inherited if part is not NOTHING]
        if inherited:
            return inherited[0]
        refs = tuple((r[0], r[1], (*r[2], name)) for r in base.refs if len(r[2]) < 4)
        return Value(refs=refs, place=place) if refs or place else NOTHING
    if isinstance(shape, (Instance, Klass)) or (base.place == ("self",) and frame.owner is not None):
        found = member(frame, base, name, at)
        weak = tuple(change for change in base.changes if change.confidence == 0)
        if weak and (found is None or not isinstance(found.shape, Func)):
            found = (found or NOTHING).but(changes=unique((found or NOTHING).changes + weak), _flat=None)
        if found is not None:
            if found.const is None and (
                found.shape is None or isinstance(found.shape, (Items, Fields, Either))
            ):
                return stated(frame, found, name, owner, at)
            return found
    if isinstance(shape, Either):
        parts = [attribute(frame, option, name, at, owner) for option in shape.options]
        found = NOTHING
        for part in parts:
            found = join(found, part)
        return found
    if isinstance(shape, Func):
        return NOTHING
    refs = tuple((r[0], r[1], (*r[2], name)) for r in base.refs if len(r[2]) < 4)
    changes = (
        tuple(change for change in base.flat() if not change.edit)
        if shape is None or isinstance(shape, Words)
        else ()
    )
    if changes and name in frame.knowledge.day_attributes:
        changes = tuple(clocks.coarse(change) for change in changes)
    value = Value(changes, refs, place=place, origin=name)
    if not changes:
        value = stated(frame, value, name, owner, at)
    return value


def member(frame: Frame, base: Value, name: str, at: f.At) -> Value | None:
    """A field, getter or method of an object of a class of the project."""
    flow = frame.flow
    shape = base.shape
    if isinstance(shape, (Instance, Klass)):
        owner = shape.owner
        if isinstance(shape, Instance) and name in shape.fields:
            from prefixguard.lint.flow import stored

            return transform(shape.fields[name], stored)
    else:
        assert frame.owner is not None
        owner = frame.owner
    fid = flow.method(owner, name)
    if fid is not None:
        if flow.function(fid).kind == "getter":
            return calls.apply(frame, fid, base, [], {}, at, f"`{name}` is read")
        return Value(shape=Func(fid, base))
    found = flow.attribute(owner, name)
    place = (*base.place, name) if base.place is not None else None
    refs = tuple((r[0], r[1], (*r[2], name)) for r in base.refs if len(r[2]) < 4)
    if found is NOTHING and not refs and place is None:
        return None
    if isinstance(shape, Instance) and not isinstance(found.shape, (Func, Klass)) and found.all_refs():
        pass
    return Value(
        found.changes,
        merge_refs(found.refs, refs),
        found.shape,
        found.const,
        place,
        found.elements,
        found.size,
        name,
    )


def index(frame: Frame, node: f.Index) -> Value:
    base = evaluate(frame, node.base)
    key = evaluate(frame, node.key)
    if isinstance(key.const, str):
        full = walk.dotted(node.base)
        known = frame.env.get(f"{full}.{key.const}") if full and not isinstance(base.shape, Fields) else None
        if known is not None:
            return known
        return attribute(frame, base, key.const, node.at, walk.last_name(node.base))
    if isinstance(key.const, int) and not isinstance(key.const, bool):
        marker = "[0]" if key.const == 0 else "[-1]" if key.const < 0 else "[]"
        shape = base.shape
        if isinstance(shape, Items) and shape.kind != "set":
            parts = shape.parts
            known = None
            if (0 <= key.const < len(parts) and not any(s for s, _ in parts[: key.const + 1])) or (
                key.const < 0 and -key.const <= len(parts) and not any(s for s, _ in parts[key.const :])
            ):
                known = parts[key.const][1]
            if known is not None:
                return known if base.place is None else known.but(place=(*base.place, marker))
        return _element(frame, base, marker, node.at)
    marker = "[-1]" if noting.is_last(frame, node.key, node.base) else "[]"
    found = _element(frame, base, marker, node.at)
    # What is looked up under an id or a time does not hold it; what is picked by chance or in no order does differ.  # noqa: E501
    order = tuple(c for c in key.flat() if not c.edit and (c.order or c.code in {"PG110", "PG105"}))
    if order:
        found = Value(unique((*found.flat(), *order)), merge_refs(found.all_refs(), key.all_refs()))
        return frame.traced(found, node.at, "looked up by it")
    return found


def element(frame: Frame, value: Value, at: f.At) -> Value:
    """Any element of it, as a loop sees it."""
    return _element(frame, value, "[]", at)


def _element(frame: Frame, value: Value, marker: str, at: f.At) -> Value:
    shape = value.shape
    place = value.elements
    if place is None and value.place is not None and len(value.place) < 7:
        place = (*value.place, marker)
    elif place is not None and marker != "[]":
        place = (*place[:-1], marker)
    changes = tuple(change for change in value.changes if not change.edit)
    if isinstance(shape, Items):
        found = NOTHING
        for spread, part in shape.parts[:12]:
            found = join(found, _element(frame, part, marker, at) if spread else part)
        if shape.kind == "set":
            changes = (*changes, unordered(frame, at))
        if value.refs and shape.kind != "set":
            refs = tuple((r[0], r[1], (*r[2], "[]")) for r in value.refs if len(r[2]) < 4)
            found = join(found, Value((), refs, place=place))
        if changes:
            found = found.but(changes=unique((*found.changes, *changes)), _flat=None)
        if place is not None and (found.place is None or value.elements is not None):
            found = found.but(place=place)
        return found
    if isinstance(shape, Fields):
        keyed = mixed(shape.keys)
        return Value(unique((*changes, *keyed.flat())), keyed.all_refs())
    if isinstance(shape, Either):
        found = NOTHING
        for option in shape.options:
            found = join(found, _element(frame, option, marker, at))
        return found
    if isinstance(shape, (Words, External, Func, Klass, ModuleRef, Instance)):
        return Value(changes) if changes else NOTHING
    refs = tuple((r[0], r[1], (*r[2], "[]")) for r in value.refs if len(r[2]) < 4)
    return Value(changes, refs, place=place)


def unordered(frame: Frame, at: f.At) -> Change:
    """A set, written or walked here."""
    return frame.change("PG209", "a set in no fixed order", at, LIFETIMES.index("process"), order=True)


def slice_(frame: Frame, node: f.Slice) -> Value:
    base = evaluate(frame, node.base)
    return slices.sliced(frame, node, base)


def call(frame: Frame, node: f.Call) -> Value:
    return calls.call(frame, node)


def text(frame: Frame, node: f.Text) -> Value:
    parts = []
    for part in node.parts:
        value = evaluate(frame, part)
        parts.append(printed(frame, value, part.at))
    return words(frame, parts, node.at)


def words(frame: Frame, parts: list[Value], at: f.At) -> Value:
    """Text made of these parts in this order."""
    flat: list[Value] = []
    for part in parts:
        if (
            isinstance(part.shape, Words)
            and not part.changes
            and len(flat) + len(part.shape.parts) <= MAX_PARTS
        ):
            flat.extend(part.shape.parts)
        else:
            flat.append(part)
    size = sum(part.size for part in parts)
    made = Value(shape=Words(tuple(flat[:MAX_PARTS])), size=size)
    return frame.traced(made, at, "put into a text")


def printed(frame: Frame, value: Value, at: f.At) -> Value:
    """A value as text: a set is written in no fixed order."""
    shape = value.shape
    if isinstance(shape, Items) and shape.kind == "set":
        return mixed([value], (unordered(frame, at),))
    if isinstance(shape, Func):
        return NOTHING
    if isinstance(shape, External) and shape.name in {"os.environ", "process.env"}:
        return Value(
            (frame.change("PG209", "a dump of the environment", at, LIFETIMES.index("process"), order=True),)
        )
    if isinstance(shape, (Items, Fields, Instance)):
        return Value(value.flat(), value.all_refs(), size=value.size)
    return value


def format_(frame: Frame, node: f.Format) -> Value:
    value = printed(frame, evaluate(frame, node.value), node.at)
    if value.flat() and node.spec:
        return transform(value, lambda change: clocks.formatted(change, node.spec, frame.knowledge))
    return value


def sequence(frame: Frame, node: f.Seq) -> Value:
    parts: list[tuple[bool, Value]] = []
    for item in node.items:
        if isinstance(item, f.Spread):
            value = evaluate(frame, item.value)
            shape = value.shape
            if (
                isinstance(shape, Items)
                and shape.kind != "set"
                and not value.changes
                and len(parts) + len(shape.parts) <= MAX_PARTS
            ):
                parts.extend(shape.parts)
            elif isinstance(shape, Items) and shape.kind == "set":
                parts.append((True, element(frame, value, item.at)))
            else:
                parts.append((True, value))
        else:
            parts.append((False, evaluate(frame, item)))
    made = Value(shape=Items(node.kind, tuple(parts[:MAX_PARTS])))
    return binding.assembled(frame, node, made)


def mapping(frame: Frame, node: f.Map) -> Value:
    entries: dict[str, Value] = {}
    spread: list[Value] = []
    keys: list[Value] = []
    for key, item in node.entries:
        if key is None:
            value = evaluate(frame, item)
            if isinstance(value.shape, Fields) and not value.changes:
                entries.update(value.shape.entries)
                spread.extend(value.shape.spread)
                keys.extend(value.shape.keys)
            else:
                spread.append(value)
            continue
        key_value = evaluate(frame, key)
        if isinstance(item, f.Function) and isinstance(key_value.const, str):
            frameworks.hooked(frame, key_value.const, item, node)
        value = evaluate(frame, item)
        if isinstance(key_value.const, (str, int)):
            entries[str(key_value.const)] = value
            if key_value.const in _IDS and {"role", "type"} & _keys_of(node) and value.flat():
                value = transform(value, _minted)
                entries[str(key_value.const)] = value
            if key_value.const in _MEDIA and any(
                change.loop_bound or change.code == "PG105" for change in value.flat()
            ):
                value = transform(value, _encoded)
            if value.flat():
                entries[str(key_value.const)] = frame.traced(value, item.at, f"put under `{key_value.const}`")
        else:
            entries["*"] = join(entries["*"], value) if "*" in entries else value
            if key_value.flat():
                keys.append(key_value)
    made = Value(shape=Fields(entries, tuple(spread), "", node.at, frame.file.index, tuple(keys)))
    made.size = sum(value.size for value in entries.values())
    naming.built(frame, node, made)
    return made


_MEDIA = {"data", "image_url", "url", "inline_data", "inlineData", "image"}


def _encoded(change: Change) -> Change:
    if change.code == "PG105":
        return change._replace(code="PG305", what=f"a medium encoded anew by {change.what}")
    return change


def _minted(change: Change) -> Change:
    return change._replace(code="PG206", what="an id minted anew") if change.code == "PG104" else change


def _keys_of(node: f.Map) -> set[object]:
    return {key.value for key, _ in node.entries if isinstance(key, f.Lit)}


_IDS = {"id", "call_id", "tool_call_id", "message_id", "item_id", "toolCallId", "callId", "messageId"}


def operator(frame: Frame, node: f.Op) -> Value:
    values = [evaluate(frame, operand) for operand in node.operands]
    op = node.op
    if op == "+":
        return added(frame, node, values)
    if op == "%":
        return _percent(frame, node, values)
    if op == "*":
        for value, factor in ((values[0], values[-1]), (values[-1], values[0])):
            if (
                isinstance(factor.const, int)
                and not isinstance(factor.const, bool)
                and (value.size or value.shape)
            ):
                return value.but(size=value.size * max(0, factor.const), const=None)
        return mixed(values)
    if op == "-":
        made = mixed(values)
        if isinstance(values[0].shape, Items) and values[0].shape.kind == "set":
            return Value(made.flat(), made.all_refs(), Items("set", values[0].shape.parts))
        if any(change.grain for change in made.flat()):
            return transform(made, lambda change: clocks.elapsed(change, node.at))
        return made
    if op in {"|", "&", "^"}:
        kinds = [v.shape.kind for v in values if isinstance(v.shape, Items)]
        if "set" in kinds:
            parts = tuple(part for v in values if isinstance(v.shape, Items) for part in v.shape.parts)
            return Value(shape=Items("set", parts[:MAX_PARTS]))
        shapes = [v for v in values if isinstance(v.shape, Fields)]
        if shapes and op == "|":
            return Value(shape=Fields({}, tuple(values)))
        frameworks.piped(frame, values)
        return mixed(values)
    if op in {"or", "||", "??", "and", "&&"}:
        found = values[0] if op not in {"and", "&&"} else NOTHING
        for value in values[1:]:
            found = join(found, value)
        return found
    if (
        op.startswith("compare:")
        or op in {"not", "u!", "utypeof", "udelete", "uvoid"}
        or op in {"===", "!==", "==", "!=", "<", ">", "<=", ">=", "instanceof", "in"}
    ):
        return NOTHING
    return mixed(values)


def added(frame: Frame, node: f.Op | f.Assign, values: list[Value]) -> Value:
    """`a + b`: text, lists, or numbers."""
    listed = [isinstance(value.shape, Items) and value.shape.kind != "set" for value in values]
    if any(listed):
        parts: list[tuple[bool, Value]] = []
        for value in values:
            shape = value.shape
            if isinstance(shape, Items) and not value.changes:
                parts.extend(shape.parts)
            else:
                parts.append((True, value))
        return binding.assembled(frame, node, Value(shape=Items("list", tuple(parts[:MAX_PARTS]))))
    operands = node.operands if isinstance(node, f.Op) else []
    if any(
        value.place is not None and frame.is_list_name(walk.last_name(operand))
        for value, operand in zip(values, operands, strict=False)
    ):
        made = Value(shape=Items("list", tuple((True, value) for value in values)))
        return binding.assembled(frame, node, made)
    return words(frame, [printed(frame, value, node.at) for value in values], node.at)


def augmented(frame: Frame, node: f.Assign, before: Value, value: Value) -> Value:
    """The value of `target += value` and its kin."""
    if node.op in {"+=", "??=", "||=", "&&="}:
        target = node.targets[0]
        if isinstance(before.shape, Items) or frame.is_list_name(walk.last_name(target)):  # noqa: SIM102
            if node.op == "+=":
                calls.extended(frame, target, before, value, node.at)
                return before
        if node.op != "+=":
            return join(before, value)
        if isinstance(node.value, f.Lit) and isinstance(node.value.value, (int, float)):
            return before if before.const is None else before.but(const=None)
        return words(frame, [before, printed(frame, value, node.at)], node.at)
    if node.op in {"|="} and isinstance(before.shape, Items):
        return before.but(shape=Items(before.shape.kind, (*before.shape.parts, (True, value))[:MAX_PARTS]))
    return mixed([before, value])


_DIRECTIVE = re.compile(r"%(?:\((\w+)\))?[-#0 +]*[\d.*]*[sdifgrxXeEc]")


def _percent(frame: Frame, node: f.Op, values: list[Value]) -> Value:
    template, argument = values[0], values[-1]
    if not isinstance(template.const, str) and not isinstance(template.shape, Words) and not template.size:
        return mixed(values) if not isinstance(argument.const, int) else NOTHING
    parts = argument.shape.parts if isinstance(argument.shape, Items) else ((False, argument),)
    pieces: list[Value] = [template.but(const=None)]
    pieces.extend(printed(frame, part, node.at) for _, part in parts)
    if isinstance(template.const, str) and not isinstance(argument.shape, Fields):
        literals = _DIRECTIVE.split(template.const)[::2]
        if len(literals) == len(parts) + 1:
            pieces = []
            for literal_part, (_, part) in zip(literals, parts, strict=False):
                pieces.append(Value(const=literal_part, size=len(literal_part)))
                pieces.append(printed(frame, part, node.at))
            pieces.append(Value(const=literals[-1], size=len(literals[-1])))
    return words(frame, pieces, node.at)


def choice(frame: Frame, node: f.Choice) -> Value:
    evaluate(frame, node.test)
    from prefixguard.lint.frame import Guard

    frame.guards.append(Guard(node.test, "if"))
    then = evaluate(frame, node.then)
    frame.guards[-1] = Guard(node.test, "if", negated=True)
    other = evaluate(frame, node.other)
    frame.guards.pop()
    made = join(then, other)
    if isinstance(made.shape, Either) and varying.varies(frame, node.test):
        made = made.but(shape=made.shape._replace(varies=True, at=node.at, file=frame.file.index))
    return made


def comprehension(frame: Frame, node: f.Comp) -> Value:
    from prefixguard.lint.frame import Guard

    kept = dict(frame.env)
    loop = Loop(frame.flow.next_loop(), False, node.at)
    frame.loops.append(loop)
    sources: list[Value] = []
    indexes = set(frame.indexes)
    pushed = 0
    for clause in node.clauses:
        source = evaluate(frame, clause.source)
        sources.append(source)
        if walk.is_counting(clause.source):
            target = clause.target
            first = target.items[0] if isinstance(target, f.Seq) and target.items else target
            frame.indexes |= walk.names(first)
        frame.store(clause.target, element(frame, source, clause.source.at), clause.source.at)
        for test in clause.tests:
            evaluate(frame, test)
            frame.guards.append(Guard(test, "filter"))
            pushed += 1
    value = evaluate(frame, node.element)
    key = evaluate(frame, node.key) if node.key is not None else None
    if pushed:
        del frame.guards[-pushed:]
    frame.loops.pop()
    frame.env.clear()
    frame.env.update(kept)
    whole = _same_entries(frame, node)
    if whole is not None:
        return whole
    if node.kind == "dict":
        entries = {"*": value}
        made = Value(
            shape=Fields(entries, (), "", node.at, frame.file.index, (key,) if key is not None else ())
        )
    else:
        kind = "list" if node.kind == "generator" else node.kind
        made = Value(shape=Items(kind, ((True, Value(shape=Items("list", ((False, value),)))),)))
        made = made.but(shape=Items(kind, ((True, _many(value)),)))
        if value.place is not None and "[]" in value.place:
            made.elements = value.place
    made = splitting.mapped(frame, node, sources[0] if sources else NOTHING, value, made)
    frame.indexes = indexes
    return frame.traced(made, node.at, "collected")


def _same_entries(frame: Frame, node: f.Comp) -> Value | None:
    """`{k: v for k, v in d.items() if v is not None}`: the dict itself, as far as is known."""
    if (
        node.kind != "dict"
        or len(node.clauses) != 1
        or not isinstance(node.key, f.Name)
        or not isinstance(node.element, f.Name)
    ):
        return None
    clause = node.clauses[0]
    target, source = clause.target, clause.source
    if not isinstance(target, f.Seq) or len(target.items) != 2 or not isinstance(source, f.Call):
        return None
    names = [item.name if isinstance(item, f.Name) else "" for item in target.items]
    if (
        names != [node.key.name, node.element.name]
        or not isinstance(source.func, f.Attr)
        or source.func.name != "items"
    ):
        return None
    return evaluate(frame, source.func.base)


def _many(value: Value) -> Value:
    """Some number of such values, as the spread part of a list."""
    if value.shape is None and value.elements is None and value.place is not None and value.place[-1] == "[]":
        # The elements of a list, unchanged: the list itself.
        refs = tuple((r[0], r[1], r[2][:-1]) if r[2] and r[2][-1] == "[]" else r for r in value.refs)
        return value.but(place=value.place[:-1], refs=refs)
    return Value(shape=Items("many", ((False, value),)))


def function(frame: Frame, node: f.Function) -> Value:
    fid = (frame.file.index, node.index)
    frame.nested.append((fid, frame))
    return Value(shape=Func(fid, None, frame))


def assigned(frame: Frame, node: f.Assigned) -> Value:
    value = evaluate(frame, node.value)
    frame.store(node.target, value, node.at)
    return value


def yielded(frame: Frame, node: f.Yield) -> Value:
    if node.value is not None:
        value = evaluate(frame, node.value)
        if isinstance(value.shape, Items) and node.spread:
            frame.yielded.extend(value.shape.parts[:MAX_PARTS])
        else:
            frame.yielded.append((node.spread, frame.traced(value, node.at, "yielded")))
    return NOTHING


def spread(frame: Frame, node: f.Spread) -> Value:
    return evaluate(frame, node.value)


_HANDLERS: dict[type[f.Fact], Any] = {
    f.Lit: literal,
    f.Name: name,
    f.Attr: attr,
    f.Index: index,
    f.Slice: slice_,
    f.Call: call,
    f.Text: text,
    f.Format: format_,
    f.Seq: sequence,
    f.Map: mapping,
    f.Spread: spread,
    f.Op: operator,
    f.Choice: choice,
    f.Comp: comprehension,
    f.Function: function,
    f.Assigned: assigned,
    f.Yield: yielded,
}
