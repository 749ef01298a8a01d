"""Comprehensions and callbacks over messages that treat some of them differently by their place.

Part of the third step of the linter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation
from prefixguard.lint.history import noting
from prefixguard.lint.values import (
    Change,
    Func,
    Value,
)

if TYPE_CHECKING:
    from prefixguard.lint.frame import Frame


def mapped(frame: Frame, node: f.Comp, source: Value, value: Value, made: Value) -> Value:
    """A comprehension over messages: one that treats some of them differently by their place."""
    clause = node.clauses[0] if node.clauses else None
    if clause is None:
        return made
    inner = clause.source
    if (
        isinstance(inner, f.Call)
        and walk.last_name(inner.func) in {"enumerate", "reversed", "zip", "list"}
        and inner.args
    ):
        inner = inner.args[0].value
        source = evaluation.evaluate(frame, inner)
    if not noting.is_list(frame, inner, source):
        return made
    tests = [test for part in node.clauses for test in part.tests]
    if any(walk.is_place_test(test, frame.indexes) for test in tests):
        change = noting.note(
            frame,
            noting.kind_of(noting.words_around(frame, tests), "PG301"),
            "messages are left out by their place",
            node.at,
            weak=True,
        )
        return noting.marked(made, change)
    found = _split(node.element, frame.indexes)
    if found is not None:
        split = _split_note(frame, found, node.element, node.at)
        return noting.marked(made, split) if split is not None else made
    if tests and not any("system" in word.lower() for word in walk.names(tests) | _words(tests)):
        return made.but(origin=PICKED)
    return made


PICKED = "picked"
"""The origin of a list that holds those messages of another one that pass a test."""


def _words(tests: list[f.Expr]) -> set[str]:
    return {str(word) for word in walk.strings(tests)}


def rejoined(frame: Frame, at: f.At, values: list[Value]) -> None:
    """`[m for m in messages if new(m)] + [m for m in messages if not new(m)]`: another order."""
    if sum(value.origin == PICKED for value in values) > 1:
        what = "messages are picked by a test and put in another order"
        noting.note(frame, "PG311", what, at, "event", weak=True)


def _split(body: Any, indexes: set[str]) -> tuple[f.Expr, bool] | None:
    """A test of place in it, and whether the branch for a true test is the changed one."""
    for item in walk.inside(body):
        if isinstance(item, f.Choice) and walk.is_place_test(item.test, indexes):
            return item.test, not isinstance(item.then, (f.Name, f.Lit))
        if isinstance(item, f.If) and walk.is_place_test(item.test, indexes):
            returned = next((s for s in item.then if isinstance(s, f.Return)), None)
            plain = returned is not None and isinstance(returned.value, f.Name)
            return item.test, not plain
    return None


def _split_note(frame: Frame, found: tuple[f.Expr, bool], body: Any, at: f.At) -> Change | None:
    test, when_true = found
    equal = any(
        isinstance(item, f.Op) and item.op.removeprefix("compare:") in {"==", "===", "is"}
        for item in walk.inside(test)
    )
    newest = equal == when_true and _asks_for_last(test)
    words = noting.words_around(frame, body)
    keys = walk.strings(body)
    if (
        keys & {"cache_control", "cacheControl", "cachePoint"}
        or "cachecontrol" in words
        or "cache_control" in words
        or "cachepoint" in words
    ):
        return None
    where = next((i.at for i in walk.inside(body) if isinstance(i, (f.Map, f.Call)) and i.at[0] >= at[0]), at)
    if newest:
        return noting.note(
            frame,
            "PG309",
            "the newest message is changed in what is sent, not in what is stored",
            where,
            weak=True,
        )
    return noting.note(
        frame, noting.kind_of(words, "PG302"), "earlier messages are changed by their place", where, weak=True
    )


def _asks_for_last(test: f.Expr) -> bool:
    for item in walk.inside(test):
        if isinstance(item, f.Name) and "last" in item.name.lower():
            return True
        if (
            isinstance(item, f.Op)
            and item.op == "-"
            and isinstance(item.operands[-1], f.Lit)
            and item.operands[-1].value == 1
        ):
            return True
    return False


def callback(
    frame: Frame, node: f.Call, func: f.Attr, base: Value, target: Func, result: Value, made: Value
) -> Value:
    """`messages.map(...)`, `messages.filter(...)`, by the place of a message."""
    if not noting.is_list(frame, func.base, base):
        return result
    facts = frame.flow.function(target.function)
    if target.function[0] != frame.file.index:
        return result
    indexes = {facts.params[1].name} if len(facts.params) > 1 else set()
    if func.name == "filter":
        tests = [s.value for s in facts.body if isinstance(s, f.Return) and s.value is not None]
        if indexes and any(walk.is_place_test(test, indexes) or walk.names(test) & indexes for test in tests):
            change = noting.note(
                frame,
                noting.kind_of(noting.words_around(frame, tests), "PG301"),
                "messages are left out by their place",
                node.at,
                weak=True,
            )
            return noting.marked(result, change)
        return result
    if not indexes:
        return result
    found = _split(facts.body, indexes)
    if found is None:
        return result
    split = _split_note(frame, found, facts.body, node.at)
    return noting.marked(result, split) if split is not None else result
