"""The verdict as `prefixguard-check/1`, for other programs. Field names are a contract, spelled out here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard import __version__
from prefixguard.gate import Fault, Verdict, Violation
from prefixguard.reports.json import encode, finding_to_dict
from prefixguard.reports.verdict import Rows, row_of
from prefixguard.rulebook import FindingRule

SCHEMA = "prefixguard-check/1"


def write(verdict: Verdict, findings: Mapping[str, FindingRule], rows: Rows) -> bytes:
    """One document, indented."""
    del findings  # codes and names are enough for a program
    policy, found = verdict.policy, verdict.figures
    return (
        encode(
            {
                "schema": SCHEMA,
                "version": __version__,
                "holds": verdict.holds,
                "policy": {
                    "max_breaks": policy.max_breaks,
                    "max_rebilled_tokens": policy.max_rebilled_tokens,
                    "min_hit_rate": policy.min_hit_rate,
                    "max_avoidable_usd": policy.max_avoidable_usd,
                    "select": list(policy.select),
                    "ignore": list(policy.ignore),
                },
                "figures": {
                    "inputs": len(verdict.inputs),
                    "sessions": found.sessions,
                    "turns": found.turns,
                    "breaks": found.breaks,
                    "breaks_deliberate": found.deliberate,
                    "faults": len(verdict.faults),
                    "rebilled_tokens": found.rebilled_tokens,
                    "exact": not found.estimated,
                    "hit_rate": found.hit_rate,
                    "avoidable_usd": found.avoidable_usd,
                    "unpriced_turns": found.unpriced_turns,
                },
                "violations": [_violation(violation) for violation in verdict.violations],
                "faults": [
                    *[_fault(fault, rows, known=False) for fault in verdict.faults],
                    *[_fault(fault, rows, known=True) for fault in verdict.accepted],
                ],
                "baseline_unneeded": [
                    {"code": key.code, "api": key.api, "place": key.place, "count": count}
                    for key, count in verdict.unneeded
                ],
            },
            indent=2,
        )
        + b"\n"
    )


def _violation(violation: Violation) -> dict[str, Any]:
    return {
        "limit": violation.limit,
        "allowed": violation.allowed,
        "found": violation.found,
        "message": violation.message,
        "turns": [
            {"input": fault.input, "session": fault.session.id, "turn": fault.turn.index}
            for fault in violation.faults
        ],
    }


def _fault(fault: Fault, rows: Rows, *, known: bool) -> dict[str, Any]:
    turn, divergence = fault.turn, fault.turn.divergence
    return {
        "input": fault.input,
        "row": row_of(fault, rows),
        "session": fault.session.id,
        "turn": turn.index,
        "in_baseline": known,
        "break": turn.is_break,
        "pointer": fault.pointer,
        "finding": fault.finding and finding_to_dict(fault.finding),
        "rebilled_tokens": turn.tokens.rebilled,
        "exact": turn.tokens.exact,
        "avoidable": turn.cost.avoidable,
        "divergence": divergence
        and {
            "against": divergence.against,
            "in": divergence.within,
            "pointer": divergence.pointer,
            "kind": divergence.kind,
            "before": divergence.before,
            "after": divergence.after,
        },
    }
