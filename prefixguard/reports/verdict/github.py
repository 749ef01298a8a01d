"""The verdict as GitHub's workflow commands: remarks beside the code, else beside the log."""

from __future__ import annotations

from collections.abc import Mapping

from prefixguard.gate import Fault, Verdict
from prefixguard.reports.annotations import annotation
from prefixguard.reports.verdict import Rows, row_of
from prefixguard.reports.verdict.causes import summary
from prefixguard.reports.verdict.sentence import story
from prefixguard.rulebook import FindingRule

_REACH = 60


def write(verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """An error for each turn and limit that breaks the policy; a warning for a fault that it allows."""
    fatal = {id(fault.turn) for violation in verdict.violations for fault in violation.faults}
    lines = [_remark(fault, findings, rows, fatal=id(fault.turn) in fatal) for fault in verdict.faults]
    broken = "prefixguard: the policy is broken"
    lines += [annotation("error", f"{v.limit}: {v.message}", title=broken) for v in verdict.violations]
    lines.append(
        ("The policy holds: " if verdict.holds else "The policy is broken: ") + summary(verdict) + "."
    )
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _remark(fault: Fault, findings: Mapping[str, FindingRule], rows: Rows, *, fatal: bool) -> str:
    source = fault.finding.source if fault.finding else None
    row = row_of(fault, rows)
    title = f"prefixguard {fault.code}".strip() + f", turn {fault.turn.index}"
    filename = source.filename if source else fault.input if row is not None else None
    return annotation(
        "error" if fatal else "warning",
        story(fault, findings, reach=_REACH),
        title=title if filename is None or source is None else f"{title} of {fault.input}",
        filename=filename,
        row=source.row if source else row,
    )
