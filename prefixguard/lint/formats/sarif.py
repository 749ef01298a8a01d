"""SARIF 2.1.0 for code scanning: code flows from source to sink, fingerprints that outlive moved lines."""

from __future__ import annotations

import os

from prefixguard.finding import SEVERITIES
from prefixguard.lint.baseline import fingerprint
from prefixguard.lint.fixes import fix_of
from prefixguard.lint.formats import places
from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report, in_characters
from prefixguard.lint.trade import trade
from prefixguard.lint.verdict import LintFinding
from prefixguard.reports.sarif import LEVELS, Replacement, SarifResult, Spot, to_sarif
from prefixguard.rulebook import Rulebook

MOST_RESULTS = 5000
"""Code scanning shows no more results of one run: the most severe are kept."""


def printed(report: Report, rulebook: Rulebook) -> str:
    """The whole report as one SARIF log."""
    kept = sorted(report.findings, key=lambda finding: -SEVERITIES.index(finding.severity))[:MOST_RESULTS]
    chosen = {id(finding) for finding in kept}
    results = [_result(report, finding, rulebook) for finding in report.findings if id(finding) in chosen]
    problems = [f"{os.path.relpath(p.path)}:{p.row}:{p.column}: {p.message}" for p in report.problems]
    written = to_sarif(
        results,
        rulebook.findings,
        problems=problems,
        help_uri=rules.url("{code}"),
        category="prefixguard-lint",
    )
    return written.decode().rstrip("\n")


def _message(rulebook: Rulebook, finding: LintFinding) -> str:
    both = trade(rulebook, finding.code, finding.api) if finding.position == "history" else None
    said = f"{finding.message}. Lost: {finding.lost}."
    return f"{said} Trimming against keeping: {both.text}" if both is not None else said


def _result(report: Report, finding: LintFinding, rulebook: Rulebook) -> SarifResult:
    return SarifResult(
        code=finding.code,
        level=LEVELS[finding.severity],
        message=_message(rulebook, finding),
        spot=places.spot(report, finding),
        trace=places.steps(report, finding),
        fingerprint=fingerprint(report, finding),
        properties={
            "lifetime": finding.lifetime,
            "position": finding.position,
            "confidence": finding.confidence,
            "deliberate": finding.deliberate,
        },
        fix=_fix(report, finding),
    )


def _fix(report: Report, finding: LintFinding) -> tuple[str, list[Replacement]] | None:
    fix = fix_of(report.project, finding)
    if fix is None:
        return None
    file = report.project.files[finding.file]
    replacements = []
    for row, column, text in fix.insertions:
        at = in_characters(file.line(row), column)
        replacements.append(Replacement(Spot(str(file.path), row, at, row, at), text))
    return fix.message, replacements
