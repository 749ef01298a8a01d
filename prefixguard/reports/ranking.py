"""What a session's findings add up to, the dearest first; the same for every format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prefixguard.finding import SEVERITIES, Severity
from prefixguard.turn import Session, Turn


@dataclass(frozen=True, slots=True)
class Ranked:
    """One code in a session (or several).

    turns: how often it was found. tokens: billed again because of it. cost:
    avoidable money, None where no price is known. worst: the turn where it
    cost most, with its session. deliberate: every occurrence was a decision.
    """

    code: str
    name: str
    severity: Severity
    turns: int
    tokens: int
    cost: float | None
    worst: Turn
    session: Session
    deliberate: bool
    estimated: bool


def ranked(sessions: Iterable[Session]) -> list[Ranked]:
    """The codes found in the sessions: by money where it is known, then by tokens, severity and frequency."""
    found: dict[str, list[tuple[Session, Turn]]] = {}
    costs: dict[str, float | None] = {}
    tokens: dict[str, int] = {}
    for session in sessions:
        for turn in session.turns:
            for code in dict.fromkeys(finding.code for finding in turn.findings):
                found.setdefault(code, []).append((session, turn))
        for code, total in session.totals.by_code.items():
            tokens[code] = tokens.get(code, 0) + total.tokens
            if total.cost is not None:
                costs[code] = (costs.get(code) or 0.0) + total.cost
    result = [_ranked(code, places, tokens.get(code, 0), costs.get(code)) for code, places in found.items()]
    result.sort(key=lambda r: (-(r.cost or 0.0), -r.tokens, -SEVERITIES.index(r.severity), -r.turns, r.code))
    return result


def _ranked(code: str, places: list[tuple[Session, Turn]], tokens: int, cost: float | None) -> Ranked:
    own = [
        (finding, session, turn)
        for session, turn in places
        for finding in turn.findings
        if finding.code == code
    ]
    finding, session, worst = max(own, key=lambda o: (o[0].primary, _weight(o[2]), -o[2].index))
    return Ranked(
        code=code,
        name=finding.name,
        severity=max((f.severity for f, _, _ in own), key=SEVERITIES.index),
        turns=len(places),
        tokens=tokens,
        cost=cost,
        worst=worst,
        session=session,
        deliberate=all(f.deliberate for f, _, _ in own),
        estimated=any(not turn.tokens.exact for _, _, turn in own),
    )


def worst_turn(session: Session) -> Turn | None:
    """The turn to look at first: the dearest break that nobody decided on, else any break or finding."""
    told = [turn for turn in session.turns if turn.is_break or turn.findings or turn.note]
    if not told:
        return None
    return max(told, key=lambda turn: (turn.is_fault, turn.is_break, *_weight(turn), -turn.index))


def _weight(turn: Turn) -> tuple[float, int]:
    return (turn.cost.avoidable or 0.0, turn.tokens.rebilled)


def misses(session: Session) -> int:
    """How many turns read less than predicted although nothing had parted."""
    return sum(
        1
        for turn in session.turns
        if not turn.is_break and turn.cache is not None and turn.cache.verdict == "less"
    )
