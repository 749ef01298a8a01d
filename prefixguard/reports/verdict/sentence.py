"""A fault in words: one line, and the whole story in plain text, for formats without a layout."""

from __future__ import annotations

from collections.abc import Mapping

from prefixguard.gate import Fault
from prefixguard.reports.advice import advice
from prefixguard.reports.verdict.causes import UNNAMED, price
from prefixguard.reports.visible import one_line, safe, windows
from prefixguard.rulebook import FindingRule


def headline(fault: Fault) -> str:
    """`PG101 clock-in-prefix at /system/0/text: a time of day differs`."""
    finding = fault.finding
    title = f"{finding.code} {finding.name}" if finding else UNNAMED
    place = f" at {fault.pointer}" if fault.pointer else ""
    said = f": {finding.message}" if finding and finding.message else ""
    return one_line(title + place + said)


def story(fault: Fault, findings: Mapping[str, FindingRule], *, reach: int | None = None) -> str:
    """The headline, what it cost, the texts around the divergence, the line of code, and what to do.

    reach: as in `visible.windows`: the texts on one line each, cut to so many characters.
    """
    lines = [headline(fault)]
    costs = price([fault])
    if costs:
        lines.append(costs)
    finding, divergence = fault.finding, fault.turn.divergence
    if divergence is not None and (finding is None or finding.primary):
        pairs = zip(("before", "after "), windows(divergence, reach=reach), strict=True)
        lines += [f"{label} {window.plain}" for label, window in pairs if window is not None]
    if finding is not None and finding.evidence:
        lines.append(f"evidence: {safe(finding.evidence)}")
    if finding is not None and finding.source is not None:
        lines.append(f"sent by {one_line(finding.source.filename)}:{finding.source.row}")
    rule = findings.get(fault.code)
    if rule is not None:
        general, special = advice(rule, fault.turn)
        lines.append(f"To do: {special or general}")
    return "\n".join(lines)
