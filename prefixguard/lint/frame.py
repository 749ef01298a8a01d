"""Reads one function or module body, statement by statement.

Part of the third step of the linter: `flow` makes a frame for each body, the
frame keeps what its names hold, which loops run and which guards stand above,
and writes the body's summary. Expressions are read in `expressions`, calls in
`calls`, edits of message lists in `history`, sinks in `sinks`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import registry, statements, storing, walk
from prefixguard.lint.expressions import evaluation
from prefixguard.lint.history import by_name
from prefixguard.lint.sinks import naming
from prefixguard.lint.summary import Guard, Loop, Summary
from prefixguard.lint.values import (
    Change,
    FunctionId,
    Instance,
    Items,
    Step,
    Value,
    join,
    transform,
)

if TYPE_CHECKING:
    from prefixguard.lint.flow import Flow
    from prefixguard.lint.project import SourceFile


_MESSAGES = re.compile(
    r"\b(list|List|Sequence|Iterable|Array|ReadonlyArray)\s*[\[<].*(Message|Msg|MessageParam)\w*|\w*Message(Param)?\w*(\s*\|[^\[]*)?\)?\[\]"
)


class Frame:
    """One body being read."""

    def __init__(
        self,
        flow: Flow,
        file: SourceFile,
        fid: FunctionId,
        function: f.FunctionFacts | None,
        scope: Frame | None,
        env: dict[str, Value],
    ) -> None:
        self.flow = flow
        self.file = file
        self.fid = fid
        self.function = function
        self.scope = scope
        self.env = env
        self.knowledge = flow.knows(file)
        self.loops: list[Loop] = []
        self.guards: list[Guard] = []
        self.indexes: set[str] = set()
        self.summary = Summary(fid)
        self.births: dict[str, tuple[int, ...]] = {}
        self.owner: tuple[int, int] | None = None
        self.yielded: list[tuple[bool, Value]] = []
        self.edited = False
        self.listed: set[str] = set()
        self.statement: f.Stmt | None = None
        self.nested: list[tuple[FunctionId, Frame]] = []
        self.parameters: dict[str, int] = {}
        self.definitions: dict[str, f.Expr] = {}
        if function is not None and function.owner >= 0:
            self.owner = (fid[0], function.owner)
        elif scope is not None:
            self.owner = scope.owner

    # entering

    def enter(self) -> None:
        """Read the function's body with unknown arguments."""
        function = self.function
        assert function is not None
        offset = 0
        typescript = self.file.family == "typescript"
        if function.owner >= 0 and not function.static and typescript:
            self.env["this"] = Value(refs=((self.fid, 0, ()),), place=("self",))
            offset = 1
        for position, param in enumerate(function.params):
            index = position + offset
            if param.star == 3:
                continue
            self.parameters[param.name] = index
            if param.annotation and _MESSAGES.search(param.annotation):
                self.listed.add(param.name)
            value = Value(refs=((self.fid, index, ()),), place=(f"param:{index}",), origin=param.name)
            if position == 0 and function.owner >= 0 and not function.static and not typescript:
                value = value.but(place=("self",))
            elif param.annotation:
                owner = self.flow.classes.annotated(self.file, param.annotation)
                if owner is not None and "[" not in param.annotation:
                    value = value.but(shape=Instance(owner, {}))
                elif param.annotation.lower().startswith(
                    ("set[", "frozenset[", "abstractset[")
                ) or param.annotation in {"set", "frozenset"}:
                    value = value.but(shape=Items("set", ((True, value),)))
            if param.default is not None and not isinstance(param.default, f.Lit):
                value = join(value, self.value(param.default)) if not typescript else value
            self.env[param.name] = value
            for field, local in param.fields:
                part = value.but(
                    refs=((self.fid, index, (field,)),), place=(*(value.place or ()), field), origin=field
                )
                self.env[local] = part
        self.run(function.body)
        returned = self.summary.returns
        if self.yielded:
            returned = join(returned, Value(shape=Items("list", tuple(self.yielded[:48]))))
        self.summary.returns = transform(returned, _leaving)
        for name, value in self.summary.writes.items():
            self.summary.writes[name] = transform(value, _leaving)
        naming.returned(self, function)
        by_name.undescribed(self, function)
        registry.listed(self, function)
        for fid, scope in self.nested:
            self.flow.summary(fid, scope)

    def run(self, body: list[f.Stmt]) -> None:
        """Read a block. An `if` that leaves stands as a negated guard above the rest of it."""
        pushed = 0
        for statement in body:
            self.statement = statement
            handler = statements.READERS.get(type(statement))
            if handler is not None:
                handler(self, statement)
            if isinstance(statement, f.If) and walk.leaves(statement.then) and not statement.other:
                self.guards.append(Guard(statement.test, "if", negated=True))
                pushed += 1
        if pushed:
            del self.guards[-pushed:]

    def value(self, node: f.Expr | None) -> Value:
        """What an expression gives."""
        return evaluation.evaluate(self, node)

    # where we are

    @property
    def loop_ids(self) -> tuple[int, ...]:
        return tuple(loop.id for loop in self.loops)

    @property
    def talking(self) -> bool:
        return any(loop.talks for loop in self.loops)

    def step(self, at: f.At, note: str) -> Step:
        return Step(self.file.index, at, note)

    def change(self, code: str, what: str, at: f.At, lifetime: int, **more: object) -> Change:
        """A change that is read here and now."""
        return Change(code, what, self.file.index, at, lifetime, loops=self.loop_ids, **more)  # type: ignore[arg-type]

    def traced(self, value: Value, at: f.At, note: str) -> Value:
        """The value with one more step on the way of each of its changes."""
        if not value.flat():
            return value
        step = self.step(at, note)
        return transform(value, lambda change: change.step(step))

    # names

    def lookup(self, name: str) -> Value | None:
        """What a name holds, here or further out."""
        flow = self.flow
        value = flow.held(self.env, name)
        if value is not None:
            return value
        scope = self.scope
        while scope is not None:
            value = flow.held(scope.env, name)
            if value is not None:
                return value
            scope = scope.scope
        if self.fid[1] >= 0:
            return flow.held(flow.module(self.file.index), name)
        return None

    def definition(self, node: f.Expr | None) -> f.Expr | None:
        """The expression that a local name was last bound to; any other expression is its own."""
        if isinstance(node, f.Name):
            return self.definitions.get(node.name)
        return node

    def is_list_name(self, name: str) -> bool:
        """Whether a name says that it holds messages, or a parameter's type does."""
        if name in self.listed or self.knowledge.is_list_name(name):
            return True
        scope = self.scope
        while scope is not None:
            if name in scope.listed:
                return True
            scope = scope.scope
        return False

    def is_fresh(self, key: str) -> bool:
        """Whether a list was made in this body, and no conversation has begun since."""
        born = self.births.get(key)
        if born is None:
            return False
        return not any(loop.talks and loop.id not in born for loop in self.loops)

    # storing

    def store(self, target: f.Expr, value: Value, at: f.At, op: str = "=") -> None:
        """Bind a value to a name, an attribute, an element, or the parts of a pattern."""
        storing.store(self, target, value, at, op)

    def put(
        self, node: f.Expr, base: Value, name: str | None, value: Value, key: Value | None = None
    ) -> None:
        """Put a value into a dict that stands at `node`: under a key, or under one not known."""
        storing.put(self, node, base, name, value, key)

    def rebind(self, node: f.Expr, value: Value) -> None:
        """Replace what stands at an expression by its changed self: no assignment, so no sink."""
        storing.rebind(self, node, value)


def _leaving(change: Change) -> Change | None:
    """A change as it leaves its function: counters of loops that are over stay behind."""
    if change.loop_bound:
        return None
    return change._replace(loops=()) if change.loops else change
