"""One run of the linter: find the files, read them, judge, and apply what the project asks.

The wing's door: `lint(paths, options)` gives a `Report`; formats and the
command line only print it.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from prefixguard.finding import SEVERITIES, Severity
from prefixguard.lint import changed, suppress
from prefixguard.lint.cache import FactCache
from prefixguard.lint.config import Config, check_codes, path_pattern
from prefixguard.lint.facts import At
from prefixguard.lint.flow import Flow
from prefixguard.lint.knowledge import Knowledge, load
from prefixguard.lint.project import Project, SourceFile, discover
from prefixguard.lint.verdict import LintFinding, judge, with_severity
from prefixguard.rulebook import Rulebook

_PARALLEL_FROM = 300
"""Files with prompt words from which a second process pays for its start."""

DEEPEST = 30_000
"""Calls on the stack: a module is read inside the one that imports it, a function inside its first caller."""

_TESTS = re.compile(
    r"(^|/)(tests?|__tests__|testing|spec|e2e|evals?)/|(^|/)(test_[^/]*|conftest|[^/]*_test)\.py$|\.(test|spec|stories)\.[cm]?[jt]sx?$"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What one run is asked for. `jobs` 0: as many processes as there are cores."""

    config: Config = field(default_factory=Config)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    diff: str | None = None
    cache: Path | None = None
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """A file, or a part of one, that could not be analysed."""

    path: Path
    row: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Link:
    """A break of a recorded session and the line that made it; filename and row are None where none fits."""

    turn: str
    codes: tuple[str, ...]
    filename: str | None
    row: int | None
    confidence: str
    why: str
    tokens: int


@dataclass(slots=True)
class Report:
    """The result of a run. `read`: files whose facts were read; `seen`: all files looked at."""

    project: Project
    findings: list[LintFinding]
    suppressed: list[tuple[LintFinding, str]]
    remarks: list[suppress.Remark]
    problems: list[Problem]
    read: int
    seen: int
    rows: int
    known_before: int = 0
    links: list[Link] = field(default_factory=list)

    def path(self, finding: LintFinding) -> Path:
        return self.project.files[finding.file].path

    def worst(self) -> Severity | None:
        """The most severe finding, or None."""
        return max((finding.severity for finding in self.findings), key=SEVERITIES.index, default=None)


def lint(paths: Iterable[Path], options: Options | None = None, rulebook: Rulebook | None = None) -> Report:
    """Analyse the files under `paths`. Raises InputError for a path or setting that is wrong."""
    chosen = options or Options()
    config = chosen.config
    check_codes((*chosen.select, *chosen.ignore), "codes")
    roots = list(paths)
    files = discover(roots, config.excluded())
    knowledge = load(user=config.user_rules())
    cache = FactCache(chosen.cache) if chosen.cache is not None else None
    project = Project(files, cache, [sink.match.rsplit(".", 1)[-1] for sink in config.sinks])
    touched = changed.rows(chosen.diff, roots) if chosen.diff is not None else None
    matter = [file for file in project.files if file.may_matter()]
    problems = [
        Problem(f.path, 1, 1, f"cannot be read: {f.unreadable}") for f in project.files if f.unreadable
    ]
    findings, read, failures = _analysed(project, knowledge, matter, chosen.jobs)
    for index, said in sorted(failures.items()):
        what = f"the linter stumbled here ({said}); the rest was analysed. Please report it"
        problems.append(Problem(project.files[index].path, 1, 1, what))
    for file in matter:
        for at in file.module.errors[:3]:
            problems.append(  # noqa: PERF401
                Problem(
                    file.path,
                    at[0],
                    at[1],
                    "this part could not be parsed; the rest of the file was analysed",
                )
            )
    findings = [
        finding for finding in (_adjusted(f, project, config, roots) for f in findings) if finding is not None
    ]
    findings = [
        f
        for f in findings
        if _selected(f.code, chosen.select or config.select, (*chosen.ignore, *config.ignore))
    ]
    findings = _per_file(findings, project, config.per_file_ignores)
    known = frozenset((rulebook or Rulebook()).findings)
    suppressing = {file.index for file in project.files if b"prefixguard:" in file.source}
    kept, suppressed, remarks = suppress.apply(findings, project.files, known, suppressing)
    if touched is not None:
        kept = [finding for finding in kept if changed.touches(touched, project, finding)]
        remarks = [
            remark
            for remark in remarks
            if changed.holds(touched, project.absolute(project.files[remark.file]), remark.row)
        ]
    rows = sum(file.source.count(b"\n") for file in project.files)
    return Report(project, kept, suppressed, remarks, problems, read, len(project.files), rows)


