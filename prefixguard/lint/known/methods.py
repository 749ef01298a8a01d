"""Methods that everybody knows, of text, lists, dicts and clocks.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import clocks, walk
from prefixguard.lint import facts as f
from prefixguard.lint.calls import applying, invoking
from prefixguard.lint.expressions import evaluation, members, picking, texts
from prefixguard.lint.history import binding, elements, removal, slices, toolset
from prefixguard.lint.known import callbacks, joining, order
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    External,
    Fields,
    Func,
    Instance,
    Items,
    Value,
    Words,
    join,
    mixed,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


_NAMES_ONLY = {"PG104", "PG110", "PG206"}
_SHORTENED = {"slice", "substring", "substr"}


def method(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[order.Given]) -> Value | None:
    """A call of a method that everybody knows, on this object."""
    name = func.name
    knowledge = frame.knowledge
    shape = base.shape
    if name in {"append", "push", "extend", "add", "appendleft"}:
        return _append(frame, node, func, base, given, name)
    if name in {"insert", "unshift", "splice", "pop", "shift", "remove", "clear", "popleft", "reverse"}:
        return removal.method(frame, node, func, base, given)
    if name in knowledge.fixing_methods:
        fixed = order.unordered_gone(base)
        if name == "sort":
            frame.rebind(func.base, fixed)
        return fixed
    if name == "join":
        return joining.join_method(frame, node, func, base, given)
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
        return callbacks.called_back(frame, node, func, base, given)
    if name in _SHORTENED and frame.file.family == "typescript":
        end = given[1][1].const if len(given) > 1 else None
        if (
            any(change.grain for change in base.flat())
            and isinstance(end, int)
            and end <= 10
            and order.first(given).const == 0
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
        key = order.first(given)
        if isinstance(key.const, str) and (isinstance(shape, (Fields, Instance)) or base.place is not None):
            return members.attribute(frame, base, key.const, node.at, walk.last_name(func.base))
        if isinstance(shape, Fields):
            found = picking.element(frame, base, node.at)
            return join(found, mixed([key])) if key.flat() else found
        return None
    if name in {"copy", "toReversed", "model_copy", "flat"} and not isinstance(shape, External):
        deep = name == "model_copy" and order.keyword(given, "deep") is not None
        made = base.but(
            place=None,
            elements=None if deep else (base.elements or ((*base.place, "[]") if base.place else None)),
        )
        return made.but(origin="deepcopy") if deep else made
    if name == "update" and not isinstance(shape, External):
        return _update(frame, node, func, base, given)
    if name == "split":
        sep = order.first(given).const
        if sep == "T" and any(change.grain for change in base.flat()):
            return transform(base, clocks.coarse)
        return mixed([base])
    if name in knowledge.format_methods and any(change.grain for change in base.flat()):
        spec = order.first(given).const
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
        return joining.template(frame, node, base, given)
    if name in {"replace", "replaceAll"} and len(given) >= 2:
        if isinstance(shape, External) and not base.flat():
            return mixed([value for _, value in given])
        filled = callbacks.filled(frame, given[1][1], node.at)
        return texts.words(frame, [base.but(const=None), texts.printed(frame, filled, node.at)], node.at)
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
        if name == "repeat" and isinstance(order.first(given).const, int):
            return base.but(size=base.size * max(0, order.first(given).const), const=None)
        return base.but(place=None)
    if name in {"partial", "with_config", "bind", "assign"} and base is not NOTHING:
        return joining.partial(frame, node, base, given)
    if name == "then" and given and isinstance(order.first(given).shape, Func):
        callback = order.first(given).shape
        assert isinstance(callback, Func)
        return applying.apply(
            frame, callback.function, callback.bound, [base], {}, node.at, "then", callback.scope
        )
    if name in {"call", "apply"} and isinstance(shape, Func):
        return invoking.invoke(frame, node, base, NOTHING, given[1:])
    if name in {"read_text", "read_bytes", "open"} and base.flat():
        # A file does not hold the id that it is named by.
        return transform(base, lambda change: None if change.code in _NAMES_ONLY else change).but(place=None)
    if name in knowledge.stop_methods and not base.flat():
        return NOTHING
    return None


def _append(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[order.Given], name: str
) -> Value | None:
    if not given or (name == "add" and not (isinstance(base.shape, Items))):
        return None
    if isinstance(base.shape, External) and name not in {"append", "extend"}:
        return None
    toolset.tool_list_changed(frame, func, base, node.at, "PG401")
    values = [value for _, value in given]
    if name == "extend" or any(arg is not None and arg.star == 1 for arg, _ in given):
        invoking.extended(frame, func.base, base, values[0], node.at)
        return NOTHING
    if name == "add" and isinstance(base.shape, Items):
        parts = (*base.shape.parts, *((False, order.unordered_gone(value)) for value in values))[:MAX_PARTS]
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


def _update(frame: Frame, node: f.Call, func: f.Attr, base: Value, given: list[order.Given]) -> Value | None:
    if isinstance(base.shape, Items) and base.shape.kind == "set":
        parts = (*base.shape.parts, *((True, order.unordered_gone(value)) for _, value in given))[:MAX_PARTS]
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


def _localised(base: Value, name: str, given: list[order.Given]) -> Value:
    options = given[1][1].shape if len(given) > 1 else None
    keys = set(options.entries) if isinstance(options, Fields) else set()
    fine = keys & {"hour", "minute", "second", "timeStyle", "hour12", "timeZoneName"}
    if name == "toLocaleDateString" and not fine:
        return transform(base, clocks.coarse)
    if name == "toLocaleString" and not fine and keys & {"weekday", "year", "month", "day", "dateStyle"}:
        return transform(base, clocks.coarse)
    return base
