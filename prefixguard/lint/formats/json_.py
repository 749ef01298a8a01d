"""JSON: a list of findings in the shape that ruff's users know."""

from __future__ import annotations

import json
from typing import Any

from prefixguard.lint.fixes import fix_of
from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report, place
from prefixguard.lint.trade import trade
from prefixguard.lint.values import Step
from prefixguard.lint.verdict import LintFinding
from prefixguard.rulebook import Rulebook


def entry(report: Report, finding: LintFinding, rulebook: Rulebook) -> dict[str, Any]:
    """One finding as a JSON object."""
    files = report.project.files
    file = files[finding.file]
    at = place(file, finding.at)
    fix = fix_of(report.project, finding)
    both = trade(rulebook, finding.code, finding.api) if finding.position == "history" else None
    return {
        "code": finding.code,
        "name": rules.name(rulebook, finding.code),
        "severity": finding.severity,
        "message": finding.message,
        "filename": str(file.path),
        "location": {"row": at[0], "column": at[1]},
        "end_location": {"row": at[2], "column": at[3]},
        "lifetime": finding.lifetime,
        "confidence": finding.confidence,
        "position": finding.position,
        "lost": finding.lost,
        "deliberate": finding.deliberate,
        "evidence": finding.evidence,
        "mend": rules.mend(rulebook, finding),
        "trade": both.as_json() if both is not None else None,
        "trace": _steps(report, finding.trace),
        "also": [_steps(report, way) for way in finding.also],
        "fix": fix.as_json() if fix is not None else None,
        "url": rules.url(finding.code),
        **finding.extra,
    }


def _steps(report: Report, way: tuple[Step, ...]) -> list[dict[str, Any]]:
    files = report.project.files
    return [
        {
            "filename": str(files[step.file].path),
            "row": step.at[0],
            "column": place(files[step.file], step.at)[1],
            "note": step.note,
        }
        for step in way
    ]


def printed(report: Report, rulebook: Rulebook) -> str:
    """The whole report."""
    return json.dumps(
        [entry(report, finding, rulebook) for finding in report.findings], indent=2, ensure_ascii=False
    )
