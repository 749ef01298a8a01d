"""Looks through facts without following values: names, loops that talk, guards that make an edit rare.

Beside `flow`: cheap questions about the form of an expression or a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prefixguard.lint import facts as f
from prefixguard.lint.knowledge import Knowledge, snake

_APPENDS = {
    "append",
    "extend",
    "push",
    "unshift",
    "insert",
    "add",
    "add_message",
    "addMessage",
    "append_message",
}
_PLACE_WORDS = frozenset(
    {"index", "idx", "distance", "age", "position", "cutoff", "boundary", "recent", "newest", "oldest"}
)
_PLACES = {
    "i",
    "idx",
    "index",
    "position",
    "pos",
    "n",
    "j",
    "last",
    "recent",
    "cutoff",
    "cut_off",
    "boundary",
    "keep",
    "age",
    "distance",
}
_SIZES = re.compile(
    r"(token|size|length|limit|max|budget|threshold|count|total|chars|bytes|capacity|overflow|exceed|too_long|window|usage|ratio|percent|full|over)"
)


_PLAIN = frozenset({str, int, float, bool})


def _parts_of(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a fact that can hold facts, the last one first."""
    skipped = {
        "at",
        "name",
        "op",
        "kind",
        "annotation",
        "index",
        "star",
        "new",
        "spec",
        "module",
        "alias",
        "level",
        "spread",
    }
    return tuple(field for field in reversed(kind.__struct_fields__) if field not in skipped)


_PARTS: dict[type[Any], tuple[str, ...]] = {
    kind: _parts_of(kind)
    for kind in (
        f.Lit, f.Name, f.Attr, f.Index, f.Slice, f.Call, f.Text, f.Format, f.Seq, f.Map, f.Spread, f.Op,
        f.Choice,
        f.Comp, f.Function, f.Assigned, f.Yield, f.Assign, f.Do, f.Return, f.If, f.Loop, f.Try, f.Stop,
        f.Delete,
        f.Define, f.DefineClass, f.Import, f.Arg, f.Clause,
    )
}  # fmt: skip
_PARTS[f.Lit] = _PARTS[f.Name] = ()


def inside(node: Any) -> Iterator[Any]:
    """Every fact in a fact or list of facts, the given one first; functions are not entered."""
    stack = [node]
    pop, push = stack.pop, stack.append
    while stack:
        item = pop()
        kind = item.__class__
        if kind is list or kind is tuple:
            stack.extend(reversed(item))
            continue
        fields = _PARTS.get(kind)
        if fields is None:
            continue
        if kind is not f.Arg and kind is not f.Clause:
            yield item
        for field in fields:
            part = getattr(item, field)
            if part is not None and part.__class__ not in _PLAIN:
                push(part)


def names(node: Any) -> set[str]:
    """The last names of all variables and attributes used in it."""
    found = set()
    for item in inside(node):
        if isinstance(item, (f.Name, f.Attr)):
            found.add(item.name)
    return found


def strings(node: Any) -> set[str]:
    """The string literals in it."""
    return {item.value for item in inside(node) if isinstance(item, f.Lit) and isinstance(item.value, str)}


def dotted(node: f.Expr | None) -> str:
    """`a.b.c` of names and attributes; a call in between gives `a().b`; "" for anything else."""
    parts: list[str] = []
    while True:
        if isinstance(node, f.Attr):
            parts.append(node.name)
            node = node.base
        elif isinstance(node, f.Name):
            parts.append(node.name)
            return ".".join(reversed(parts))
        elif isinstance(node, f.Call):
            inner = dotted(node.func)
            return ".".join([f"{inner}()", *reversed(parts)])
        elif isinstance(node, f.Index):
            node = node.base
        else:
            return ".".join(["?", *reversed(parts)]) if parts else ""


def last_name(node: f.Expr | None) -> str:
    """The last name of an expression: what it is called."""
    if isinstance(node, (f.Name, f.Attr)):
        return node.name
    if isinstance(node, f.Index):
        if isinstance(node.key, f.Lit) and isinstance(node.key.value, str):
            return node.key.value
        return last_name(node.base)
    if isinstance(node, f.Call):
        return last_name(node.func)
    if isinstance(node, f.Slice):
        return last_name(node.base)
    return ""


def owner_name(node: f.Expr | None) -> str:
    """The name before the last one."""
    return last_name(node.base) if isinstance(node, f.Attr) else ""


def has_role(node: Any) -> bool:
    """Whether a message with a role is built in it."""
    for item in inside(node):
        if isinstance(item, f.Map):
            for key, _ in item.entries:
                if isinstance(key, f.Lit) and key.value == "role":
                    return True
        elif isinstance(item, f.Call) and last_name(item.func).endswith("Message"):
            return True
    return False


