"""`--diff REV`: only what stands on lines that changed since a revision.

Beside `run`. A finding counts when its own line, or any line of its way to the
sink, was changed: a clock that is old may be new in the prompt.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from prefixguard.errors import InputError
from prefixguard.lint.project import Project
from prefixguard.lint.verdict import LintFinding

type Rows = dict[str, set[int] | None]
"""Absolute path to its changed rows; None for a file that is new as a whole."""

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def rows(revision: str, roots: Iterable[Path]) -> Rows:
    """The changed rows of all files in the repositories of these paths.

    Raises InputError when git cannot say.
    """
    found: Rows = {}
    seen: set[str] = set()
    for root in roots:
        folder = root if root.is_dir() else root.parent
        top = _git(folder, "rev-parse", "--show-toplevel").strip()
        if top in seen:
            continue
        seen.add(top)
        found.update(
            _parsed(
                _git(Path(top), "diff", "--unified=0", "--no-color", "--no-ext-diff", revision, "--"), top
            )
        )
        for line in _git(Path(top), "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
            if line:
                found[os.path.join(top, line)] = None
    return found


def _parsed(text: str, top: str) -> Rows:
    found: Rows = {}
    current: set[int] | None = None
    for line in text.splitlines():
        if line.startswith("+++ "):
            name = line[4:].strip()
            if name == "/dev/null":
                current = None
                continue
            current = set()
            found[os.path.join(top, name.removeprefix("b/"))] = current
        elif line.startswith("@@") and current is not None:
            match = _HUNK.match(line)
            if match:
                start, count = int(match[1]), int(match[2] or "1")
                current.update(range(start, start + count))
    return found


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed program, no shell
            ["git", "-C", str(folder), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise InputError(f"--diff needs git: {error}") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise InputError(f"--diff: git {arguments[0]} failed in {folder}: {reason}")
    return done.stdout


def holds(changed: Rows, path: str, row: int) -> bool:
    """Whether a row of a file was changed."""
    real = os.path.realpath(path)
    for name in (path, real):
        if name in changed:
            rows_of = changed[name]
            return rows_of is None or row in rows_of
    return False


def touches(changed: Rows, project: Project, finding: LintFinding) -> bool:
    """Whether a finding, or a step of its way, stands on a changed row."""
    files = project.files
    if any(
        holds(changed, project.absolute(files[finding.file]), row)
        for row in range(finding.at[0], finding.at[2] + 1)
    ):
        return True
    return any(holds(changed, project.absolute(files[step.file]), step.at[0]) for step in finding.trace)
