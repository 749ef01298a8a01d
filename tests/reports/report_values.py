"""Turns and sessions made by hand, as the analysis would hand them over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prefixguard.exchange import Timing
from prefixguard.finding import Finding
from prefixguard.turn import (
    Analysis,
    CacheOutcome,
    CodeTotal,
    Cost,
    Divergence,
    Prices,
    Session,
    Tokens,
    Totals,
    Turn,
    Usage,
)

APPEND = Turn(
    index=0,
    t=0.0,
    status=200,
    upstream="https://api.example.com",
    domain="api.example.com",
    session="s-1",
    thread=0,
    parent=None,
    donor=None,
    shape="append",
    api="openai-chat",
    model="gpt-5.1",
    divergence=None,
    findings=(),
    is_break=False,
    tokens=Tokens(2079, 2079, 0, 0, "tiktoken:o200k_base", exact=False),
    usage=Usage(uncached=105, read=1974, output=40),
    cache=CacheOutcome("openai", "host", True, 1920, 2048, 1974, "as-predicted"),
    timing=Timing(600.0, 1500.0),
    cost=Cost("USD", 0.0012, 0.0030, 0.0012, 0.0),
)
CLOCK = Finding(
    code="PG101",
    name="clock-in-prefix",
    message="a time of day differs",
    evidence="14:02:07 -> 14:02:13",
    pointer="/messages/0/content",
    severity="error",
    primary=True,
    recurrence="every-request",
)
BREAK = replace(
    APPEND,
    shape="changed",
    divergence=Divergence(
        against=0,
        within="turn",
        pointer="/messages/0/content",
        kind="changed",
        certainty="certain",
        char_offset=35,
        token_offset=12,
        before="You are a helpful agent. It is 14:02:07. Answer in one paragraph.",
        after="You are a helpful agent. It is 14:02:13. Answer in one paragraph.",
        before_at=37,
        after_at=37,
        group="head",
    ),
    findings=(CLOCK,),
    is_break=True,
    tokens=Tokens(2079, 12, 2066, 2053, "tiktoken:o200k_base", exact=False),
    usage=Usage(uncached=2079, read=0, output=40),
    cache=CacheOutcome("openai", "host", True, 0, 0, 0, "as-predicted"),
    timing=Timing(3100.0, 4000.0),
    cost=Cost("USD", 0.0030, 0.0030, 0.0012, 0.0018, estimated=True),
)
PRICES = Prices("genai-prices", "0.2.3", "2026-11-20")


def turn(kind: Turn = APPEND, **changes: Any) -> Turn:
    """A turn like `kind` with some fields changed."""
    return replace(kind, **changes)


def session(turns: Sequence[Turn], name: str = "s-1") -> Session:
    """A session of these turns, numbered and timed, with sums that fit."""
    turns = tuple(
        replace(t, index=i, t=60.0 * i + 1.8e9, parent=i - 1 if i else None, shape=t.shape if i else "first")
        for i, t in enumerate(turns)
    )
    breaks = [t for t in turns if t.is_break]
    by_code: dict[str, CodeTotal] = {}
    for t in breaks:
        for f in t.findings:
            if f.primary:
                old = by_code.get(f.code, CodeTotal(0, 0, None))
                cost = t.cost.avoidable if old.cost is None else old.cost + (t.cost.avoidable or 0.0)
                by_code[f.code] = CodeTotal(old.turns + 1, old.tokens + t.tokens.rebilled, cost)
    usages = [t.usage for t in turns if t.usage is not None and t.usage.read is not None]
    total = sum(u.total for u in usages)

    def summed(name: str) -> float | None:
        amounts = [getattr(t.cost, name) for t in turns]
        return None if None in amounts else sum(amounts)

    return Session(
        id=name,
        key_kind="header",
        key_name="x-session-id",
        turns=turns,
        totals=Totals(
            turns=len(turns),
            breaks=len(breaks),
            breaks_deliberate=sum(not t.is_fault for t in breaks),
            rebilled_tokens=sum(t.tokens.rebilled for t in breaks),
            hit_rate=sum(u.read or 0 for u in usages) / total if total else None,
            cost=Cost(
                "USD",
                summed("actual"),
                summed("uncached"),
                summed("ideal"),
                summed("avoidable"),
                any(t.cost.estimated for t in turns),
            ),
            by_code=by_code,
        ),
    )


def analysis(*sessions: Session) -> Analysis:
    """An analysis of these sessions."""
    return Analysis("0.1.0", PRICES, sessions)
