"""Sums over the turns of a session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from prefixguard.costs import sum_costs
from prefixguard.turn import CodeTotal, Totals, Turn


def totals(turns: Sequence[Turn]) -> Totals:
    """Turns, breaks, tokens, money, and what each code cost. The hit rate is over reported turns only."""
    reported = [t.usage for t in turns if t.usage is not None and t.usage.read is not None]
    prompt = sum(u.total for u in reported)
    breaks = [t for t in turns if t.is_break]
    billed = [t.cost for t in turns if t.status is None or t.status < 400]
    return Totals(
        turns=len(turns),
        breaks=len(breaks),
        breaks_deliberate=sum(1 for t in breaks if not t.is_fault),
        rebilled_tokens=sum(t.tokens.rebilled for t in breaks),
        hit_rate=sum(u.read or 0 for u in reported) / prompt if prompt else None,
        cost=sum_costs(billed),
        by_code=_by_code(turns),
    )


def _by_code(turns: Sequence[Turn]) -> dict[str, CodeTotal]:
    codes: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        for code in {f.code for f in turn.findings}:
            codes[code].append(turn)
    found = {}
    for code in sorted(codes):
        mine = [
            t for t in codes[code] if t.is_break and any(f.code == code and f.primary for f in t.findings)
        ]
        money = [t.cost.avoidable for t in mine if t.cost.avoidable is not None]
        tokens = sum(t.tokens.rebilled for t in mine)
        found[code] = CodeTotal(len(codes[code]), tokens, sum(money) if money else None)
    return found
