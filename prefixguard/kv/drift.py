"""How far a model's answers move when keys and values are kept in fewer bits: distributions in, figures out.

`engines.kv_types` asks a server for the distributions; `reports.kv_types` prints what comes of them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

_ROUNDING = 0.0101
"""MiB: two figures of two decimals, each off by half of the last one at most."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """What may follow at one position: token ids, the likeliest first, and their natural logarithms.

    The ids may be all of the vocabulary or its likeliest part.
    """

    ids: array[int]
    logs: array[float]


@dataclass(frozen=True, slots=True)
class Drift:
    """How far distributions stand from those of a reference, over the same text.

    each: the Kullback-Leibler divergence of every position in nats, reference
    first. same_first: share of the positions whose likeliest token is the same.
    covered: the mean probability of the tokens that both sides named; the rest
    counts as one token, so that a divergence is never overstated by it.
    """

    each: tuple[float, ...]
    same_first: float
    covered: float

    @property
    def mean(self) -> float:
        """The mean divergence in nats."""
        return fmean(self.each)

    @property
    def median(self) -> float:
        """The median divergence in nats."""
        return median(self.each)

    @property
    def p99(self) -> float:
        """The divergence that 99 of 100 positions do not exceed, by nearest rank."""
        return sorted(self.each)[math.ceil(0.99 * len(self.each)) - 1]

    @property
    def largest(self) -> float:
        """The largest divergence in nats."""
        return max(self.each)


def drift(reference: Sequence[Distribution], others: Sequence[Distribution]) -> Drift:
    """The drift of `others` from `reference`, position by position.

    Raises ValueError for none, or for unequal numbers of them.
    """
    if not reference:
        raise ValueError("no positions to compare")
    pairs = list(zip(reference, others, strict=True))
    found = [_divergence(one, other) for one, other in pairs]
    same = sum(one.ids[0] == other.ids[0] for one, other in pairs)
    return Drift(tuple(value for value, _ in found), same / len(pairs), fmean(share for _, share in found))


def _divergence(reference: Distribution, other: Distribution) -> tuple[float, float]:
    """(divergence in nats, probability of what both sides named)."""
    theirs = dict(zip(other.ids, other.logs, strict=True))
    total, mine, given = 0.0, 0.0, 0.0
    for token, log in zip(reference.ids, reference.logs, strict=True):
        against = theirs.get(token)
        if against is None:
            continue
        share = math.exp(log)
        mine += share
        given += math.exp(against)
        total += share * (log - against)
    if not mine or not given:
        return math.inf, 0.0
    rest, their_rest = 1 - mine, 1 - given
    if rest > 0 and their_rest > 0:
        return max(0.0, total + rest * math.log(rest / their_rest)), mine
    # A server adds single-precision numbers: all of a vocabulary may come to a little over 1. Both sides
    # are then scaled to 1 over what both named.
    return max(0.0, total / mine - math.log(mine / given)), min(mine, 1.0)


def first_difference(reference: Sequence[int], other: Sequence[int]) -> int | None:
    """The first token at which two replies part, from 0; None when they are the same."""
    for place, (one, two) in enumerate(zip(reference, other, strict=False)):
        if one != two:
            return place
    return None if len(reference) == len(other) else min(len(reference), len(other))


@dataclass(frozen=True, slots=True)
class Kept:
    """A pair of formats, tried on a server.

    key, value: as the server's options name them. key_mib, value_mib: the
    buffers as its log gives them, to a hundredth of a MiB; None where it showed
    none. computed: bytes of both together by `kv`, None where it does not know
    the model. parted: the first token at which each greedy reply leaves the
    reference, None where it never does. drift: None for the reference itself.
    problem: why nothing was measured, else "".
    """

    key: str
    value: str
    key_mib: float | None = None
    value_mib: float | None = None
    computed: int | None = None
    parted: tuple[int | None, ...] = ()
    drift: Drift | None = None
    problem: str = ""

    @property
    def mib(self) -> float | None:
        """Both buffers as logged."""
        if self.key_mib is None or self.value_mib is None:
            return None
        return self.key_mib + self.value_mib

    @property
    def as_computed(self) -> bool | None:
        """Whether log and computation agree, as far as two decimals tell; None where one is missing."""
        if self.mib is None or self.computed is None:
            return None
        return abs(self.mib - self.computed / (1 << 20)) <= _ROUNDING


@dataclass(frozen=True, slots=True)
class Comparison:
    """One format on keys alone and on values alone. worse_keys: positions where keys drift further."""

    format: str
    keys: Drift
    values: Drift
    worse_keys: int

    @property
    def positions(self) -> int:
        """How many positions were compared."""
        return len(self.keys.each)


@dataclass(frozen=True, slots=True)
class FormatTrial:
    """Formats tried on one server with the same prompts.

    rounding: the reference again with another kernel for attention: what
    rounding alone does to this model on this machine, the least that any change
    comes to. None where the server has no other kernel for it. tokens: of each
    prompt; replies: of each reply. named: how many tokens the server named at
    each position.
    """

    engine: str
    model: str
    program: str
    context: int
    reference: Kept
    tried: tuple[Kept, ...]
    tokens: tuple[int, ...]
    replies: tuple[int, ...]
    named: int
    rounding: Drift | None = None
    notes: tuple[str, ...] = ()

    def comparisons(self) -> tuple[Comparison, ...]:
        """Keys against values, for every format that was tried on both."""
        whole = self.reference.key
        by_pair = {(kept.key, kept.value): kept.drift for kept in self.tried}
        found = []
        for name in dict.fromkeys(kept.key for kept in self.tried if kept.key != whole):
            keys, values = by_pair.get((name, whole)), by_pair.get((whole, name))
            if keys is not None and values is not None:
                worse = sum(a > b for a, b in zip(keys.each, values.each, strict=True))
                found.append(Comparison(name, keys, values, worse))
        return tuple(found)
