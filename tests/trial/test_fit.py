"""The fit of times: it finds the curve that made them, and never one that no machine could have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.trial import Point, fit_points


def times(a: float, b: float, c: float, prompts: list[tuple[int, int]]) -> list[Point]:
    return [Point(n, p, a + b * (n - p) + c * (n * n - p * p)) for n, p in prompts]


COLD = [(256, 0), (512, 0), (1024, 0), (2048, 0), (3072, 0)]
WARM = [(4000, 3900), (2000, 1000), (900, 0), (1800, 100), (700, 650)]


@pytest.mark.parametrize("prompts", [COLD, WARM], ids=["cold", "warm"])
@pytest.mark.parametrize(("a", "b", "c"), [(27, 1.66, 0.0018), (5, 0.3, 0), (0, 0, 0.002), (40, 2, 1e-5)])
def test_finds_the_curve(a: float, b: float, c: float, prompts: list[tuple[int, int]]) -> None:
    fit = fit_points(times(a, b, c, prompts))
    assert fit is not None
    assert fit.off < 1e-4
    assert (fit.a, fit.b, fit.c) == pytest.approx((a, b, c), rel=1e-3, abs=1e-5)
    # What stands behind a changed token costs the difference of two lengths.
    assert fit.between(100, 1000) == pytest.approx(b * 900 + c * (1000**2 - 100**2), rel=1e-3)


def test_a_measured_model_keeps_its_five_points() -> None:
    """SmolLM2 on one thread: processor time of 256 to 3072 tokens."""
    fit = fit_points([Point(n, 0, ms) for n, ms in
                      ((256, 570), (512, 1340), (1024, 3710), (2048, 10470), (3072, 22780))])  # fmt: skip
    assert fit is not None
    assert fit.off < 0.06
    assert fit.b == pytest.approx(1.7, rel=0.1)
    assert fit.c == pytest.approx(0.0018, rel=0.05)


def test_curvature_that_is_not_there_is_nothing_rather_than_negative() -> None:
    # Faster per token as prompts grow: the best parabola would bend down.
    fit = fit_points([Point(n, 0, 10 * n**0.7) for n in (100, 200, 400, 800, 1600)])
    assert fit is not None
    assert fit.c == 0
    assert fit.b > 0


@pytest.mark.parametrize(
    "points",
    [
        [],
        times(1, 1, 0, COLD[:3]),
        times(1, 1, 0, COLD[:3]) * 5,  # the same prompts again are no more support
        [Point(n, 0, 100) for n in (10, 20, 40, 80)],  # times that do not grow
        [Point(n, 0, 1000 / n) for n in (10, 20, 40, 80)],
        [Point(n, n, 5) for n in (10, 20, 40, 80)],  # nothing was evaluated
        times(1, 1, 0, [(n, 0) for n in (1700, 2300, 2400, 2500)]),  # all of one size
    ],
    ids=["none", "three", "three-repeated", "flat", "falling", "cached", "one-size"],
)
def test_says_nothing_where_nothing_can_be_said(points: list[Point]) -> None:
    assert fit_points(points) is None


@given(
    st.lists(st.tuples(st.integers(1, 100_000), st.integers(0, 99_999), st.floats(0.01, 1e6)), max_size=12)
)
def test_no_term_is_negative(rows: list[tuple[int, int, float]]) -> None:
    fit = fit_points([Point(n, p, ms) for n, p, ms in rows])
    assert fit is None or (min(fit.a, fit.b, fit.c) >= 0 and fit.b + fit.c > 0 and fit.off >= 0)
