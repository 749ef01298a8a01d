"""Reads a large project in several processes: each takes a part of the files with prompts.

Beside `run`. Processes are forked, so that they share what was read before;
each follows values into whatever modules it needs. A finding that two of them
make is one finding.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping

from prefixguard.lint.flow import Flow
from prefixguard.lint.knowledge import Knowledge
from prefixguard.lint.project import Project, SourceFile
from prefixguard.lint.verdict import _WEIGHT, CONFIDENCE, LintFinding, judge, with_ways

_shared: tuple[Project, Mapping[str, Knowledge], list[list[SourceFile]]] | None = None


def analysed(
    project: Project, knowledge: Mapping[str, Knowledge], matter: list[SourceFile], workers: int
) -> tuple[list[LintFinding], int, dict[int, str]]:
    """All findings, how many modules were read (at least), and what the linter stumbled over, by file."""
    global _shared  # noqa: PLW0603 - handed to forked processes, which cannot be given it otherwise cheaply
    parts = _parts(project, matter, workers)
    _shared = (project, knowledge, parts)
    try:
        context = multiprocessing.get_context("fork")
        with context.Pool(workers) as pool:
            results = pool.map(_one, range(len(parts)), chunksize=1)
    finally:
        _shared = None
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
            best[key] = with_ways(
                first, (*first.also, *second.also, *((second.trace,) if second.trace else ()))
            )
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


def _one(number: int) -> tuple[list[LintFinding], list[int], dict[int, str]]:
    assert _shared is not None
    project, knowledge, parts = _shared
    flow = Flow(project, knowledge)
    flow.analyse(parts[number])
    return judge(flow), list(flow.modules), flow.failures
