"""A finding's places as the writers of `reports` take them.

Beside the formats that annotate code: SARIF, workflow commands, JUnit.
"""

from __future__ import annotations

from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report, place
from prefixguard.lint.values import Step
from prefixguard.lint.verdict import LintFinding
from prefixguard.reports.sarif import Spot
from prefixguard.rulebook import Rulebook


def spot(report: Report, finding: LintFinding, note: str = "") -> Spot:
    """The place of the finding itself."""
    file = report.project.files[finding.file]
    row, column, end_row, end_column = place(file, finding.at)
    return Spot(str(file.path), row, column, end_row, end_column, note)


def steps(report: Report, finding: LintFinding) -> list[Spot]:
    """The way from source to sink, the finding's own place first; empty when there is none."""
    if not finding.trace:
        return []
    return [spot(report, finding, finding.what), *(_step(report, step) for step in finding.trace)]


def _step(report: Report, step: Step) -> Spot:
    file = report.project.files[step.file]
    row, column, end_row, end_column = place(file, step.at)
    return Spot(str(file.path), row, column, end_row, end_column, step.note)


def story(report: Report, finding: LintFinding, rulebook: Rulebook) -> str:
    """The finding in one paragraph: what, what is lost, what to do."""
    mend = rules.mend(rulebook, finding)
    said = f"{finding.message}. Lost: {finding.lost}."
    return f"{said} {mend}" if mend else said
