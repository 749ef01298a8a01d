"""Functions that everybody knows, by their dotted name: `str`, `sorted`, `json.dumps`, `map`, `zip` ...

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.calls import applying, invoking
from prefixguard.lint.expressions import members, picking, texts
from prefixguard.lint.history import noting
from prefixguard.lint.known import callbacks, order
from prefixguard.lint.values import (
    MAX_PARTS,
    NOTHING,
    External,
    Fields,
    Func,
    Items,
    Klass,
    Value,
    join,
    mixed,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


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


def function(frame: Frame, node: f.Call, name: str, given: list[order.Given]) -> Value | None:
    """A call of a function that everybody knows, by its dotted name."""
    knowledge = frame.knowledge
    if name in knowledge.fixing:
        if name == "sorted" or name.endswith("natsorted"):
            value = order.first(given)
            shape = value.shape
            if isinstance(shape, Items) and shape.kind == "set":
                inner = order.in_order(order.unordered_gone(picking.element(frame, value, node.at)))
                return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, inner),)))),)))
            if isinstance(shape, Fields):
                return Value(shape=Items("list", ()))
            if shape is None:
                return order.in_order(order.unordered_gone(value))
            return order.unordered_gone(value)
        return NOTHING
    if name in _TEXTS:
        value = texts.printed(frame, order.first(given), node.at)
        if name == "str" and isinstance(value.const, (int, float)):
            return Value(const=str(value.const), size=len(str(value.const)))
        return frame.traced(value.but(place=None, elements=None), node.at, "put into a text")
    if name in _LISTS:
        return _listed(frame, node, name, given)
    if name in {"set", "frozenset", "Set"}:
        source = order.first(given)
        if name == "Set":
            return Value(shape=Items("list", ((True, source),)) if given else Items("list", ()))
        inner = order.unordered_gone(picking.element(frame, source, node.at)) if given else NOTHING
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
        return order.first(given).but(place=None, elements=None, origin="deepcopy")
    if name in _SHALLOW:
        made = NOTHING
        for _, value in given:
            made = value if made is NOTHING else Value(shape=Fields({}, (made, value)))
        return made.but(place=None, elements=made.place and (*made.place, "[]"))
    if name in _DUMPS:
        value = order.first(given)
        if isinstance(value.shape, External):
            value = texts.printed(frame, value, node.at)
        if name in knowledge.sort_keys:
            flag = order.keyword(given, "sort_keys")
            if (flag is not None and flag.const is True) or "OPT_SORT_KEYS" in walk.names(
                [a.value for a in node.args]
            ):
                value = order.unordered_gone(value)
        return frame.traced(
            Value(value.flat(), value.all_refs(), size=value.size), node.at, "written as JSON"
        )
    if name in knowledge.sort_keys:
        return order.unordered_gone(mixed([order.first(given)]))
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
            return invoking.invoke(frame, node, target, NOTHING, given[1:])
        return mixed([value for _, value in given])
    if name == "open":
        # What is read from a file does not change with the name of the file, but its place in a list does.
        return transform(order.first(given), lambda change: change if change.order else None).but(
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
        value = order.first(given)
        return Value(value.flat(), value.all_refs())
    if name in {"getattr"} and len(given) >= 2 and isinstance(given[1][1].const, str):
        return members.attribute(frame, order.first(given), given[1][1].const, node.at)
    if name in {"setattr"} and len(node.args) >= 3 and isinstance(node.args[1].value, f.Lit):
        frame.store(f.Attr(node.at, node.args[0].value, str(node.args[1].value.value)), given[2][1], node.at)
        return NOTHING
    if name in {"re.sub", "regex.sub"} and len(given) > 2:
        new = callbacks.filled(frame, given[1][1], node.at)
        text = given[2][1].but(const=None, place=None)
        return texts.words(frame, [text, texts.printed(frame, new, node.at)], node.at)
    if name in {"super", "require"}:
        return None
    if name == "hash" and given and isinstance(order.first(given).const, (int, float)):
        return NOTHING
    if name in {"int", "float", "round", "Number", "Math.floor", "Math.round", "parseInt", "abs"}:
        return order.first(given).but(place=None, elements=None)
    return None


def _listed(frame: Frame, node: f.Call, name: str, given: list[order.Given]) -> Value:
    source = order.first(given)
    shape = source.shape
    if name.endswith("deque"):
        bound = order.keyword(given, "maxlen")
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


def _iterated(frame: Frame, node: f.Call, name: str, given: list[order.Given]) -> Value:
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
        target = order.first(given)
        if isinstance(target.shape, Func):
            made = applying.apply(
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
        source = order.first(given)
        part = picking.element(frame, source, node.at)
        pair = Value(shape=Items("tuple", ((False, NOTHING), (False, part))))
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, pair),)))),)))
    if name == "zip":
        pair = Value(
            shape=Items("tuple", tuple((False, picking.element(frame, v, node.at)) for _, v in given))
        )
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, pair),)))),)))
    if name in {"Object.values", "Object.entries"}:
        source = order.first(given)
        part = picking.element(frame, source, node.at)
        if isinstance(source.shape, Fields):
            part = join(part, mixed(source.shape.entries.values()))
        if name == "Object.entries":
            part = Value(shape=Items("tuple", ((False, NOTHING), (False, part))))
        return Value(shape=Items("list", ((True, Value(shape=Items("many", ((False, part),)))),)))
    if name == "Object.keys":
        return Value(shape=Items("list", ()))
    source = order.first(given)
    return source.but(
        place=None, elements=source.elements or ((*source.place, "[]") if source.place else None)
    )
