"""`--statistics`: findings counted by code, the most frequent first."""

from __future__ import annotations

from collections import Counter

from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report
from prefixguard.rulebook import Rulebook


def counted(report: Report, rulebook: Rulebook) -> str:
    """A table: count, code, name, and how many of each severity."""
    codes = Counter(finding.code for finding in report.findings)
    if not codes:
        return f"Found nothing that breaks a prompt's prefix in {report.seen} files."
    lines = []
    for code, count in sorted(codes.items(), key=lambda item: (-item[1], item[0])):
        severities = Counter(f.severity for f in report.findings if f.code == code)
        said = ", ".join(f"{severities[s]} {s}" for s in ("error", "warning", "info") if severities[s])
        lines.append(f"{count:>5}  {code}  {rules.name(rulebook, code):<28} {said}")
    lines.append(f"{sum(codes.values()):>5}  in {report.seen} files, {report.rows} lines")
    return "\n".join(lines)
