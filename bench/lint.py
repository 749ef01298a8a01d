"""How fast `prefixguard lint` reads: a first run, a run with cached facts, and other tools on the same files.

usage: python bench/lint.py FOLDER... [--semgrep PATH] [--pcdlint PATH] [--sample N]

Each tool is run as a user runs it. CPU seconds are those of the tool and of all
processes it starts, so they hold on a machine that others use too; wall seconds
only mean something on an idle one. ruff reads every line and follows nothing:
the floor. semgrep is given five patterns (`bench/semgrep.yml`); pcdlint is the
one other linter for the same faults that a registry offers, for Python only.
Both are slow, so they are given a sample of the Python files. Figures of one
machine are not those of another: the ratios are what is kept.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from prefixguard.lint.project import discover

RULES = Path(__file__).with_name("semgrep.yml")


@dataclass(frozen=True, slots=True)
class Run:
    """One tool over some lines. cpu, wall: seconds."""

    tool: str
    lines: int
    wall: float
    cpu: float
    code: int

    @property
    def speed(self) -> float:
        """Lines per CPU second."""
        return self.lines / max(self.cpu, 1e-9)


def measured(tool: str, lines: int, command: list[str], environ: dict[str, str] | None = None) -> Run:
    """Wall and CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, env={**os.environ, **(environ or {})}, capture_output=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    if done.returncode not in {0, 1, 2}:
        print(
            f"{tool}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}", file=sys.stderr
        )
    return Run(tool, lines, wall, cpu, done.returncode)


def rows(paths: list[Path]) -> int:
    """How many lines these files have."""
    return sum(path.read_bytes().count(b"\n") for path in paths)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--ruff", default=shutil.which("ruff") or str(Path(sys.executable).with_name("ruff")))
    parser.add_argument("--semgrep", default=shutil.which("semgrep"))
    parser.add_argument("--pcdlint", default=shutil.which("pcdlint"))
    parser.add_argument("--sample", type=int, default=1000, help="Python files for the slow tools")
    given = parser.parse_args(arguments)
    files = discover(given.folders)
    lines = rows(files)
    python = [path for path in files if path.suffix == ".py"]
    sample = random.Random(0).sample(python, min(given.sample, len(python)))
    few = rows(sample)
    names = [str(path) for path in sample]
    print(f"{len(files):,} files, {lines:,} lines; the sample has {len(sample):,} files, {few:,} lines")
    folders = [str(folder) for folder in given.folders]
    lint = [sys.executable, "-m", "prefixguard", "lint", "--fail-on", "never", "--statistics"]
    done: list[Run] = []
    with tempfile.TemporaryDirectory() as kept:
        cache = {"PREFIXGUARD_CACHE": kept}
        done.append(measured("prefixguard, first run", lines, [*lint, *folders], cache))
        done.append(measured("prefixguard, facts cached", lines, [*lint, *folders], cache))
    done.append(measured("prefixguard, one process", lines, [*lint, "--no-cache", "--jobs", "1", *folders]))
    done.append(measured("prefixguard, the sample", few, [*lint, "--no-cache", *names]))
    if Path(given.ruff).exists():
        ruff = [given.ruff, "check", "--no-cache", "--isolated", "--quiet", "--exit-zero"]
        done.append(measured("ruff check (Python)", rows(python), [*ruff, *folders]))
    if given.semgrep:
        semgrep = [
            given.semgrep,
            "scan",
            "--metrics",
            "off",
            "--disable-version-check",
            "--quiet",
            "--no-git-ignore",
        ]
        done.append(measured("semgrep, five rules, sample", few, [*semgrep, "--config", str(RULES), *names]))
    if given.pcdlint:
        done.append(measured("pcdlint, sample", few, [given.pcdlint, "--format", "json", *names]))
    first = done[0]
    print(f"{'':<30}{'wall s':>9}{'CPU s':>9}{'lines per CPU s':>17}{'speed':>9}")
    for run in done:
        ratio = run.speed / first.speed
        print(f"{run.tool:<30}{run.wall:>9.2f}{run.cpu:>9.2f}{run.speed:>17,.0f}{ratio:>8.2f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
