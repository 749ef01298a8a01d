"""Tools that are given in the order in which they were registered, or in which servers named them.

Beside the third step of the linter: `frame` asks once a function has been read.
Where tools are found while the program runs (a protocol server, a plugin), that
order can differ from run to run, and with it the very front of the prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.knowledge import snake
from prefixguard.lint.summary import Hit, Sink
from prefixguard.lint.tables import SESSION

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame

_HOLDERS = re.compile(
    r"(^|_)(tools?|functions|actions|toolkits?|servers|mcp_servers|clients)(_(map|dict|by_name|list))?$"
)
_FOUND_LATE = re.compile(rb"(?i)mcp|discover|plugin|regist|toolkit|list_?tools")
_SORTS = {"sorted", "sort", "toSorted", "sortBy", "localeCompare", "sort_values", "natsorted", "orderBy"}
_OPENS = {"values", "items", "entries", "Array.from", "list", "Object.values", "Object.entries"}


def listed(frame: Frame, function: f.FunctionFacts) -> None:
    """A function that gives all tools as a registry holds them, and sorts them nowhere."""
    if not function.name or not frame.knowledge.is_tool_list_name(function.name):
        return
    if not _FOUND_LATE.search(frame.file.source):
        return
    body = function.body
    if any(isinstance(item, f.Call) and walk.last_name(item.func) in _SORTS for item in walk.inside(body)):
        return
    ends = [item for item in walk.inside(body) if isinstance(item, f.Return) and item.value is not None]
    if not ends:
        return
    held = {param.name for param in function.params if _HOLDERS.search(snake(param.name))}
    at = next((item.at for item in walk.inside(body) if _walks(item, held)), None)
    if at is None:
        return
    what = "the order in which the tools were registered"
    change = frame.change("PG201", what, at, SESSION, order=True, confidence=0)
    sink = Sink("tools", "function", frame.file.index, ends[-1].at, "", 0, f"`{function.name}` returns them")
    trace = (frame.step(at, "the tools in this order"), frame.step(ends[-1].at, sink.label))
    frame.flow.hits.append(Hit(change, sink, "tools", trace, 0))


def _walks(item: object, held: set[str]) -> bool:
    """Whether it goes through a registry: a loop, a comprehension, `values()`, `forEach`."""
    if isinstance(item, f.Loop):
        leaves = any(isinstance(inner, f.Return) for inner in walk.inside(item.body))
        return item.target is not None and not leaves and _holds(item.source, held)
    if isinstance(item, f.Comp):
        return any(_holds(clause.source, held) for clause in item.clauses)
    if isinstance(item, f.Call):
        name = walk.last_name(item.func)
        if name in {"forEach", "map"} and isinstance(item.func, f.Attr):
            return _holds(item.func.base, held)
        return walk.dotted(item.func) in {"Array.from", "list", "Object.values"} and any(
            _holds(arg.value, held) for arg in item.args
        )
    return False


def _holds(node: f.Expr | None, held: set[str]) -> bool:
    """Whether an expression is a registry of tools: `self._tools.values()`, a parameter `tools or []`."""
    while isinstance(node, f.Call):
        if isinstance(node.func, f.Attr) and node.func.name in _OPENS and not node.args:
            node = node.func.base
        elif walk.dotted(node.func) in _OPENS and node.args:
            node = node.args[0].value
        else:
            return False
    if isinstance(node, f.Op) and node.op in {"or", "||", "??"}:
        node = node.operands[0]
    if isinstance(node, f.Name):
        return node.name in held
    return (
        isinstance(node, f.Attr)
        and walk.dotted(node.base).split(".")[0] in {"self", "this"}
        and _HOLDERS.search(snake(node.name).strip("_")) is not None
    )
