"""Divergence of distributions: by hand, and by the laws that it obeys."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prefixguard.kv.drift import Distribution, FormatTrial, Kept, drift, first_difference


def distribution(shares: dict[int, float], most: int | None = None) -> Distribution:
    """As a server tells it: the likeliest first, at most so many."""
    rows = sorted(shares.items(), key=lambda row: -row[1])[:most]
    return Distribution(array("i", (i for i, _ in rows)), array("d", (math.log(p) for _, p in rows)))


def test_divergence_by_hand() -> None:
    found = drift(
        [distribution({1: 0.5, 2: 0.5}), distribution({1: 0.9, 2: 0.1})],
        [distribution({1: 0.25, 2: 0.75}), distribution({2: 0.9, 1: 0.1})],
    )
    assert found.each[0] == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert found.each[1] == pytest.approx(0.9 * math.log(9) + 0.1 * math.log(1 / 9))
    assert (found.same_first, found.covered) == (0.0, pytest.approx(1.0))
    assert found.mean == pytest.approx(sum(found.each) / 2)
    assert (found.p99, found.largest) == (max(found.each),) * 2


def test_what_neither_names_counts_as_one_token() -> None:
    one, other = {1: 0.5, 2: 0.3, 3: 0.2}, {1: 0.4, 2: 0.4, 3: 0.2}
    found = drift([distribution(one, 1)], [distribution(other, 1)])
    assert found.each[0] == pytest.approx(0.5 * math.log(0.5 / 0.4) + 0.5 * math.log(0.5 / 0.6))
    assert found.covered == pytest.approx(0.5)


@st.composite
def two(draw: st.DrawFn) -> tuple[dict[int, float], dict[int, float]]:
    weights = st.lists(st.floats(0.001, 1.0), min_size=6, max_size=6)
    one, other = (
        {place: value / sum(values) for place, value in enumerate(values)}
        for values in (draw(weights), draw(weights))
    )
    return one, other


@given(two(), st.integers(1, 6))
def test_less_named_never_says_more(sides: tuple[dict[int, float], dict[int, float]], most: int) -> None:
    """Merging outcomes loses divergence and adds none; the same distribution has none."""
    whole = drift([distribution(sides[0])], [distribution(sides[1])]).each[0]
    part = drift([distribution(sides[0], most)], [distribution(sides[1], most)]).each[0]
    assume(math.isfinite(part))
    assert -1e-12 <= part <= whole + 1e-9
    assert drift([distribution(sides[0], most)], [distribution(sides[0], most)]).each[0] == pytest.approx(0)


@given(two(), st.floats(0, 3e-4), st.floats(0, 3e-4))
def test_sums_a_little_over_one_do_no_harm(
    sides: tuple[dict[int, float], dict[int, float]], over: float, other: float
) -> None:
    """Servers add up in single precision: measured 1.0001 for a vocabulary of 49,152."""
    exact = drift([distribution(sides[0])], [distribution(sides[1])]).each[0]
    scaled = [
        distribution({token: share * (1 + by) for token, share in side.items()})
        for side, by in zip(sides, (over, other), strict=True)
    ]
    assert drift(scaled[:1], scaled[1:]).each[0] == pytest.approx(exact, abs=1e-6)


def test_nothing_named_by_both_is_no_figure() -> None:
    found = drift([distribution({1: 1.0})], [distribution({2: 1.0})])
    assert (found.each, found.covered) == ((math.inf,), 0.0)
    with pytest.raises(ValueError, match="no positions"):
        drift([], [])


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [([1, 2], [1, 2], None), ([1, 2], [1, 3], 1), ([1, 2], [1], 1), ([], [4], 0), ([], [], None)],
)
def test_where_replies_part(one: list[int], other: list[int], place: int | None) -> None:
    assert first_difference(one, other) == place


def test_keys_are_held_against_values_position_by_position() -> None:
    before = [distribution({1: 0.5, 2: 0.5})] * 3
    near, far = [distribution({1: 0.45, 2: 0.55})] * 3, [distribution({1: 0.1, 2: 0.9})] * 2
    keys, values = drift(before, [*far, near[0]]), drift(before, near)
    trial = FormatTrial(
        "e", "m", "p", 256, Kept("f16", "f16"),
        (Kept("q4_0", "f16", drift=keys), Kept("f16", "q4_0", drift=values), Kept("q8_0", "f16", drift=keys)),
        (3,), (3,), 2,
    )  # fmt: skip
    (found,) = trial.comparisons()
    assert (found.format, found.worse_keys, found.positions) == ("q4_0", 2, 3)


@pytest.mark.parametrize(("computed", "agrees"), [(1 << 20, True), (3 << 19, False), (None, None)])
def test_a_log_is_believed_to_its_decimals(computed: int | None, agrees: bool | None) -> None:
    assert Kept("f16", "f16", 0.51, 0.5, computed).as_computed is agrees
