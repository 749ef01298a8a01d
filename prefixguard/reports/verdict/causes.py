"""Faults by their cause, the dearest first: what every format for people shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prefixguard.finding import Severity
from prefixguard.gate import Fault, Verdict
from prefixguard.reports import figures

UNNAMED = "a break whose cause has no name"


@dataclass(frozen=True, slots=True)
class Cause:
    """All faults with one code. worst: the one that sent most tokens again."""

    code: str
    name: str
    severity: Severity
    faults: tuple[Fault, ...]
    worst: Fault

    @property
    def title(self) -> str:
        """`PG101 clock-in-prefix`."""
        return f"{self.code} {self.name}".strip()


def by_cause(faults: Iterable[Fault]) -> list[Cause]:
    """The causes of these faults."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.code, []).append(fault)
    causes = []
    for code, mine in found.items():
        worst = max(mine, key=lambda fault: fault.turn.tokens.rebilled)
        finding = worst.finding
        name, severity = (finding.name, finding.severity) if finding else (UNNAMED, "error")
        causes.append(Cause(code, name, severity, tuple(mine), worst))
    return sorted(causes, key=lambda c: (-sum(f.turn.tokens.rebilled for f in c.faults), c.code))


def places(faults: Iterable[Fault], *, several: bool, most: int) -> list[str]:
    """`turns 1, 2 and 3 (agent.py:27)`: turns by input (named where there are several) and line of code.

    most: how many turns are named of one input and line, and how many such groups.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for fault in faults:
        source = fault.finding.source if fault.finding else None
        line = f" ({source.filename}:{source.row})" if source else ""
        found.setdefault((fault.input if several else "", line), []).append(fault.turn.index)
    groups = []
    for (name, line), turns in found.items():
        shown = ", ".join(str(turn) for turn in turns[:most])
        more = f" and {len(turns) - most:,} more" if len(turns) > most else ""
        groups.append(f"{name} turn{'' if len(turns) == 1 else 's'} {shown}{more}{line}".strip())
    if len(groups) > most:
        groups[most:] = [f"{len(groups) - most:,} more places"]
    return groups


def price(faults: Iterable[Fault]) -> str:
    """`1.2k tokens re-billed, $0.0034 avoidable`; "" where they cost nothing."""
    faults = tuple(faults)
    tokens = sum(f.turn.tokens.rebilled for f in faults)
    parts = []
    if tokens:
        estimated = any(not f.turn.tokens.exact for f in faults)
        parts.append(f"{figures.tokens(tokens, estimated=estimated)} tokens re-billed")
    costs = [f.turn.cost for f in faults if f.turn.cost.avoidable]
    if costs:
        money = sum(cost.avoidable or 0.0 for cost in costs)
        dearest = max(costs, key=lambda cost: cost.estimated)
        parts.append(f"{figures.money(money, dearest)} avoidable")
    return ", ".join(parts)


def summary(verdict: Verdict) -> str:
    """What was looked at and what was found, in one line."""
    found = verdict.figures
    breaks = figures.plural(len(verdict.faults), "fault") if verdict.faults else "no fault"
    text = f"{breaks} in {figures.plural(found.turns, 'turn')} of {figures.plural(found.sessions, 'session')}"
    beside = []
    if found.deliberate:
        beside.append(f"{figures.plural(found.deliberate, 'break')} by decision")
    if verdict.accepted:
        beside.append(f"{len(verdict.accepted):,} in the baseline")
    if found.hit_rate is not None:
        beside.append(f"hit rate {figures.percent(found.hit_rate)}")
    return "; ".join([text, *beside])
