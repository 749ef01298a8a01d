"""The verdict as JUnit's XML: a suite per input with a case per turn, and one with the policy's limits."""

from __future__ import annotations

from collections.abc import Mapping

from prefixguard.gate import Fault, Verdict
from prefixguard.reports.junit import Case, Suite, to_junit
from prefixguard.reports.verdict import Rows, row_of
from prefixguard.reports.verdict.sentence import headline, story
from prefixguard.rulebook import FindingRule


def write(verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """A case fails when its turn is part of a broken limit; what the policy allows does not."""
    failed = {id(fault.turn): fault for violation in verdict.violations for fault in violation.faults}
    known = {id(fault.turn) for fault in verdict.accepted}
    suites = [Suite("policy", _limits(verdict))]
    for one in verdict.inputs:
        cases = []
        for session in one.analysis.sessions:
            for turn in session.turns:
                fault = failed.get(id(turn))
                place = fault or Fault(one.name, session, turn, None)
                row = row_of(place, rows)
                cases.append(
                    Case(
                        f"turn {turn.index}",
                        f"{one.name}.{session.id}",
                        failure=(headline(fault), story(fault, findings)) if fault else None,
                        skipped="accepted by the baseline" if id(turn) in known else None,
                        filename=one.name if row is not None else None,
                        row=row,
                    )
                )
        suites.append(Suite(one.name, cases))
    return to_junit(suites)


def _limits(verdict: Verdict) -> list[Case]:
    broken = {violation.limit: violation.message for violation in verdict.violations}
    return [
        Case(name, "prefixguard.policy", failure=(broken[name], broken[name]) if name in broken else None)
        for name, value in verdict.policy.limits
        if value is not None
    ]
