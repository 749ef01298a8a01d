"""JUnit's XML: each file with findings is a suite, each finding a failed case; remarks are skipped."""

from __future__ import annotations

from prefixguard.lint.formats import places
from prefixguard.lint.formats import rule as rules
from prefixguard.lint.run import Report
from prefixguard.lint.verdict import LintFinding
from prefixguard.reports.junit import Case, Suite, to_junit
from prefixguard.rulebook import Rulebook


def printed(report: Report, rulebook: Rulebook) -> str:
    """The whole report; one passed case when there is nothing to say, because servers want at least one."""
    by_file: dict[str, list[Case]] = {}
    for finding in report.findings:
        case = _case(report, finding, rulebook)
        by_file.setdefault(case.filename or "", []).append(case)
    for problem in report.problems:
        said = (problem.message, f"{problem.path}:{problem.row}:{problem.column}: {problem.message}")
        by_file.setdefault(str(problem.path), []).append(
            Case("analysed", "prefixguard.lint", error=said, filename=str(problem.path), row=problem.row)
        )
    suites = [Suite(name, cases) for name, cases in by_file.items()]
    if not suites:
        suites = [Suite("prefixguard lint", [Case("no findings", "prefixguard.lint")])]
    return to_junit(suites).decode().rstrip("\n")


def _case(report: Report, finding: LintFinding, rulebook: Rulebook) -> Case:
    spot = places.spot(report, finding)
    name = f"{finding.code} {rules.name(rulebook, finding.code)} line {spot.row}"
    way = "\n".join(f"{s.filename}:{s.row}: {s.note}" for s in places.steps(report, finding))
    told = places.story(report, finding, rulebook) + ("\n" + way if way else "")
    loud = finding.severity != "info"
    return Case(
        name,
        "prefixguard.lint",
        failure=(finding.message, told) if loud else None,
        skipped=None if loud else finding.message,
        filename=spot.filename,
        row=spot.row,
    )