def _analysed(
    project: Project, knowledge: Mapping[str, Knowledge], matter: list[SourceFile], jobs: int
) -> tuple[list[LintFinding], int, dict[int, str]]:
    workers = jobs or os.cpu_count() or 1
    # The values of a flow are many small immutable objects without cycles worth hunting for.
    enabled = gc.isenabled()
    limit = sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(limit, DEEPEST))
    try:
        if workers > 1 and len(matter) >= _PARALLEL_FROM:
            from prefixguard.lint.parallel import analysed

            return analysed(project, knowledge, matter, workers)
        flow = Flow(project, knowledge)
        flow.analyse(matter)
        return judge(flow), len(flow.modules), flow.failures
    finally:
        sys.setrecursionlimit(limit)
        if enabled:
            gc.enable()


def _adjusted(
    finding: LintFinding, project: Project, config: Config, roots: list[Path]
) -> LintFinding | None:
    """The finding with the project's own severities; code that only tests is remarked on, not failed."""
    wanted = config.severity.get(finding.code)
    if wanted == "off":
        return None
    if wanted in SEVERITIES:
        return with_severity(finding, wanted)
    path = project.files[finding.file].path
    relative = path
    for root in roots:
        try:
            relative = path.relative_to(root)
            break
        except ValueError:
            continue
    if finding.severity == "info":
        return finding
    if _TESTS.search(relative.as_posix()) or any(
        _is_test(project.files[step.file].path, roots) for step in finding.trace
    ):
        return with_severity(finding, "info")
    return finding


def _is_test(path: Path, roots: list[Path]) -> bool:
    for root in roots:
        if path.is_relative_to(root):
            return _TESTS.search(path.relative_to(root).as_posix()) is not None
    return False


def _selected(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    """Whether a code is asked for: the longest pattern that fits it decides."""
    yes = max((len(p) if p != "ALL" else 0 for p in select if p == "ALL" or code.startswith(p)), default=-1)
    no = max((len(p) if p != "ALL" else 0 for p in ignore if p == "ALL" or code.startswith(p)), default=-1)
    return yes > no


def _per_file(
    findings: list[LintFinding], project: Project, ignores: Mapping[str, tuple[str, ...]]
) -> list[LintFinding]:
    if not ignores:
        return findings
    table = [(path_pattern(pattern), codes) for pattern, codes in ignores.items()]
    return [
        finding
        for finding in findings
        if not any(
            pattern.search(project.files[finding.file].path.as_posix())
            and not _selected(finding.code, ("ALL",), codes)
            for pattern, codes in table
        )
    ]


def in_characters(line: str, column: int) -> int:
    """A column counted in bytes, from 1, as one counted in characters."""
    if line.isascii():
        return column
    return len(line.encode()[: column - 1].decode("utf-8", "ignore")) + 1


def place(file: SourceFile, at: At) -> At:
    """A place with columns counted in characters."""
    return (
        at[0],
        in_characters(file.line(at[0]), at[1]),
        at[2],
        in_characters(file.line(at[2]), at[3]),
    )


__all__ = ["Options", "Problem", "Report", "lint", "place", "replace"]
