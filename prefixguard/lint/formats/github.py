"""GitHub's workflow commands: each finding as a remark beside its line."""

from __future__ import annotations

from prefixguard.lint.formats import places
from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report
from prefixguard.reports.annotations import LEVELS, annotation
from prefixguard.rulebook import Rulebook


def printed(report: Report, rulebook: Rulebook) -> str:
    """One command per finding, and one per part that could not be analysed."""
    lines = []
    for finding in report.findings:
        spot = places.spot(report, finding)
        lines.append(
            annotation(
                LEVELS[finding.severity],
                places.story(report, finding, rulebook),
                title=f"{finding.code} {rules.name(rulebook, finding.code)}",
                filename=spot.filename,
                row=spot.row,
                column=spot.column,
                end_row=spot.end_row,
                end_column=spot.end_column if spot.end_row == spot.row else None,
            )
        )
    lines.extend(
        annotation("error", problem.message, title="PrefixGuard", filename=str(problem.path), row=problem.row)
        for problem in report.problems
    )
    return "\n".join(lines)
