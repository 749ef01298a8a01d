"""Time as a function of tokens: t = a + b n + c n^2, from what one machine took for one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

LEAST_POINTS = 4
"""Fewer can be met by any curve, and say nothing."""
LEAST_SPREAD = 2.0
"""How many times what the shortest prompt evaluates the longest must: else the curve's begin is a guess."""


@dataclass(frozen=True, slots=True)
class Point:
    """One prompt: all its tokens, those of them that were read from the cache, and milliseconds."""

    tokens: int
    cached: int
    ms: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Milliseconds for n tokens: a + b n + c n^2; none of the three is below 0.

    points: how many it rests on. off: the largest deviation of a point, as a
    share of its time.
    """

    a: float
    b: float
    c: float
    points: int
    off: float

    def between(self, cached: int, tokens: int) -> float:
        """Milliseconds to evaluate what lies between two lengths of one prompt: t(tokens) - t(cached)."""
        return self.b * (tokens - cached) + self.c * (tokens * tokens - cached * cached)


def fit_points(points: Sequence[Point]) -> Fit | None:
    """The least squares of the relative deviations, no coefficient below 0.

    None for fewer than 4 different prompts, for prompts of nearly one size, and
    when the times do not grow with them.

    A prompt of which a part was cached still attends to that part: it counts
    as t(tokens) - t(cached). Prompts of the same size count once each, but are
    no further support. A curvature that the times do not show is 0, not
    negative: of all choices of terms the one that fits best and has no
    negative term is taken.
    """
    usable = [point for point in points if point.ms > 0 and point.tokens > point.cached]
    if len({(point.tokens, point.cached) for point in usable}) < LEAST_POINTS:
        return None
    evaluated = [point.tokens - point.cached for point in usable]
    if max(evaluated) < LEAST_SPREAD * min(evaluated):
        return None
    rows = [(1.0, float(p.tokens - p.cached), float(p.tokens**2 - p.cached**2), p.ms) for p in usable]
    best: tuple[float, list[float]] | None = None
    for count in (1, 2, 3):
        for terms in combinations(range(3), count):
            found = _solve(rows, terms)
            if found is None or min(found) < 0:
                continue
            size = sum(((_value(row, found) - row[3]) / row[3]) ** 2 for row in rows)
            if best is None or size < best[0] * (1 - 1e-9):
                best = size, found
    if best is None or not (best[1][1] or best[1][2]):
        return None  # times that do not grow with the prompt are noise
    a, b, c = best[1]
    off = max(abs(_value(row, best[1]) - row[3]) / row[3] for row in rows)
    return Fit(a, b, c, len(usable), off)


type _Row = tuple[float, float, float, float]


def _value(row: _Row, factors: Sequence[float]) -> float:
    return sum(factor * term for factor, term in zip(factors, row, strict=False))


def _solve(rows: Sequence[_Row], terms: Sequence[int]) -> list[float] | None:
    """Normal equations for the chosen terms, each row divided by its time; None when they do not tell."""
    scaled = [[row[t] / row[3] for t in terms] for row in rows]
    # Terms differ by orders of magnitude, n against n^2: on one scale the elimination keeps its digits.
    scale = [max(abs(row[i]) for row in scaled) or 1.0 for i in range(len(terms))]
    scaled = [[value / scale[i] for i, value in enumerate(row)] for row in scaled]
    size = len(terms)
    matrix = [
        [sum(row[i] * row[j] for row in scaled) for j in range(size)] + [sum(row[i] for row in scaled)]
        for i in range(size)
    ]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) < 1e-9:
            return None
        for k in range(size):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [x - factor * y for x, y in zip(matrix[k], matrix[i], strict=True)]
    answer = [0.0, 0.0, 0.0]
    for i, term in enumerate(terms):
        answer[term] = matrix[i][size] / matrix[i][i] / scale[i]
    return answer
