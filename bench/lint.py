"""How fast `prefixguard lint` reads, against ruff as a floor and, where it is installed, semgrep with five rules.

usage: python bench/lint.py FOLDER...

Prints lines, seconds and CPU seconds for a first run (no cache), a second run
(facts cached) and the other tools. Figures of one machine are not those of
another: only the ratios mean something.
"""  # noqa: E501

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

FIVE_RULES = """rules:
  - {id: clock, languages: [python], severity: WARNING, message: clock, pattern: "$D.now(...)"}
  - {id: uuid, languages: [python], severity: WARNING, message: id, pattern: "uuid.uuid4()"}
  - {id: set, languages: [python], severity: WARNING, message: order, pattern: "list(set(...))"}
  - {id: window, languages: [python], severity: WARNING, message: window, pattern: "$M[-$N:]"}
  - {id: pop, languages: [python], severity: WARNING, message: pop, pattern: "$M.pop(0)"}
"""
ENDINGS = (".py", ".ts", ".tsx", ".js", ".jsx", ".mjs")


def measured(command: list[str], environ: dict[str, str] | None = None) -> tuple[float, float]:
    """Wall and CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, env={**os.environ, **(environ or {})}, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - start, cpu


def main(folders: list[str]) -> int:
    files = [
        path
        for folder in folders
        for path in pathlib.Path(folder).rglob("*")
        if path.suffix in ENDINGS and path.is_file()
    ]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    print(f"{len(files)} files, {lines} lines")
    prefixguard = [
        sys.executable,
        "-c",
        "from prefixguard.cli import main; main()",
        "lint",
        *folders,
        "--fail-on",
        "never",
    ]
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as kept:
        cache = {"PREFIXGUARD_CACHE": kept}
        rows.append(("prefixguard, first run", *measured([*prefixguard, "--statistics"], cache)))
        rows.append(("prefixguard, facts cached", *measured([*prefixguard, "--statistics"], cache)))
    rows.append(
        ("prefixguard, one process", *measured([*prefixguard, "--statistics", "--no-cache", "--jobs", "1"]))
    )
    ruff = shutil.which("ruff") or str(pathlib.Path(sys.executable).with_name("ruff"))
    if pathlib.Path(ruff).exists():
        rows.append(
            (
                "ruff check --no-cache",
                *measured([ruff, "check", "--no-cache", "--isolated", "--quiet", *folders]),
            )
        )
    semgrep = shutil.which("semgrep")
    if semgrep:
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules:
            rules.write(FIVE_RULES)
            rules.flush()
            rows.append(
                (
                    "semgrep, five rules",
                    *measured([semgrep, "--metrics", "off", "--quiet", "--config", rules.name, *folders]),
                )
            )
    else:
        print("semgrep is not installed: left out")
    for name, wall, cpu in rows:
        print(
            f"{name:<28} {wall:8.2f} s   {cpu:8.2f} CPU s   {lines / max(cpu, 1e-9):>12,.0f} lines per CPU second"  # noqa: E501
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["."]))
