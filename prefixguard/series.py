"""Verdicts from usage figures alone, for records that keep no prompts.

A log that holds only what the server reported still shows whether each request
read what the one before it had read and written. Where it did not, the time
between, the model and the sizes say why, or nothing does: then the answer is
"unexplained". Without bodies no divergence can be seen, so nobody is blamed.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.caches.rule import CacheRule
from prefixguard.causes.evidence import Catalogue
from prefixguard.finding import Finding
from prefixguard.turn import Usage, Verdict

_SHRUNK = 0.75
"""A prompt of less than this part of the one before it has lost history, whatever else it gained."""
_SLACK = 1024
"""Tokens at the end of a prompt that a service without breakpoints often leaves unread."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one request of a conversation reported. t: seconds, when it was sent.

    compacted: the record says that the history was summarised right before it.
    """

    t: float
    model: str | None
    usage: Usage
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class SeriesStep:
    """One request beside the one before it.

    expected, least: cached tokens that an append would have read, at most and at least.

    verdict: the report against `expected`; "not-reported" for the first request.
    """

    expected: int
    verdict: Verdict
    finding: Finding | None = None
    least: int = 0


def explain_series(rows: Sequence[Figures], rule: CacheRule, catalogue: Catalogue) -> list[SeriesStep]:
    """A verdict for each request of one conversation, in the order of time."""
    floors: Multiset[int | None] = Multiset(row.usage.read for row in rows if row.usage.read)
    found: list[SeriesStep] = []
    lifetime: int | None = None
    for i, row in enumerate(rows):
        before = rows[i - 1] if i else None
        found.append(_step(before, row, rule, catalogue, lifetime, floors))
        written = [ttl for ttl, tokens in row.usage.write.items() if tokens]
        if written:
            lifetime = max(rule.ttl_seconds(ttl) or 0 for ttl in written) or None
    return found


def _step(
    before: Figures | None, row: Figures, rule: CacheRule, catalogue: Catalogue, lifetime: int | None,
    floors: Multiset[int | None],
) -> SeriesStep:  # fmt: skip
    if before is None or row.usage.read is None or before.usage.read is None:
        return SeriesStep(0, "not-reported")
    expected, least = _expected(before.usage, rule)
    read = row.usage.read
    if least <= read <= expected:
        return SeriesStep(expected, "as-predicted", least=least)
    if read > expected:
        return SeriesStep(expected, "more", least=least)
    return SeriesStep(expected, "less", _why(before, row, rule, catalogue, lifetime, floors), least)


def _expected(usage: Usage, rule: CacheRule) -> tuple[int, int]:
    """(most, least) tokens that a pure append reads: exactly what was kept, or whole blocks of the prompt."""
    if rule.kind == "breakpoint":
        kept = (usage.read or 0) + sum(usage.write.values())
        return kept, kept
    # The reply is a part of the next prompt, so a hit may reach beyond the prompt itself.
    most = usage.total + (usage.output or 0) + rule.grain
    return most, max(0, usage.total - _SLACK) // rule.grain * rule.grain


def _why(
    before: Figures, row: Figures, rule: CacheRule, catalogue: Catalogue, lifetime: int | None,
    floors: Multiset[int | None],
) -> Finding:  # fmt: skip
    gap, read = row.t - before.t, row.usage.read or 0
    _, least = _expected(before.usage, rule)
    if row.model != before.model:
        return catalogue.finding(
            "PG405", f"another model than the request before: {before.model} → {row.model}",
            evidence=f"its own entry of {read:,} tokens was read" if read else "nothing was cached for it",
            severity="info",
        )  # fmt: skip
    if row.compacted or row.usage.total < _SHRUNK * before.usage.total:
        return catalogue.finding(
            "PG303",
            f"history was replaced: the prompt fell from {before.usage.total:,} to {row.usage.total:,}",
            evidence=f"the first {read:,} tokens were read"
            + ("; the record says that the client compacted its history" if row.compacted else ""),
            confidence="high" if row.compacted else "medium", severity="info",
        )  # fmt: skip
    limit = lifetime if lifetime is not None else rule.idle
    if limit is not None and gap > limit:
        return catalogue.finding(
            "PG601", f"the entry had expired: {gap:,.0f} s passed, it lives {limit:,} s", by="time",
            severity="warning" if lifetime is not None else "info",
            confidence="high" if lifetime is not None else "medium",
        )  # fmt: skip
    floor = f"; {read:,} tokens at the start were read, as after other misses" if floors[read] > 1 else ""
    return catalogue.finding(
        "PG804",
        f"{read:,} tokens were read after {gap:,.0f} s, an append reads {least:,}{floor}",
        evidence="without bodies nobody can tell a changed history from a lost entry",
        severity="info", by="server", confidence="low",
    )  # fmt: skip
