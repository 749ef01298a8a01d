"""The verdict as SARIF: each fault at the line of code that sent the request, or at its line of the log."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from prefixguard.gate import Fault, Verdict
from prefixguard.reports.sarif import LEVELS, SarifResult, Spot, to_sarif
from prefixguard.reports.verdict import Rows, row_of
from prefixguard.reports.verdict.sentence import story
from prefixguard.rulebook import FindingRule

UNNAMED = "PG000"
"""Stands for a break that no code explains: SARIF asks for one."""


def write(verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """Known faults are there as well, marked as suppressed."""
    results = [
        *[_result(fault, findings, rows, known=False) for fault in verdict.faults],
        *[_result(fault, findings, rows, known=True) for fault in verdict.accepted],
    ]
    logs = [one.name for one in verdict.inputs if one.name in rows]
    return to_sarif(results, findings, artifacts=logs, category="prefixguard-check")


def _result(fault: Fault, findings: Mapping[str, FindingRule], rows: Rows, *, known: bool) -> SarifResult:
    finding, row = fault.finding, row_of(fault, rows)
    name = f"turn {fault.turn.index} of session {fault.session.id} in {fault.input}"
    log = Spot(
        fault.input if row is not None else None, row, logical=name, note="the exchange as it was recorded"
    )
    source = finding.source if finding else None
    spot = Spot(source.filename, source.row, logical=name) if source else log
    key = fault.key
    digest = hashlib.sha256("\0".join((key.code, key.api, key.place)).encode("utf-8", "replace"))
    return SarifResult(
        code=fault.code or UNNAMED,
        level=LEVELS[finding.severity] if finding else "error",
        message=story(fault, findings),
        spot=spot,
        related=[log] if source and row is not None else (),
        fingerprint=digest.hexdigest()[:32],
        known=known,
        properties={
            "turn": fault.turn.index,
            "rebilledTokens": fault.turn.tokens.rebilled,
            "pointer": fault.pointer,
        },
    )
