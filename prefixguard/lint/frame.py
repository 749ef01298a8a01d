"""Reads one function or module body, statement by statement.

Part of the third step of the linter: `flow` makes a frame for each body, the
frame keeps what its names hold, which loops run and which guards stand above,
and writes the body's summary. Expressions are read in `expressions`, calls in
`calls`, edits of message lists in `edits`, sinks in `sinks`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.expressions import evaluation, members, operators, picking
from prefixguard.lint.history import binding, elements, marks, slices, toolset
from prefixguard.lint.knowledge import SESSION, TURN
from prefixguard.lint.sinks import frameworks, naming, varying
from prefixguard.lint.summary import Loop, Summary
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Deferred,
    Either,
    External,
    Fields,
    Func,
    FunctionId,
    Instance,
    Items,
    Klass,
    ModuleRef,
    Step,
    Value,
    Words,
    join,
    session,
    transform,
    unique,
)

if TYPE_CHECKING:
    from prefixguard.lint.flow import Flow
    from prefixguard.lint.project import SourceFile


_MESSAGES = re.compile(
    r"\b(list|List|Sequence|Iterable|Array|ReadonlyArray)\s*[\[<].*(Message|Msg|MessageParam)\w*|\w*Message(Param)?\w*(\s*\|[^\[]*)?\)?\[\]"
)


class Guard(NamedTuple):
    """A test that stands above the current statement. `kind`: if, while, handler, filter."""

    test: f.Expr | None
    kind: str
    negated: bool = False


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
                owner = self.flow.annotated(self.file, param.annotation)
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
        binding.undescribed(self, function)
        for fid, scope in self.nested:
            self.flow.summary(fid, scope)

    def run(self, body: list[f.Stmt]) -> None:
        """Read a block. An `if` that leaves stands as a negated guard above the rest of it."""
        pushed = 0
        for statement in body:
            self.statement = statement
            handler = _HANDLERS.get(type(statement))
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
        if isinstance(target, f.Name):
            self._store_name(target.name, value, at)
        elif isinstance(target, f.Attr):
            self._store_attribute(target, value, at)
        elif isinstance(target, f.Index):
            self._store_index(target, value, at)
        elif isinstance(target, f.Slice):
            slices.slice_assigned(self, target, value, at)
        elif isinstance(target, f.Seq):
            self._store_parts(target, value, at)
        elif isinstance(target, f.Spread):
            self.store(target.value, value, at)
        elif isinstance(target, f.Map):
            for key, part in target.entries:
                name = key.value if isinstance(key, f.Lit) else walk.last_name(key)
                self.store(part, members.attribute(self, value, str(name), at), at)

    def _store_name(self, name: str, value: Value, at: f.At) -> None:
        naming.named(self, name, value, at)
        value = binding.rebound(self, name, (name,), value, at)
        value = elements.replaced(self, self.env.get(name), value, at)
        home = self.env
        if name not in home and self.scope is not None and self.file.family == "typescript":
            scope: Frame | None = self.scope
            while scope is not None:
                if name in scope.env:
                    home = scope.env
                    break
                scope = scope.scope
        home[name] = self.traced(value, at, f"kept in `{name}`")
        self.births[name] = self.loop_ids
        prefix = name + "."
        for key in [key for key in self.env if key.startswith(prefix)]:
            del self.env[key]

    def _store_attribute(self, target: f.Attr, value: Value, at: f.At) -> None:
        key = walk.dotted(target)
        naming.named(self, target.name, value, at, attribute=True, owner=walk.last_name(target.base))
        base = self.value(target.base)
        if target.name in {"content", "text"} and value.flat():
            naming.spoken_anew(self, target.name, value, at)
        place = (*base.place, target.name) if base.place is not None else None
        if place is not None and any(part.startswith("[") for part in place):
            elements.element(self, place, target.name, value, at)
        value = binding.rebound(self, target.name, place or (key,), value, at)
        kept = self.traced(value, at, f"kept in `{key or target.name}`")
        if self._lazily(key):
            kept = session(kept, "cached")
        if place is not None and place[0] == "self" and len(place) == 2:
            known = self.summary.writes.get(target.name)
            self.summary.writes[target.name] = join(known, kept) if known is not None else kept
        elif place is not None and place[0].startswith("param:") and len(place) < 5:
            self.summary.mutations.append((int(place[0][6:]), place[1:], "set", kept))
        if isinstance(base.shape, Instance):
            base.shape.fields[target.name] = kept
        elif isinstance(base.shape, Fields):
            self.put(target.base, base, target.name, kept)
        if key and "?" not in key:
            self.env[key] = kept
            self.births[key] = self.loop_ids

    def _lazily(self, key: str) -> bool:
        """Whether a guard above asks whether the attribute is still missing."""
        return (
            bool(key)
            and any(
                guard.test is not None and not guard.negated and walk.is_none_test(guard.test) == key
                for guard in self.guards
            )
        ) or any(
            guard.test is not None
            and guard.negated
            and key in {walk.dotted(n) for n in walk.inside(guard.test) if isinstance(n, f.Attr)}
            and not walk.is_none_test(guard.test)
            for guard in self.guards
        )

    def _store_index(self, target: f.Index, value: Value, at: f.At) -> None:
        base = self.value(target.base)
        key = self.value(target.key)
        name = key.const if isinstance(key.const, str) else None
        if name is not None:
            naming.named(self, name, value, at, owner=walk.last_name(target.base), key=True)
            if name in {"content", "text"} and value.flat():
                naming.spoken_anew(self, name, value, at)
        place = base.place
        if place is not None and name is not None and any(part.startswith("[") for part in place):
            if name in {"cache_control", "cachePoint"}:
                marks.breakpoint_set(self, place, at)
            elements.element(self, (*place, name), name, value, at)
            toolset.tool_edited(self, (*place, name), name, value, at)
        elif name is None:
            elements.item_assigned(self, target, base, key, value, at)
        order = tuple(change for change in key.flat() if change.order)
        if name is not None:
            self.put(target.base, base, name, self.traced(value, at, f"put under `{name}`"))
        else:
            self.put(target.base, base, None, value, key if order or key.flat() else None)

    def put(
        self, node: f.Expr, base: Value, name: str | None, value: Value, key: Value | None = None
    ) -> None:
        """Put a value into a dict that stands at `node`: under a key, or under one not known."""
        shape = base.shape
        if not isinstance(shape, Fields):
            if base.shape is None or isinstance(base.shape, (External, Items)):
                if not value.flat() and key is None:
                    if (
                        base.place is not None
                        and base.place[0].startswith("param:")
                        and name
                        and value.all_refs()
                    ):
                        self.summary.mutations.append(
                            (int(base.place[0][6:]), base.place[1:], "set:" + name, value)
                        )
                    return
                shape = Fields({}, at=None)
                if base.place is not None and base.place[0].startswith("param:") and name:
                    self.summary.mutations.append(
                        (int(base.place[0][6:]), base.place[1:], "set:" + name, value)
                    )
            else:
                return
        entries = dict(shape.entries)
        keys = shape.keys
        if name is not None:
            entries[name] = (
                value if not self._branching() or name not in entries else join(entries[name], value)
            )
            if value.flat() and name not in shape.entries:
                pass
        else:
            keys = (*keys, key)[:24] if key is not None else keys
            entries["*"] = join(entries["*"], value) if "*" in entries else value
        self.rebind(node, base.but(shape=shape._replace(entries=entries, keys=keys), _flat=None, _refs=None))

    def _branching(self) -> bool:
        return bool(self.guards)

    def rebind(self, node: f.Expr, value: Value) -> None:
        """Replace what stands at an expression by its changed self: no assignment, so no sink."""
        if isinstance(node, f.Name):
            home = self.env
            if node.name not in home:
                scope = self.scope
                while scope is not None:
                    if node.name in scope.env:
                        home = scope.env
                        break
                    scope = scope.scope
                else:
                    if self.fid[1] >= 0 and node.name in self.flow.module(self.file.index):
                        home = self.flow.module(self.file.index)
            home[node.name] = value
        elif isinstance(node, f.Attr):
            key = walk.dotted(node)
            if key and "?" not in key:
                self.env[key] = value
            base = self.value(node.base)
            if base.place == ("self",):
                known = self.summary.writes.get(node.name)
                self.summary.writes[node.name] = join(known, value) if known is not None else value
            elif isinstance(base.shape, Fields):
                entries = dict(base.shape.entries)
                entries[node.name] = value
                self.rebind(node.base, base.but(shape=base.shape._replace(entries=entries)))
        elif isinstance(node, f.Index) and isinstance(node.key, f.Lit) and isinstance(node.key.value, str):
            base = self.value(node.base)
            if isinstance(base.shape, Fields):
                entries = dict(base.shape.entries)
                entries[node.key.value] = value
                self.rebind(node.base, base.but(shape=base.shape._replace(entries=entries)))

    def _store_parts(self, target: f.Seq, value: Value, at: f.At) -> None:
        shape = value.shape
        if (
            isinstance(shape, Items)
            and len(shape.parts) == len(target.items)
            and not any(s for s, _ in shape.parts)
        ):
            for item, (_, part) in zip(target.items, shape.parts, strict=True):
                self.store(item, part, at)
            return
        part = picking.element(self, value, at)
        for item in target.items:
            self.store(item, part if not isinstance(item, f.Spread) else value, at)

    # statements

    def _assign(self, node: f.Assign) -> None:
        if node.op == "declare":
            return
        value = self.value(node.value)
        if isinstance(node.value, f.Call):
            binding.rewritten_by_name(self, node, value)
        if node.op != "=":
            target = node.targets[0]
            before = self.value(target)
            value = operators.augmented(self, node, before, value)
            if value is before:
                return
        if (
            node.annotation.lower().startswith(("set[", "frozenset["))
            and isinstance(value.shape, Items)
            and value.shape.kind != "set"
        ):
            value = value.but(shape=Items("set", value.shape.parts))
        for target in node.targets:
            if isinstance(target, f.Name):
                self.definitions[target.name] = node.value
            self.store(target, value, node.at, node.op)

    def _do(self, node: f.Do) -> None:
        self.value(node.value)

    def _return(self, node: f.Return) -> None:
        if node.value is None:
            return
        value = self.traced(self.value(node.value), node.at, "returned")
        self.summary.returns = join(self.summary.returns, value)

    def _if(self, node: f.If) -> None:
        self.value(node.test)
        before = dict(self.env)
        self.guards.append(Guard(node.test, "if"))
        self.run(node.then)
        self.guards.pop()
        after = dict(self.env)
        if not node.other and walk.leaves(node.then):
            self._reset(before)
            return
        self._reset(before)
        self.guards.append(Guard(node.test, "if", negated=True))
        self.run(node.other)
        self.guards.pop()
        if walk.leaves(node.then):
            return
        if node.other and walk.leaves(node.other):
            self._reset(after)
            return
        varies = varying.varies(self, node.test)
        merged = self.env
        for name, value in after.items():
            other = merged.get(name)
            if other is None:
                merged[name] = value
            elif other is not value:
                made = join(value, other)
                if varies and isinstance(made.shape, Either):
                    where = _assigned_at(node, name) or node.at
                    made = made.but(shape=made.shape._replace(varies=True, at=where, file=self.file.index))
                merged[name] = made

    def _reset(self, env: dict[str, Value]) -> None:
        # The dict itself is shared with closures and, for a module, with importers.
        if env is not self.env:
            kept = dict(env)
            self.env.clear()
            self.env.update(kept)

    def _loop(self, node: f.Loop) -> None:
        source = self.value(node.source) if node.source is not None else NOTHING
        talking = walk.talks(node.body, self.knowledge, endless=node.target is None)
        over = (
            node.source is not None
            and node.target is not None
            and binding.iterates(self, node.source, source)
        )
        loop = Loop(self.flow.next_loop(), talking, node.at, over)
        counted = walk.counters([*node.body, *node.step])
        if node.target is not None and isinstance(node.source, f.Call):
            function = walk.last_name(node.source.func)
            target = node.target
            if function == "range":
                counted |= walk.names(target)
                self.indexes |= walk.names(target)
            elif function in {"enumerate", "entries"} and isinstance(target, f.Seq) and target.items:
                counted |= walk.names(target.items[0])
                self.indexes |= walk.names(target.items[0])
        self.indexes |= counted
        before = dict(self.env)
        self.loops.append(loop)
        if node.target is not None:
            part = picking.element(self, source, node.source.at if node.source else node.at)
            self.store(node.target, part, node.at)
        for name in counted:
            change = self.change("PG105", f"the counter `{name}`", node.at, TURN, loop_bound=loop.id)
            known = self.env.get(name, NOTHING)
            self.env[name] = Value(unique((*known.changes, change)), known.refs, place=known.place)
        self.guards.append(Guard(node.source if node.target is None else None, "while"))
        self.run(node.body)
        self.run(node.step)
        self.guards.pop()
        self.loops.pop()
        for name, value in before.items():
            now = self.env.get(name)
            if now is not None and now is not value:
                self.env[name] = join(now, value)

    def _try(self, node: f.Try) -> None:
        self.run(node.body)
        before = dict(self.env)
        ends = [dict(self.env)]
        for handler in node.handlers:
            self._reset(dict(before))
            self.guards.append(Guard(None, "handler"))
            self.run(handler)
            self.guards.pop()
            if not walk.leaves(handler):
                ends.append(dict(self.env))
        merged = ends[0]
        for end in ends[1:]:
            for name, value in end.items():
                merged[name] = join(merged[name], value) if name in merged else value
        self._reset(merged)
        self.run(node.final)

    def _delete(self, node: f.Delete) -> None:
        for target in node.targets:
            if isinstance(target, (f.Slice, f.Index)):
                slices.deleted(self, target, node.at)

    def _define(self, node: f.Define) -> None:
        fid = (self.file.index, node.index)
        function = self.flow.function(fid)
        value = Value(shape=Func(fid, None, self if self.fid[1] >= 0 else None))
        self.env[node.name] = value
        if self.fid[1] >= 0:
            self.nested.append((fid, self))
        frameworks.decorated(self, function, fid)

    def _define_class(self, node: f.DefineClass) -> None:
        self.env[node.name] = Value(shape=Klass((self.file.index, node.index)))
        facts = self.flow.klass((self.file.index, node.index))
        for statement in facts.body:
            if isinstance(statement, f.Define):
                fid = (self.file.index, statement.index)
                frameworks.decorated(self, self.flow.function(fid), fid)
            elif isinstance(statement, f.Assign) and statement.op == "=":
                for target in statement.targets:
                    if isinstance(target, f.Name):
                        value = self.value(statement.value)
                        naming.named(self, target.name, value, statement.at, attribute=True, owner=facts.name)

    def _import(self, node: f.Import) -> None:
        if node.name == "*" and self.file.family == "python":
            target = self.flow.project.resolve(self.file, node.module, node.level)
            if target is not None and target is not self.file:
                for name, value in list(self.flow.module(target.index).items()):
                    if not name.startswith("_"):
                        self.env.setdefault(name, value)
            return
        value = Value(shape=Deferred(self.file.index, node))
        name = node.alias or node.name or node.module.split(".")[0]
        if name and name != "*":
            self.env[name] = value


def _leaving(change: Change) -> Change | None:
    """A change as it leaves its function: counters of loops that are over stay behind."""
    if change.loop_bound:
        return None
    return change._replace(loops=()) if change.loops else change


def _assigned_at(node: f.If, name: str) -> f.At | None:
    for item in walk.inside(node.then):
        if isinstance(item, f.Assign) and any(walk.dotted(target) == name for target in item.targets):
            return item.at
    return None


_HANDLERS: dict[type[f.Fact], Any] = {
    f.Assign: Frame._assign,
    f.Do: Frame._do,
    f.Return: Frame._return,
    f.If: Frame._if,
    f.Loop: Frame._loop,
    f.Try: Frame._try,
    f.Delete: Frame._delete,
    f.Define: Frame._define,
    f.DefineClass: Frame._define_class,
    f.Import: Frame._import,
}

__all__ = ["SESSION", "Frame", "Guard", "ModuleRef", "Words"]
