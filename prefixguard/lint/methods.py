"""Well-known functions and methods: text, lists, dicts, copies, formats, callbacks.

Part of the third step of the linter. Each entry says what comes out of what
goes in; an answer of None means "not known here".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prefixguard.lint import calls, clocks, walk
from prefixguard.lint import facts as f
from prefixguard.lint.expressions import evaluation, members, picking, texts
from prefixguard.lint.history import binding, elements, noting, removal, slices, splitting, toolset
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    Change,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Klass,
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

SORTED = "[sorted]"
"""A step of a reference: whatever stands there was sorted."""

type Given = tuple[f.Arg | None, Value]

_TEXTS = {
    "str",
    "repr",
    "String",
    "textwrap.dedent",
    "textwrap.indent",
    "inspect.cleandoc",
    "html.escape",
    "ascii",
    "dedent",
    "indent",
    "cleandoc",
    "unicode",
    "fmt",
    "format",
}
_LISTS = {"list", "tuple", "Array.from", "iter", "collections.deque", "deque"}
_DEEP = {"copy.deepcopy", "deepcopy", "structuredClone", "lodash.cloneDeep", "_.cloneDeep", "cloneDeep"}
_SHALLOW = {"copy.copy", "Object.assign"}
_DUMPS = {
    "json.dumps",
    "orjson.dumps",
    "ujson.dumps",
    "simplejson.dumps",
    "JSON.stringify",
    "yaml.dump",
    "yaml.safe_dump",
    "msgspec.json.encode",
    "toml.dumps",
    "pprint.pformat",
    "yaml.stringify",
}
_SHORTENED = {"slice", "substring", "substr"}


def first(given: Sequence[Given]) -> Value:
    """The first argument."""
    return given[0][1] if given else NOTHING


def keyword(given: Sequence[Given], name: str) -> Value | None:
    """The argument of a name; for an options object, its field."""
    for arg, value in given:
        if arg is not None and arg.name == name:
            return value
    return None


def unordered_gone(value: Value) -> Value:
    """The same value in a fixed order."""
    return transform(value, _fixed) if value.flat() else value


def in_order(value: Value) -> Value:
    """An unknown value, sorted: what it turns out to be will stand in a fixed order."""
    refs = tuple((r[0], r[1], (*r[2], SORTED)) if len(r[2]) < 5 else r for r in value.refs)
    return value.but(refs=refs, place=None, _refs=None) if refs else value


def _fixed(change: Change) -> Change | None:
    if not change.order:
        return change
    if change.content:
        return change._replace(
            code=change.content, order=False, content="", what=change.what.replace(" in no fixed order", "")
        )
    return None


def function(frame: Frame, node: f.Call, name: str, given: list[Given]) -> Value | None:
    """A call of a function that everybody knows, by its dotted name."""
    knowledge = frame.knowledge
    if name in knowledge.fixing:
        if name == "sorted" or name.endswith("natsorted"):
            value = first(given)
            shape = value.shape
            if isinstance(shape, Items) and shape.kind == "set":
                inner = in_order(unordered_gone(picking.element(frame, value, node.at)))
                return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, inner),)))),)))
            if isinstance(shape, Fields):
                return Value(shape=Items("list", ()))
            if shape is None:
                return in_order(unordered_gone(value))
            return unordered_gone(value)
        return NOTHING
    if name in _TEXTS:
        value = texts.printed(frame, first(given), node.at)
        if name == "str" and isinstance(value.const, (int, float)):
            return Value(const=str(value.const), size=len(str(value.const)))
        return frame.traced(value.but(place=None, elements=None), node.at, "put into a text")
    if name in _LISTS:
        return _listed(frame, node, name, given)
    if name in {"set", "frozenset", "Set"}:
        source = first(given)
        if name == "Set":
            return Value(shape=Items("list", ((True, source),)) if given else Items("list", ()))
        inner = unordered_gone(picking.element(frame, source, node.at)) if given else NOTHING
        parts = ((True, Value(shape=Items("many", ((False, inner),)))),) if given else ()
        return Value(shape=Items("set", parts))
    if name in {
        "dict",
        "Object.fromEntries",
        "collections.OrderedDict",
        "collections.defaultdict",
        "defaultdict",
    }:
        entries: dict[str, Value] = {}
        spread: list[Value] = []
        for arg, value in given:
            if arg is not None and arg.name:
                entries[arg.name] = value
            elif isinstance(value.shape, Fields):
                entries = {**value.shape.entries, **entries}
                spread.extend(value.shape.spread)
            elif isinstance(value.shape, External) and value.shape.name in {"os.environ", "process.env"}:
                spread.append(texts.printed(frame, value, node.at))
            elif not isinstance(value.shape, (Func, Klass, External)) and value is not NOTHING:
                spread.append(value)
        return Value(shape=Fields(entries, tuple(spread), "", node.at, frame.file.index))
    if name in _DEEP:
        return first(given).but(place=None, elements=None, origin="deepcopy")
    if name in _SHALLOW:
        made = NOTHING
        for _, value in given:
            made = value if made is NOTHING else Value(shape=Fields({}, (made, value)))
        return made.but(place=None, elements=made.place and (*made.place, "[]"))
    if name in _DUMPS:
        value = first(given)
        if isinstance(value.shape, External):
            value = texts.printed(frame, value, node.at)
        if name in knowledge.sort_keys:
            flag = keyword(given, "sort_keys")
            if (flag is not None and flag.const is True) or "OPT_SORT_KEYS" in walk.names(
                [a.value for a in node.args]
            ):
                value = unordered_gone(value)
        return frame.traced(
            Value(value.flat(), value.all_refs(), size=value.size), node.at, "written as JSON"
        )
    if name in knowledge.sort_keys:
        return unordered_gone(mixed([first(given)]))
    if name in {
        "reversed",
        "enumerate",
        "zip",
        "itertools.chain",
        "filter",
        "map",
        "itertools.islice",
        "Object.values",
        "Object.keys",
        "Object.entries",
        "asyncio.gather",
        "Promise.all",
        "Promise.allSettled",
        "itertools.chain.from_iterable",
    }:
        return _iterated(frame, node, name, given)
    if name in {"functools.partial", "asyncio.to_thread", "partial", "run_in_executor"}:
        if given and isinstance(given[0][1].shape, Func):
            target = given[0][1]
            if name.endswith("partial"):
                return target
            return calls.invoke(frame, node, target, NOTHING, given[1:])
        return mixed([value for _, value in given])
    if name == "open":
        # What is read from a file does not change with the name of the file, but its place in a list does.
        return transform(first(given), lambda change: change if change.order else None).but(
            place=None, size=0, const=None
        )
    if name in {
        "json.load",
        "json.loads",
        "JSON.parse",
        "yaml.safe_load",
        "tomllib.load",
        "tomllib.loads",
        "orjson.loads",
    }:
        value = first(given)
        return Value(value.flat(), value.all_refs())
    if name in {"getattr"} and len(given) >= 2 and isinstance(given[1][1].const, str):
        return members.attribute(frame, first(given), given[1][1].const, node.at)
    if name in {"setattr"} and len(node.args) >= 3 and isinstance(node.args[1].value, f.Lit):
        frame.store(f.Attr(node.at, node.args[0].value, str(node.args[1].value.value)), given[2][1], node.at)
        return NOTHING
    if name in {"super", "require"}:
        return None
    if name == "hash" and given and isinstance(first(given).const, (int, float)):
        return NOTHING
    if name in {"int", "float", "round", "Number", "Math.floor", "Math.round", "parseInt", "abs"}:
        return first(given).but(place=None, elements=None)
    return None


def _listed(frame: Frame, node: f.Call, name: str, given: list[Given]) -> Value:
    source = first(given)
    shape = source.shape
    if name.endswith("deque"):
        bound = keyword(given, "maxlen")
        made = Value(shape=Items("list", ((True, source),) if source is not NOTHING else ()))
        if (bound is not None and bound.const is not None) or (bound is not None and bound.refs):
            change = noting.note(
                frame, "PG301", "a bounded queue drops its oldest messages", node.at, guard="window"
            )
            return made.but(changes=(change,))
        return made
    if isinstance(shape, Items) and shape.kind == "set":
        inner = picking.element(frame, source, node.at)
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, inner),)))),)))
    if isinstance(shape, Items):
        return source.but(
            place=None, elements=source.elements or ((*source.place, "[]") if source.place else None)
        )
    return source.but(
        place=None,
        elements=source.elements or ((*source.place, "[]") if source.place else None),
        origin="copy",
    )


def _iterated(frame: Frame, node: f.Call, name: str, given: list[Given]) -> Value:
    if name in {
        "asyncio.gather",
        "Promise.all",
        "Promise.allSettled",
        "itertools.chain",
        "itertools.chain.from_iterable",
    }:
        parts: list[tuple[bool, Value]] = []
        for arg, value in given:
            if isinstance(value.shape, Items) and (
                name.startswith(("Promise", "itertools")) or (arg is not None and arg.star)
            ):
                parts.extend(value.shape.parts)
            elif name.startswith("itertools") or (arg is not None and arg.star):
                parts.append((True, value))
            else:
                parts.append((False, value))
        return Value(shape=Items("list", tuple(parts[:MAX_PARTS])))
    if name in {"map", "filter"}:
        source = given[1][1] if len(given) > 1 else NOTHING
        target = first(given)
        if isinstance(target.shape, Func):
            made = calls.apply(
                frame,
                target.shape.function,
                target.shape.bound,
                [picking.element(frame, source, node.at)],
                {},
                node.at,
                "mapped",
                target.shape.scope,
            )
            if name == "map":
                return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, made),)))),)))
        return (
            source.but(
                place=None, elements=source.elements or ((*source.place, "[]") if source.place else None)
            )
            if name == "filter"
            else mixed([source])
        )
    if name == "enumerate":
        source = first(given)
        part = picking.element(frame, source, node.at)
        pair = Value(shape=Items("tuple", ((False, NOTHING), (False, part))))
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, pair),)))),)))
    if name == "zip":
        pair = Value(
            shape=Items("tuple", tuple((False, picking.element(frame, v, node.at)) for _, v in given))
        )
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, pair),)))),)))
    if name in {"Object.values", "Object.entries"}:
        source = first(given)
        part = picking.element(frame, source, node.at)
        if isinstance(source.shape, Fields):
            part = join(part, mixed(source.shape.entries.values()))
        if name == "Object.entries":
            part = Value(shape=Items("tuple", ((False, NOTHING), (False, part))))
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, part),)))),)))
    if name == "Object.keys":
        return Value(shape=Items("list", ()))
    source = first(given)
    return source.but(
        place=None, elements=source.elements or ((*source.place, "[]") if source.place else None)
    )


def method(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Given]) -> Value | None:
    """A call of a method that everybody knows, on this object."""
    name = func.name
    knowledge = frame.knowledge
    shape = base.shape
    if name in {"append", "push", "extend", "add", "appendleft"}:
        return _append(frame, node, func, base, given, name)
    if name in {"insert", "unshift", "splice", "pop", "shift", "remove", "clear", "popleft", "reverse"}:
        return removal.method(frame, node, func, base, given)
    if name in knowledge.fixing_methods:
        fixed = unordered_gone(base)
        if name == "sort":
            frame.rebind(func.base, fixed)
        return fixed
    if name == "join":
        return _join(frame, node, func, base, given)
    if name == "concat" and not isinstance(shape, (External,)):
        if isinstance(shape, Items) or knowledge.is_list_name(walk.last_name(func.base)):
            parts: list[tuple[bool, Value]] = (
                list(shape.parts) if isinstance(shape, Items) else [(True, base)]
            )
            for _, value in given:
                if isinstance(value.shape, Items):
                    parts.extend(value.shape.parts)
                else:
                    parts.append((not isinstance(value.shape, Fields), value))
            return binding.assembled(frame, node, Value(shape=Items("list", tuple(parts[:MAX_PARTS]))))
        return texts.words(frame, [base, *(value for _, value in given)], node.at)
    if (
        name
        in {
            "map",
            "flatMap",
            "filter",
            "forEach",
            "reduce",
            "find",
            "findLast",
            "some",
            "every",
            "reduceRight",
        }
        and frame.file.family == "typescript"
    ):
        return _callback(frame, node, func, base, given)
    if name in _SHORTENED and frame.file.family == "typescript":
        end = given[1][1].const if len(given) > 1 else None
        if (
            any(change.grain for change in base.flat())
            and isinstance(end, int)
            and end <= 10
            and first(given).const == 0
        ):
            return transform(base, clocks.coarse)
        if isinstance(shape, Words) or base.size:
            return base
        low = node.args[0].value if node.args else None
        high = node.args[1].value if len(node.args) > 1 else None
        return slices.sliced(frame, f.Slice(node.at, func.base, low, high), base)
    if name in {"keys", "values", "items", "entries"} and not isinstance(shape, External):
        return _view(frame, node, name, base)
    if name in {"get"} and given and not isinstance(shape, External):
        key = first(given)
        if isinstance(key.const, str) and (isinstance(shape, (Fields, Instance)) or base.place is not None):
            return members.attribute(frame, base, key.const, node.at, walk.last_name(func.base))
        if isinstance(shape, Fields):
            found = picking.element(frame, base, node.at)
            return join(found, mixed([key])) if key.flat() else found
        return None
    if name in {"copy", "toReversed", "model_copy", "flat"} and not isinstance(shape, External):
        deep = name == "model_copy" and keyword(given, "deep") is not None
        made = base.but(
            place=None,
            elements=None if deep else (base.elements or ((*base.place, "[]") if base.place else None)),
        )
        return made.but(origin="deepcopy") if deep else made
    if name == "update" and not isinstance(shape, External):
        return _update(frame, node, func, base, given)
    if name == "split":
        sep = first(given).const
        if sep == "T" and any(change.grain for change in base.flat()):
            return transform(base, clocks.coarse)
        return mixed([base])
    if name in knowledge.format_methods and any(change.grain for change in base.flat()):
        spec = first(given).const
        if isinstance(spec, str):
            return transform(base, lambda change: clocks.formatted(change, spec, knowledge))
        return base
    if name in {"toLocaleString", "toLocaleDateString", "toLocaleTimeString"} and base.flat():
        return _localised(base, name, given)
    if name in knowledge.day_methods and any(change.grain for change in base.flat()):
        return transform(base, clocks.coarse)
    if name in {
        "format",
        "substitute",
        "safe_substitute",
        "render",
        "format_map",
        "render_async",
        "format_prompt",
        "renderString",
    }:
        return _template(frame, node, base, given)
    if name in {"replace", "replaceAll"} and len(given) >= 2:
        if isinstance(shape, External) and not base.flat():
            return mixed([value for _, value in given])
        return texts.words(frame, [base.but(const=None), texts.printed(frame, given[1][1], node.at)], node.at)
    if name in {
        "strip",
        "rstrip",
        "lstrip",
        "lower",
        "upper",
        "trim",
        "trimEnd",
        "trimStart",
        "toString",
        "toISOString",
        "isoformat",
        "decode",
        "encode",
        "toLowerCase",
        "title",
        "repeat",
        "padStart",
        "astimezone",
        "timestamp",
    }:
        if isinstance(shape, External):
            return None
        if name == "repeat" and isinstance(first(given).const, int):
            return base.but(size=base.size * max(0, first(given).const), const=None)
        return base.but(place=None)
    if name in {"partial", "with_config", "bind", "assign"} and base is not NOTHING:
        return _partial(frame, node, base, given)
    if name == "then" and given and isinstance(first(given).shape, Func):
        callback = first(given).shape
        assert isinstance(callback, Func)
        return calls.apply(
            frame, callback.function, callback.bound, [base], {}, node.at, "then", callback.scope
        )
    if name in {"call", "apply"} and isinstance(shape, Func):
        return calls.invoke(frame, node, base, NOTHING, given[1:])
    if name in knowledge.stop_methods and not base.flat():
        return NOTHING
    return None


def _append(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Given], name: str
) -> Value | None:
    if not given or (name == "add" and not (isinstance(base.shape, Items))):
        return None
    if isinstance(base.shape, External) and name not in {"append", "extend"}:
        return None
    toolset.tool_list_changed(frame, func, base, node.at, "PG401")
    values = [value for _, value in given]
    if name == "extend" or any(arg is not None and arg.star == 1 for arg, _ in given):
        calls.extended(frame, func.base, base, values[0], node.at)
        return NOTHING
    if name == "add" and isinstance(base.shape, Items):
        parts = (*base.shape.parts, *((False, unordered_gone(value)) for value in values))[:MAX_PARTS]
        frame.rebind(func.base, base.but(shape=Items(base.shape.kind, parts), _flat=None, _refs=None))
        return NOTHING
    for value in values:
        current = evaluation.evaluate(frame, func.base)
        if binding.appended(frame, func.base, current, value, node.at):
            continue
        parts = (
            current.shape.parts
            if isinstance(current.shape, Items)
            else ((True, current),)
            if current is not NOTHING and not isinstance(current.shape, External)
            else ()
        )
        kind = current.shape.kind if isinstance(current.shape, Items) else "list"
        item = frame.traced(elements.changed_copy(frame, value, node.at), node.at, "appended")
        born = frame.births.get(walk.dotted(func.base), frame.loop_ids)
        repeated = isinstance(item.shape, (Fields, Instance)) and any(
            loop.id not in born for loop in frame.loops
        )
        many = (True, Value(shape=Items("many", ((False, item),)))) if repeated else (False, item)
        made = current.but(
            shape=Items(kind, (*parts, many)[:MAX_PARTS]),
            _flat=None,
            _refs=None,
            refs=current.refs if isinstance(current.shape, Items) else (),
        )
        frame.rebind(func.base, made)
    return NOTHING


def _join(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Given]) -> Value | None:
    python = frame.file.family == "python"
    if isinstance(base.shape, External) or (python and not given):
        if isinstance(base.shape, External) and base.shape.name.endswith(("path", "posixpath")):
            return mixed([value for _, value in given])
        return None
    items = first(given) if python else base
    return joined(frame, items, node.at)


def joined(frame: Frame, items: Value, at: f.At) -> Value:
    """The parts of a list as one text."""
    shape = items.shape
    if isinstance(shape, Items):
        parts: list[Value] = []
        if shape.kind == "set":
            inner = picking.element(frame, items, at)
            return texts.words(frame, [texts.printed(frame, inner, at)], at)
        for spread, part in shape.parts:
            parts.append(texts.printed(frame, picking.element(frame, part, at) if spread else part, at))
        made = texts.words(frame, parts, at)
        own = tuple(change for change in items.changes if not change.edit)
        return made.but(changes=unique((*made.changes, *own))) if own else made
    value = texts.printed(frame, items, at)
    return frame.traced(
        Value(tuple(c for c in value.flat() if not c.edit), value.all_refs(), size=value.size),
        at,
        "joined into a text",
    )


def _view(frame: Frame, node: f.Call, name: str, base: Value) -> Value | None:
    shape = base.shape
    if not isinstance(shape, Fields):
        return (
            base.but(place=None, elements=base.elements or ((*base.place, "[]") if base.place else None))
            if shape is None
            else None
        )
    keyed = mixed(shape.keys)
    part = join(mixed(shape.entries.values()), NOTHING) if name != "keys" else NOTHING
    if len(shape.entries) == 1 and name != "keys":
        part = next(iter(shape.entries.values()))
    if name in {"items", "entries"}:
        part = Value(shape=Items("tuple", ((False, keyed), (False, part))))
    elif name == "keys":
        part = keyed
    return Value(
        keyed.flat(), keyed.all_refs(), Items("list", ((True, Value(shape=Items("many", ((False, part),)))),))
    )


def _update(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Given]) -> Value | None:
    if isinstance(base.shape, Items) and base.shape.kind == "set":
        parts = (*base.shape.parts, *((True, unordered_gone(value)) for _, value in given))[:MAX_PARTS]
        frame.rebind(func.base, base.but(shape=Items("set", parts), _flat=None, _refs=None))
        return NOTHING
    if not isinstance(base.shape, Fields):
        return None
    entries = dict(base.shape.entries)
    spread = list(base.shape.spread)
    for arg, value in given:
        if arg is not None and arg.name:
            entries[arg.name] = value
        elif isinstance(value.shape, Fields):
            entries.update(value.shape.entries)
        else:
            spread.append(value)
    frame.rebind(
        func.base,
        base.but(shape=base.shape._replace(entries=entries, spread=tuple(spread)), _flat=None, _refs=None),
    )
    return NOTHING


def _localised(base: Value, name: str, given: list[Given]) -> Value:
    options = given[1][1].shape if len(given) > 1 else None
    keys = set(options.entries) if isinstance(options, Fields) else set()
    fine = keys & {"hour", "minute", "second", "timeStyle", "hour12", "timeZoneName"}
    if name == "toLocaleDateString" and not fine:
        return transform(base, clocks.coarse)
    if name == "toLocaleString" and not fine and keys & {"weekday", "year", "month", "day", "dateStyle"}:
        return transform(base, clocks.coarse)
    return base


def _template(frame: Frame, node: f.Call, base: Value, given: list[Given]) -> Value | None:
    if isinstance(base.shape, External) and not given:
        return None
    parts = [base.but(const=None)] if not isinstance(base.shape, External) else []
    for _, value in given:
        if isinstance(value.shape, Fields):
            parts.extend(texts.printed(frame, part, node.at) for part in value.shape.entries.values())
            parts.extend(value.shape.spread)
        else:
            parts.append(texts.printed(frame, value, node.at))
    return texts.words(frame, parts, node.at)


def _partial(frame: Frame, node: f.Call, base: Value, given: list[Given]) -> Value | None:
    """`prompt.partial(now=lambda: ...)`: a function is called anew for each use."""
    extra: list[Value] = []
    for arg, value in given:
        if arg is None or not arg.name:
            continue
        if isinstance(value.shape, Func):
            made = calls.apply(
                frame,
                value.shape.function,
                value.shape.bound,
                [],
                {},
                arg.value.at,
                "called for each prompt",
                value.shape.scope,
            )
            extra.append(transform(made, lambda change: change._replace(scope="hook")))
        else:
            extra.append(value)
    changed = [value for value in extra if value.flat()]
    if not changed:
        return base
    from prefixguard.lint.sinks import frameworks

    made = mixed(changed)
    frameworks.template_filled(frame, node, base, made)
    return base.but(changes=unique((*base.changes, *made.flat())), _flat=None)


def _callback(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[Given]) -> Value | None:
    target = first(given)
    name = func.name
    part = picking.element(frame, base, node.at)
    if not isinstance(target.shape, Func):
        if name == "filter":
            return base.but(
                place=None, elements=base.elements or ((*base.place, "[]") if base.place else None)
            )
        if isinstance(base.shape, External):
            return None
        return mixed([base])
    callback = target.shape
    made = calls.apply(
        frame,
        callback.function,
        callback.bound,
        [part, NOTHING, base],
        {},
        node.at,
        f"mapped by `{name}`",
        callback.scope,
    )
    if name in {"filter", "find", "findLast", "some", "every"}:
        if name in {"some", "every"}:
            return NOTHING
        if name != "filter":
            return part
        kept = base.but(place=None, elements=base.elements or ((*base.place, "[]") if base.place else None))
        return splitting.callback(frame, node, func, base, callback, kept, made)
    if name == "forEach":
        return NOTHING
    if name.startswith("reduce"):
        return mixed([made, *(value for _, value in given[1:])])
    result = Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, made),)))),)))
    if name == "flatMap" and isinstance(made.shape, Items):
        result = Value(shape=Items("list", made.shape.parts))
    if made.shape is None and made.place is not None and made.place[-1:] == ("[]",):
        result = base
    return splitting.callback(frame, node, func, base, callback, result, made)


__all__ = ["merge_refs"]
