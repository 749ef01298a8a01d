"""Follows values through a project: each function is read once, in the order in which it is needed.

Third step of the linter, over `facts`. `Flow` holds what is known of the whole
project (what modules export, what functions do, what classes hold); `frame`
reads one body. What reaches a sink is noted as a `Hit`; `verdict` judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prefixguard.lint import facts as f
from prefixguard.lint.classes import Classes
from prefixguard.lint.frame import Frame
from prefixguard.lint.knowledge import Knowledge
from prefixguard.lint.project import Project, SourceFile
from prefixguard.lint.summary import Hit, Summary
from prefixguard.lint.tables import PROCESS
from prefixguard.lint.values import (
    NOTHING,
    Change,
    Deferred,
    External,
    Func,
    FunctionId,
    Klass,
    ModuleRef,
    Value,
    outlive,
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
        self.failures: dict[int, str] = {}
        self.requests: list[dict[str, object]] = []
        self.marks: list[tuple[int, f.At, bool]] = []
        self._loops = 0
        self._depth = 0
        self.classes = Classes(self)
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
            self.classes.bases((file.index, number))

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
        self.classes.load(file)

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