_ASKS = re.compile(
    r"^(a?create|a?complet\w*|a?generat\w*|a?invoke|a?chat|ask|a?query|a?predict|respond|kickoff|a?stream\w*|a?run\w*|step|turn|call|input)$"
    r"|llm|model|complet|agent|respon|request|_turn|_step|Llm|Model|Turn|Step",
)


def talks(body: list[f.Stmt], knowledge: Knowledge, *, endless: bool) -> bool:
    """Whether a loop adds to a list of messages and asks a model: no retry, and no conversion."""
    if not endless and not any(
        isinstance(item, f.Call) and _ASKS.search(last_name(item.func)) for item in inside(body)
    ):
        return False
    for item in inside(body):
        if isinstance(item, f.Call) and isinstance(item.func, f.Attr) and item.func.name in _APPENDS:
            if knowledge.is_list_name(last_name(item.func.base)) or has_role([a.value for a in item.args]):
                return True
        elif (
            isinstance(item, f.Assign)
            and item.op in {"+=", "="}
            and any(knowledge.is_list_name(last_name(target)) for target in item.targets)
        ):
            return True
    return False


def counters(body: list[f.Stmt]) -> set[str]:
    """Names that a loop's body counts up or down."""
    found = set()
    for item in inside(body):
        if (
            isinstance(item, f.Assign)
            and item.op in {"+=", "-="}
            and isinstance(item.targets[0], f.Name)
            and isinstance(item.value, f.Lit)
            and isinstance(item.value.value, (int, float))
        ):
            found.add(item.targets[0].name)
    return found


def is_counting(source: f.Expr | None) -> bool:
    """Whether a loop runs over numbers: `range(...)`, `enumerate(...)`, `itertools.count()`."""
    return isinstance(source, f.Call) and last_name(source.func) in {"range", "enumerate", "count", "entries"}


def is_size_test(test: Any) -> bool:
    """Whether a test compares a size with a limit."""
    for item in inside(test):
        if isinstance(item, f.Op) and item.op.startswith("compare:") and re.search(r"[<>]", item.op):
            for operand in item.operands:
                for part in inside(operand):
                    if isinstance(part, (f.Name, f.Attr)) and _SIZES.search(snake(part.name)):
                        return True
                    if isinstance(part, f.Call) and last_name(part.func) in {"len", "sum"}:
                        return True
        elif isinstance(item, f.Call) and _SIZES.search(snake(last_name(item.func))):
            name = snake(last_name(item.func))
            if name.startswith(("is_", "should_", "needs_", "exceeds", "has_", "over_", "check_", "must_")):
                return True
        elif isinstance(item, (f.Name, f.Attr)) and snake(item.name).startswith(
            ("should_", "needs_", "exceeds", "is_over")
        ):
            return True
    return False


def _says_place(name: str) -> bool:
    plain = snake(name)
    return plain in _PLACES or not _PLACE_WORDS.isdisjoint(plain.split("_"))


def is_place_test(test: Any, indexes: set[str]) -> bool:
    """Whether a test asks where in a list something stands."""
    for item in inside(test):
        if isinstance(item, f.Op) and item.op.startswith("compare:"):
            for part in inside(item.operands):
                if isinstance(part, (f.Name, f.Attr)) and (part.name in indexes or _says_place(part.name)):
                    return True
        elif isinstance(item, (f.Name,)) and snake(item.name) in {
            "is_last",
            "is_old",
            "is_recent",
            "old",
            "stale",
            "is_stale",
        }:
            return True
    return False


def is_quantised(node: f.Expr | None) -> bool:
    """Whether a number moves in steps: floor division, `Math.floor`, remainder."""
    for item in inside(node):
        if isinstance(item, f.Op) and item.op in {"//", "%"}:
            return True
        if isinstance(item, f.Call) and last_name(item.func) in {"floor", "ceil", "trunc", "round"}:
            return True
    return False


def is_none_test(test: f.Expr) -> str:
    """The name that a test finds missing (`x is None`, `not x`, `x === undefined`), or ""."""
    if isinstance(test, f.Op):
        if test.op == "not" and isinstance(test.operands[0], (f.Name, f.Attr)):
            return dotted(test.operands[0])
        if test.op in {"compare:is", "compare:==", "==", "===", "compare:===", "compare:not in", "not in"}:
            for operand in test.operands:
                if isinstance(operand, (f.Name, f.Attr, f.Index)) and dotted(operand) not in {
                    "undefined",
                    "null",
                }:
                    return dotted(operand)
        if test.op in {"or", "||", "and", "&&"}:
            for operand in test.operands:
                found = is_none_test(operand)
                if found:
                    return found
    return ""


def leaves(body: list[f.Stmt]) -> bool:
    """Whether a block always leaves: by return, raise, break or continue."""
    return bool(body) and isinstance(body[-1], (f.Return, f.Stop))
