"""The classes of a project: their bases, their methods, and what their attributes hold.

Part of the third step of the linter, beside `flow`, which reads the methods.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.frame import Frame
from prefixguard.lint.project import SourceFile
from prefixguard.lint.summary import Pending
from prefixguard.lint.tables import PROCESS, SESSION
from prefixguard.lint.values import (
    NOTHING,
    Change,
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

if TYPE_CHECKING:
    from prefixguard.lint.flow import Flow

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


class Classes:
    """What is known of all classes; a class is named by its file and its number there."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._attribute_writers: dict[ClassId, dict[str, list[int]]] = {}
        self._counted: dict[ClassId, set[str]] = {}
        self._fields: dict[tuple[ClassId, str], Value | None] = {}
        self._class_values: dict[ClassId, dict[str, Value]] = {}
        self._bases: dict[ClassId, list[ClassId]] = {}
        self._children: dict[ClassId, list[ClassId]] = {}
        self._methods: dict[str, list[FunctionId]] = {}

    def load(self, file: SourceFile) -> None:
        """Index the methods of a file, so that calls on unknown objects find them by name."""
        for owner in file.module.classes:
            for name, index in owner.methods.items():
                self._methods.setdefault(name, []).append((file.index, index))

    def klass(self, owner: ClassId) -> f.ClassFacts:
        return self.flow.project.files[owner[0]].module.classes[owner[1]]

    def bases(self, owner: ClassId) -> list[ClassId]:
        """The bases of a class that the project holds."""
        known = self._bases.get(owner)
        if known is None:
            self._bases[owner] = []
            env = self.flow.module(owner[0])
            found: list[ClassId] = []
            for base in self.klass(owner).bases:
                value = self.flow.held(env, base.name) if isinstance(base, f.Name) else None
                if isinstance(base, f.Attr) and isinstance(base.base, f.Name):
                    holder = self.flow.held(env, base.base.name)
                    if holder is not None and isinstance(holder.shape, ModuleRef):
                        value = self.flow.exported(self.flow.project.files[holder.shape.file], base.name)
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
            module = self.flow.project.files[owner[0]].module
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
                summary = self.flow.summaries.get(fid) or self.flow.summary(fid)
                if summary is None or not summary.done:
                    # The method is being read just now: what it writes is known later.
                    complete = False
                if summary is None or name not in summary.writes:
                    continue
                value = summary.writes[name]
                method = self.flow.function(fid).name
                if method in _STARTERS or method.startswith(
                    ("_init", "init_", "_setup", "setup_", "start_", "new_")
                ):
                    value = session(value, "constructor")
                else:
                    value = transform(value, stored)
                found = join(found, value)
            annotation = facts.annotations.get(name)
            if annotation and found.shape is None:
                typed = self.annotated(self.flow.project.files[item[0]], annotation)
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
            file = self.flow.project.files[owner[0]]
            frame = Frame(self.flow, file, (owner[0], -1), None, None, dict(self.flow.module(owner[0])))
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
                value = self.flow.held(self.flow.module(file.index), word)
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
                summary = self.flow.summaries.get((item[0], index))
                if summary is None:
                    summary = self.flow.summary((item[0], index))
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
