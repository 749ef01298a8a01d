"""Reads a large project in several processes: each takes a part of the files with prompts.

Beside `run`. Each process follows values into whatever modules it needs; a
finding that two of them make is one finding. Where no other thread runs,
processes are forked, so that they share what was read before. Next to other
threads a fork could copy a lock that nobody will ever open, so there they are
started anew and told what to read (`worker`).
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from prefixguard.lint.flow import Flow
from prefixguard.lint.knowledge import Knowledge
from prefixguard.lint.project import Project, SourceFile
from prefixguard.lint.verdict import _WEIGHT, CONFIDENCE, LintFinding, judge, with_ways

type Result = tuple[list[LintFinding], list[int], dict[int, str]]
"""Findings of one part, the modules that were read for it, and what the linter stumbled over, by file."""

_shared: tuple[Project, Mapping[str, Knowledge], list[list[SourceFile]]] | None = None


def analysed(
    project: Project, knowledge: Mapping[str, Knowledge], matter: list[SourceFile], workers: int
) -> tuple[list[LintFinding], int, dict[int, str]]:
    """All findings, how many modules were read (at least), and what the linter stumbled over, by file."""
    parts = _parts(project, matter, workers)
    if threads() > 1 or not hasattr(os, "fork"):
        return _merged(_started(project, knowledge, parts, workers))
    return _merged(_forked(project, knowledge, parts, workers))


def threads() -> int:
    """How many threads this process has; those of native libraries count where the system tells of them."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _forked(
    project: Project, knowledge: Mapping[str, Knowledge], parts: list[list[SourceFile]], workers: int
) -> list[Result]:
    global _shared  # noqa: PLW0603 - handed to forked processes, which cannot be given it otherwise cheaply
    _shared = (project, knowledge, parts)
    try:
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            return pool.map(_one, range(len(parts)), chunksize=1)
    finally:
        _shared = None


def _started(
    project: Project, knowledge: Mapping[str, Knowledge], parts: list[list[SourceFile]], workers: int
) -> list[Result]:
    shared = (
        [file.path for file in project.files],
        project.files[0].cache.folder if project.files and project.files[0].cache is not None else None,
        knowledge,
    )
    shares = [[[file.index for file in part] for part in parts[start::workers]] for start in range(workers)]

    def one(share: list[list[int]]) -> list[Result]:
        done = subprocess.run(
            [sys.executable, "-m", "prefixguard.lint.worker"],
            input=pickle.dumps((shared, share)),
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            return [read(project, knowledge, [project.files[index] for index in part]) for part in share]
        found: list[Result] = pickle.loads(done.stdout)  # noqa: S301 - written by the process started here
        return found

    with ThreadPoolExecutor(workers) as pool:
        return [result for results in pool.map(one, [s for s in shares if s]) for result in results]


def _merged(results: Iterable[Result]) -> tuple[list[LintFinding], int, dict[int, str]]:
    best: dict[tuple[int, object, str], LintFinding] = {}
    modules: set[int] = set()
    failures: dict[int, str] = {}
    for findings, read, failed in results:
        modules.update(read)
        failures.update(failed)
        for finding in findings:
            key = (finding.file, finding.at, finding.code)
            known = best.get(key)
            if known is None:
                best[key] = finding
                continue
            first, second = (known, finding) if _rank(known) >= _rank(finding) else (finding, known)
            ways = (*first.also, *second.also, second.trace)
            best[key] = with_ways(first, [way for way in ways if way])
    return sorted(best.values(), key=lambda f: (f.file, f.at, f.code)), len(modules), failures


def _rank(finding: LintFinding) -> tuple[int, int]:
    return (_WEIGHT[finding.severity], CONFIDENCE.index(finding.confidence))


def _parts(project: Project, matter: list[SourceFile], workers: int) -> list[list[SourceFile]]:
    """Neighbouring files together, cut into parts of like size."""
    ordered = sorted(matter, key=project.absolute)
    total = sum(len(file.source) for file in ordered)
    wanted = total / (workers * 2) or 1
    parts: list[list[SourceFile]] = [[]]
    size = 0.0
    for file in ordered:
        folder = os.path.dirname(project.absolute(file))
        if size >= wanted and parts[-1] and folder != os.path.dirname(project.absolute(parts[-1][-1])):
            parts.append([])
            size = 0.0
        parts[-1].append(file)
        size += len(file.source)
    return parts


def _one(number: int) -> Result:
    assert _shared is not None
    project, knowledge, parts = _shared
    return read(project, knowledge, parts[number])


def read(project: Project, knowledge: Mapping[str, Knowledge], part: list[SourceFile]) -> Result:
    """The findings of one part of a project."""
    flow = Flow(project, knowledge)
    flow.analyse(part)
    return judge(flow), list(flow.modules), flow.failures
