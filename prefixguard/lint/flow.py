"""Follows values through a project: each function is read once, in the order in which it is needed.

Third step of the linter, over `facts`. `Flow` holds what is known of the whole
project (what modules export, what functions do, what classes hold); `frame`
reads one body. What reaches a sink is noted as a `Hit`; `verdict` judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.frame import Frame
from prefixguard.lint.knowledge import PROCESS, SESSION, TURN, Knowledge
from prefixguard.lint.project import Project, SourceFile
from prefixguard.lint.summary import Hit, Pending, Summary
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Deferred,
    External,
    Func,
    FunctionId,
    Instance,
    Klass,
    ModuleRef,
    Value,
    join,
    outlive,
    session,
    transform,
)

type ClassId = tuple[int, int]

_STARTERS = (
    "__init__",
    "__post_init__",
    "constructor",
    "__enter__",
    "__aenter__",
    "setup",
    "initialize",
    "init",
    "start",
    "reset",
    "model_post_init",
)


class Flow:
    """All that one run knows. `hits` and `edits` are its result."""

    def __init__(self, project: Project, knowledge: Mapping[str, Knowledge]) -> None:
        self.project = project
        self.knowledge = knowledge
        self.summaries: dict[FunctionId, Summary] = {}
        self.modules: dict[int, dict[str, Value]] = {}
        self.hits: list[Hit] = []
        self.edits: dict[tuple[int, f.At, str], tuple[Change, int, str]] = {}
        self.safe: set[tuple[int, f.At]] = set()
        self.touched: set[tuple[int, f.At]] = set()
        self.failures: dict[int, str] = {}
        self.requests: list[dict[str, object]] = []
        self.marks: list[tuple[int, f.At, bool]] = []
        self._loops = 0
        self._active: set[FunctionId] = set()
        self._depth = 0
        self._attribute_writers: dict[ClassId, dict[str, list[int]]] = {}
        self._counted: dict[ClassId, set[str]] = {}
        self._fields: dict[tuple[ClassId, str], Value | None] = {}
        self._class_values: dict[ClassId, dict[str, Value]] = {}
        self._bases: dict[ClassId, list[ClassId]] = {}
        self._children: dict[ClassId, list[ClassId]] = {}
        self._methods: dict[str, list[FunctionId]] = {}
        self._loaded: set[int] = set()
        self._imports: dict[int, set[str]] = {}

    # the run

    def analyse(self, files: Iterable[SourceFile]) -> None:
        """Read these files as places where prompts may be built."""
        chosen = list(files)
        for file in chosen:
            self.load(file)
        for file in chosen:
            self._guarded(file, partial(self._open, file))
        for file in chosen:
            for index in range(len(file.module.functions)):
                # A nested function is read by the one around it, which comes first.
                self._guarded(file, partial(self.summary, (file.index, index)))

    def _open(self, file: SourceFile) -> None:
        self.module(file.index)
        for number in range(len(file.module.classes)):
            self.bases((file.index, number))

    def _guarded(self, file: SourceFile, read: Callable[[], object]) -> None:
        """Read a part of a file. What the linter stumbles over is noted, and the rest is read anyhow."""
        try:
            read()
        except Exception as error:  # noqa: BLE001 - one odd function must not hide the findings of a whole project
            self.failures.setdefault(file.index, f"{type(error).__name__}: {error}")

    def load(self, file: SourceFile) -> None:
        """Index the methods of a file, so that calls on unknown objects find them by name."""
        if file.index in self._loaded:
            return
        self._loaded.add(file.index)
        for owner in file.module.classes:
            for name, index in owner.methods.items():
                self._methods.setdefault(name, []).append((file.index, index))

    def next_loop(self) -> int:
        self._loops += 1
        return self._loops

    def knows(self, file: SourceFile) -> Knowledge:
        return self.knowledge[file.family]

    def imports(self, file: SourceFile) -> set[str]:
        """The names of the modules that a file imports."""
        found = self._imports.get(file.index)
        if found is None:
            found = self._imports[file.index] = {entry.module for entry in file.module.imports}
        return found

    # modules

    def module(self, index: int) -> dict[str, Value]:
        """What the names of a module hold once it was imported."""
        if index in self.modules:
            return self.modules[index]
        file = self.project.files[index]
        self.load(file)
        env: dict[str, Value] = {}
        self.modules[index] = env
        frame = Frame(self, file, (index, -1), None, None, env)
        for statement in file.module.body:
            if isinstance(statement, f.Define):
                env[statement.name] = Value(shape=Func((index, statement.index)))
            elif isinstance(statement, f.DefineClass):
                env[statement.name] = Value(shape=Klass((index, statement.index)))
        frame.run(file.module.body)
        for name, value in list(env.items()):
            if isinstance(value.shape, Deferred):
                continue
            kept = outlive(value, PROCESS, "module")
            env[name] = kept if kept.place is not None else kept.but(place=(f"global:{index}:{name}",))
        return env

    def held(self, env: dict[str, Value], name: str) -> Value | None:
        """What a name holds; an import is followed when it is first used."""
        value = env.get(name)
        if value is not None and isinstance(value.shape, Deferred):
            deferred = value.shape
            env[name] = NOTHING  # an import cycle ends here
            value = env[name] = self.imported(self.project.files[deferred.file], deferred.entry)
        return value

    def imported(self, file: SourceFile, entry: f.Import) -> Value:
        """What an import binds."""
        target = self.project.resolve(file, entry.module, entry.level)
        if entry.name in {"", "*"} and file.family == "python":
            if target is not None and (entry.alias or "." not in entry.module):
                return Value(shape=ModuleRef(target.index))
            return Value(shape=External(entry.module if entry.alias else entry.module.split(".")[0]))
        if target is not None:
            if entry.name in {"", "*"}:
                return Value(shape=ModuleRef(target.index))
            value = self.exported(target, entry.name)
            if value is not None:
                return value
        if file.family == "python":
            joined = f"{entry.module}.{entry.name}" if entry.module else entry.name
            submodule = self.project.resolve(file, joined, entry.level)
            if submodule is not None:
                return Value(shape=ModuleRef(submodule.index))
            return Value(shape=External(joined))
        if target is not None:
            return NOTHING
        name = entry.module if entry.name in {"", "*", "default"} else f"{entry.module}.{entry.name}"
        return Value(shape=External(name))

    def exported(self, file: SourceFile, name: str, depth: int = 0) -> Value | None:
        """What a module offers under a name, through re-exports."""
        env = self.module(file.index)
        local = file.module.exports.get(name, name)
        value = self.held(env, local)
        if value is not None:
            return value
        if depth > 6:
            return None
        for entry in file.module.imports:
            if entry.name == "*" and entry.alias == "*":
                target = self.project.resolve(file, entry.module, entry.level)
                if target is not None and target is not file:
                    value = self.exported(target, name, depth + 1)
                    if value is not None:
                        return value
        return None

    # functions

    def function(self, fid: FunctionId) -> f.FunctionFacts:
        return self.project.files[fid[0]].module.functions[fid[1]]

    def summary(self, fid: FunctionId, scope: Frame | None = None) -> Summary | None:
        """What is known of a function; None while it is being read, or when the way is too deep."""
        known = self.summaries.get(fid)
        if known is not None:
            return known if known.done else None
        if self._depth > 40:
            return None
        file = self.project.files[fid[0]]
        if scope is None:
            self.module(file.index)
            if fid in self.summaries:
                known = self.summaries[fid]
                return known if known.done else None
        frame = Frame(self, file, fid, self.function(fid), scope, {})
        self.summaries[fid] = frame.summary
        self._depth += 1
        try:
            frame.enter()
        finally:
            self._depth -= 1
            frame.summary.done = True
        return frame.summary

    # classes

    def klass(self, owner: ClassId) -> f.ClassFacts:
        return self.project.files[owner[0]].module.classes[owner[1]]

    def bases(self, owner: ClassId) -> list[ClassId]:
        """The bases of a class that the project holds."""
        known = self._bases.get(owner)
        if known is None:
            self._bases[owner] = []
            env = self.module(owner[0])
            found: list[ClassId] = []
            for base in self.klass(owner).bases:
                value = self.held(env, base.name) if isinstance(base, f.Name) else None
                if isinstance(base, f.Attr) and isinstance(base.base, f.Name):
                    holder = self.held(env, base.base.name)
                    if holder is not None and isinstance(holder.shape, ModuleRef):
                        value = self.exported(self.project.files[holder.shape.file], base.name)
                if value is not None and isinstance(value.shape, Klass) and value.shape.owner != owner:
                    found.append(value.shape.owner)
                    self._children.setdefault(value.shape.owner, []).append(owner)
            self._bases[owner] = known = found
        return known

    def lineage(self, owner: ClassId) -> list[ClassId]:
        """A class and its bases, nearest first."""
        found = [owner]
        for item in found:
            if len(found) > 12:
                break
            found.extend(base for base in self.bases(item) if base not in found)
        return found

    def method(self, owner: ClassId, name: str) -> FunctionId | None:
        """The method that a call on an object of the class reaches."""
        for item in self.lineage(owner):
            index = self.klass(item).methods.get(name)
            if index is not None:
                return (item[0], index)
        return None

    def overrides(self, owner: ClassId, name: str) -> list[FunctionId]:
        """The methods that subclasses put in place of one that does nothing."""
        found = []
        for child in self._children.get(owner, [])[:6]:
            index = self.klass(child).methods.get(name)
            if index is not None:
                found.append((child[0], index))
        return found[:4]

    def methods_named(self, name: str) -> list[FunctionId]:
        """All methods of a name, for a call on an unknown object."""
        return self._methods.get(name, [])

    def constructor(self, owner: ClassId) -> FunctionId | None:
        return self.method(owner, "__init__") or self.method(owner, "constructor")

    def writers(self, owner: ClassId) -> dict[str, list[int]]:
        """For each attribute of self, the methods that assign it, by index."""
        known = self._attribute_writers.get(owner)
        if known is None:
            known = {}
            counted: set[str] = set()
            added: set[str] = set()
            numeric: set[str] = set()
            module = self.project.files[owner[0]].module
            for index in dict.fromkeys(self.klass(owner).methods.values()):
                for item in walk.inside(module.functions[index].body):
                    targets: list[f.Expr] = []
                    if isinstance(item, f.Assign):
                        for target in item.targets:
                            targets.extend(target.items if isinstance(target, f.Seq) else [target])
                    elif isinstance(item, f.Call) and isinstance(item.func, f.Attr):
                        targets = (
                            [item.func.base]
                            if item.func.name in {"append", "extend", "push", "insert", "unshift"}
                            else []
                        )
                    for target in targets:
                        base = target
                        while isinstance(base, (f.Index, f.Attr)) and not _is_self(base):
                            base = base.base
                        if isinstance(base, f.Attr) and _is_self(base):
                            known.setdefault(base.name, [])
                            if index not in known[base.name]:
                                known[base.name].append(index)
                    if isinstance(item, f.Assign) and isinstance(item.targets[0], f.Attr):
                        number = isinstance(item.value, f.Lit) and isinstance(item.value.value, (int, float))
                        if item.op in {"+=", "-="}:
                            (counted if number else added).add(item.targets[0].name)
                        elif item.op == "=" and number:
                            numeric.add(item.targets[0].name)
            self._counted[owner] = counted | (added & numeric)
            self._attribute_writers[owner] = known
        return known

    def attribute(self, owner: ClassId, name: str) -> Value:
        """What an attribute of an object of the class holds, over all methods that write it."""
        key = (owner, name)
        if key in self._fields:
            return self._fields[key] or NOTHING
        self._fields[key] = None
        found = NOTHING
        complete = True
        for item in self.lineage(owner):
            facts = self.klass(item)
            for statement in facts.body:
                if isinstance(statement, f.Assign) and statement.op in {"=", "declare"}:
                    for target in statement.targets:
                        if isinstance(target, f.Name) and target.name == name and statement.op == "=":
                            found = join(found, self.class_value(item, name, statement))
            for index in self.writers(item).get(name, []):
                fid = (item[0], index)
                summary = self.summaries.get(fid) or self.summary(fid)
                if summary is None or not summary.done:
                    # The method is being read just now: what it writes is known later.
                    complete = False
                if summary is None or name not in summary.writes:
                    continue
                value = summary.writes[name]
                method = self.function(fid).name
                if method in _STARTERS or method.startswith(
                    ("_init", "init_", "_setup", "setup_", "start_", "new_")
                ):
                    value = session(value, "constructor")
                else:
                    value = transform(value, stored)
                found = join(found, value)
            annotation = facts.annotations.get(name)
            if annotation and found.shape is None:
                typed = self.annotated(self.project.files[item[0]], annotation)
                if typed is not None:
                    found = (
                        join(found, Value(shape=Instance(typed, {})))
                        if found.flat()
                        else Value(shape=Instance(typed, {}), refs=found.refs)
                    )
        if complete:
            self._fields[key] = found
        else:
            del self._fields[key]
        return found

    def class_value(self, owner: ClassId, name: str, statement: f.Assign) -> Value:
        """A field of the class body: `x = field(default_factory=...)`, `x: str = ...`."""
        values = self._class_values.setdefault(owner, {})
        if name not in values:
            values[name] = NOTHING
            file = self.project.files[owner[0]]
            frame = Frame(self, file, (owner[0], -1), None, None, dict(self.module(owner[0])))
            frame.owner = owner
            value = frame.value(statement.value)
            values[name] = (
                session(value, "constructor")
                if file.family == "typescript"
                else outlive(value, PROCESS, "module")
            )
        return values[name]

    def annotated(self, file: SourceFile, annotation: str) -> ClassId | None:
        """The class of the project that an annotation names."""
        import re

        for word in re.findall(r"[A-Za-z_]\w*", annotation):
            if word[0].isupper() and word not in {
                "Optional",
                "Union",
                "List",
                "Dict",
                "Any",
                "Callable",
                "Promise",
                "Array",
            }:
                value = self.held(self.module(file.index), word)
                if value is not None and isinstance(value.shape, Klass):
                    return value.shape.owner
        return None

    def counts(self, owner: ClassId, name: str) -> bool:
        """Whether a class counts an attribute up: `self.step += 1`."""
        self.writers(owner)
        return name in self._counted.get(owner, ())

    def pending_of(self, owner: ClassId, constructor: FunctionId) -> list[Pending]:
        """Sinks in any method of a class that depend on what its constructor was given."""
        found: list[Pending] = []
        for item in self.lineage(owner):
            for index in dict.fromkeys(self.klass(item).methods.values()):
                summary = self.summaries.get((item[0], index))
                if summary is None:
                    summary = self.summary((item[0], index))
                if summary is None:
                    continue
                found.extend(
                    pending
                    for pending in summary.pending
                    if any(ref[0] == constructor for ref in pending.value.all_refs())
                )
        return found[:40]


def stored(change: Change) -> Change:
    """A change that was put into a field: an id or a choice is made once per object."""
    if change.code in {"PG104", "PG110", "PG206"}:
        return change.live(SESSION, "stored")._replace(confidence=0)
    return change


def _is_self(node: f.Expr) -> bool:
    return (
        isinstance(node, f.Attr)
        and isinstance(node.base, f.Name)
        and node.base.name in {"self", "this", "cls"}
    )


__all__ = ["SESSION", "TURN", "Flow"]
