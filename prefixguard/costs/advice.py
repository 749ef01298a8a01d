"""Advice that shows its sum: would another lifetime pay, does this pruning pay.

Pure arithmetic over what a session did. Amounts are US dollars, tokens are
whole prompts of one model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.costs.rates import Rates

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Advice:
    """Whether a change pays, and the arithmetic behind the answer.

    saved: what it saves, in US dollars, less what it costs; negative when it
    does not pay. text: the sum, in full sentences.
    """

    pays: bool
    saved: float
    text: str


def seconds_of(ttl: str) -> int:
    """A lifetime such as "5m" or "12h" in seconds. Raises ValueError for anything else."""
    match = re.fullmatch(r"(\d+)([smhd])", ttl)
    if match is None:
        raise ValueError(f"{ttl!r} is no lifetime: write it like 5m or 1h")
    return int(match[1]) * _SECONDS[match[2]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a session pays for its cached part with one lifetime."""

    ttl: str
    written: int
    read: int
    rewrites: int
    cost: float
    sums: str


def _plan(gaps: Sequence[float], prefixes: Sequence[int], rates: Rates, ttl: str) -> _Plan:
    written, read, rewrites, cost = 0, 0, 0, 0.0
    lifetime = seconds_of(ttl)
    for index, prefix in enumerate(prefixes):
        expired = index == 0 or gaps[index - 1] > lifetime
        kept = 0 if expired else min(prefix, prefixes[index - 1])
        rewrites += expired and index > 0
        written += prefix - kept
        read += kept
        # Per request, because a long prompt costs more per token.
        cost += ((prefix - kept) * rates.write_at(ttl, prefix)[0] + kept * rates.read_at(prefix)) / 1e6
    sums = f"{ttl}: {written:,} tokens written, {read:,} read = ${cost:.4f}"
    return _Plan(ttl, written, read, rewrites, cost, sums)


def lifetime_advice(
    gaps: Sequence[float], prefixes: Sequence[int], rates: Rates, *, now: str = "5m", instead: str = "1h"
) -> Advice:
    """Would a longer (or shorter) lifetime have paid in this thread?

    prefixes: cached tokens behind the last breakpoint of each turn, in order.
    gaps: seconds between the starts of neighbouring turns, one fewer than
    turns. A read renews an entry; after a longer gap everything is written
    again. Raises ValueError when the lengths do not fit.
    """
    if not prefixes or len(gaps) != len(prefixes) - 1:
        raise ValueError(
            f"{len(prefixes)} turns have {max(0, len(prefixes) - 1)} gaps between them, not {len(gaps)}"
        )
    one, other = _plan(gaps, prefixes, rates, now), _plan(gaps, prefixes, rates, instead)
    saved = one.cost - other.cost
    largest = max(prefixes)
    prices = (
        f"writing a million tokens costs ${rates.write_at(now, largest)[0]:g} for {now} and "
        f"${rates.write_at(instead, largest)[0]:g} for {instead}, reading them ${rates.read_at(largest):g}"
    )
    rewrites = f"{now} expired {one.rewrites} times between turns, {instead} {other.rewrites} times"
    verdict = f"{instead} saves ${saved:.4f}" if saved > 0 else f"{instead} costs ${-saved:.4f} more"
    return Advice(
        pays=saved > 0,
        saved=saved,
        text=f"{one.sums}. {other.sums}. {rewrites}; {prices}. "
        f"So {verdict} over these {len(prefixes)} turns.",
    )


def pruning_advice(
    freed: int, rebilled: int, remaining_turns: int, rates: Rates, *, prompt: int, ttl: str | None = None
) -> Advice:
    """Did taking tokens out of the history pay?

    freed: tokens taken out; each later turn would have read them from the
    cache. rebilled: cached tokens behind the cut, which are paid for once
    more at the price of writing (with `ttl`) or of uncached tokens, instead
    of being read. remaining_turns: this turn and those after it. prompt: the
    size of the prompt, for prices that go by it.
    """
    read = rates.read_at(prompt)
    again = rates.uncached.at(prompt) if ttl is None else rates.write_at(ttl, prompt)[0]
    saved = freed * remaining_turns * read / 1e6
    spent = rebilled * (again - read) / 1e6
    how = "uncached" if ttl is None else f"written for {ttl}"
    sums = (
        f"Freed: {freed:,} tokens x {remaining_turns} turns x ${read:g} = ${saved:.4f}. "
        f"Paid again: {rebilled:,} tokens x (${again:g} {how} - ${read:g} read) = ${spent:.4f}."
    )
    if freed <= 0 or read <= 0:
        even = "It can never pay." if spent > 0 else "It costs nothing."
    else:
        even = f"It pays from {spent * 1e6 // (freed * read) + 1:.0f} turns on."
    return Advice(pays=saved > spent, saved=saved - spent, text=f"{sums} {even}")
