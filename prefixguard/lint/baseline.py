"""A baseline: findings that are known and accepted, so that only new ones fail.

Beside `run`. An entry is a fingerprint of code, file and line text, not of the
row, so that it holds while lines move; each entry accepts as many findings as
were counted when it was written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import xxhash

from prefixguard.errors import InputError
from prefixguard.lint.run import Report
from prefixguard.lint.verdict import LintFinding

SCHEMA = "prefixguard-lint-baseline/1"


def fingerprint(report: Report, finding: LintFinding, base: Path | None = None) -> str:
    """Sixteen hexadecimal digits that stay when lines above move."""
    file = report.project.files[finding.file]
    return xxhash.xxh3_64_hexdigest(
        "\0".join(
            (finding.code, _relative(file.path, base), " ".join(file.line(finding.at[0]).split()))
        ).encode()
    )


def _relative(path: Path, base: Path | None) -> str:
    absolute = os.path.abspath(path)
    root = os.path.abspath(base) if base is not None else os.getcwd()
    relative = os.path.relpath(absolute, root)
    return (absolute if relative.startswith("..") else relative).replace(os.sep, "/")


def write(path: Path, report: Report) -> None:
    """Accept all present findings. Raises InputError when the file cannot be written."""
    base = path.resolve().parent
    entries: dict[str, dict[str, object]] = {}
    counts: Counter[str] = Counter()
    for finding in report.findings:
        mark = fingerprint(report, finding, base)
        counts[mark] += 1
        file = report.project.files[finding.file]
        entries[mark] = {
            "fingerprint": mark,
            "code": finding.code,
            "filename": _relative(file.path, base),
            "row": finding.at[0],
            "message": finding.message,
            "count": counts[mark],
        }
    body = {
        "schema": SCHEMA,
        "findings": sorted(
            entries.values(), key=lambda e: (str(e["filename"]), str(e["code"]), str(e["fingerprint"]))
        ),
    }
    try:
        path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def apply(path: Path, report: Report) -> None:
    """Take what the baseline knows out of the report. Raises InputError for a file that is no baseline."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        if body["schema"] != SCHEMA:
            raise InputError(
                f"{path}: schema {body['schema']!r} is not {SCHEMA}; write it anew with --write-baseline"
            )
        left = Counter({str(entry["fingerprint"]): int(entry.get("count", 1)) for entry in body["findings"]})
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror or error}; write it with --write-baseline"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: is no baseline of prefixguard lint; write it with --write-baseline"
        ) from error
    base = path.resolve().parent
    kept = []
    for finding in report.findings:
        mark = fingerprint(report, finding, base)
        if left[mark] > 0:
            left[mark] -= 1
            report.known_before += 1
        else:
            kept.append(finding)
    report.findings = kept
