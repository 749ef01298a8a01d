"""Advice is right, and shows the sum that it rests on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.costs import Rate, Rates, lifetime_advice, pruning_advice
from prefixguard.costs.advice import seconds_of

RATES = Rates(
    Rate(10.0),
    Rate(50.0),
    Rate(1.0),
    write={"default": Rate(12.5), "1h": Rate(20.0)},
    default_lifetimes=("5m",),
)


def test_an_hour_pays_when_the_user_thinks_for_ten_minutes() -> None:
    # 5m: 100,000 + 101,000 + 102,000 tokens written x 12.5 = 3,787,500.
    # 1h: 100,000 + 1,000 + 1,000 written x 20 + 201,000 read x 1 = 2,040,000 + 201,000 = 2,241,000.
    advice = lifetime_advice([600, 600], [100_000, 101_000, 102_000], RATES)
    assert advice.pays
    assert advice.saved == pytest.approx(3.7875 - 2.241)
    assert "5m: 303,000 tokens written, 0 read = $3.7875" in advice.text
    assert "1h: 102,000 tokens written, 201,000 read = $2.2410" in advice.text
    assert "5m expired 2 times between turns, 1h 0 times" in advice.text
    assert "1h saves $1.5465 over these 3 turns" in advice.text


def test_an_hour_does_not_pay_when_turns_follow_each_other() -> None:
    # 5m: 102,000x12.5 + 201,000 = 1,476,000. 1h: 2,241,000.
    advice = lifetime_advice([20, 20], [100_000, 101_000, 102_000], RATES)
    assert not advice.pays
    assert advice.saved == pytest.approx(1.476 - 2.241)
    assert "1h costs $0.7650 more" in advice.text


@pytest.mark.parametrize(("gap", "written"), [(300, "100,000"), (301, "200,000")])
def test_an_entry_lives_for_its_lifetime_and_not_a_second_longer(gap: float, written: str) -> None:
    assert f"5m: {written} tokens written" in lifetime_advice([gap], [100_000, 100_000], RATES).text


def test_pruning_pays_when_enough_turns_follow() -> None:
    # Freed 40,000 x 1 per turn; paid again 20,000 x (12.5 - 1) = 230,000: even after 5.75 turns.
    assert not pruning_advice(40_000, 20_000, 5, RATES, prompt=100_000, ttl="5m").pays
    advice = pruning_advice(40_000, 20_000, 6, RATES, prompt=100_000, ttl="5m")
    assert advice.pays
    assert advice.saved == pytest.approx(0.24 - 0.23)
    assert advice.text == (
        "Freed: 40,000 tokens x 6 turns x $1 = $0.2400. Paid again: 20,000 tokens x ($12.5 written for 5m"
        " - $1 read) = $0.2300. It pays from 6 turns on."
    )


def test_pruning_nothing_never_pays() -> None:
    advice = pruning_advice(0, 1000, 50, RATES, prompt=1000)
    assert not advice.pays
    assert advice.text.endswith("It can never pay.")


@pytest.mark.parametrize(("ttl", "seconds"), [("30s", 30), ("5m", 300), ("12h", 43_200), ("1d", 86_400)])
def test_lifetimes_are_read(ttl: str, seconds: int) -> None:
    assert seconds_of(ttl) == seconds


@pytest.mark.parametrize("ttl", ["", "5", "m", "5 m", "-5m", "5M"])
def test_what_is_no_lifetime_is_refused(ttl: str) -> None:
    with pytest.raises(ValueError, match="no lifetime"):
        seconds_of(ttl)


def test_turns_and_gaps_must_fit() -> None:
    with pytest.raises(ValueError, match="3 turns have 2 gaps"):
        lifetime_advice([1.0], [1, 2, 3], RATES)
    with pytest.raises(ValueError, match="0 turns"):
        lifetime_advice([], [], RATES)


@given(st.lists(st.tuples(st.floats(0, 7200), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_changing_nothing_saves_nothing_and_swapping_turns_the_sign(turns: list[tuple[float, int]]) -> None:
    gaps, prefixes = [gap for gap, _ in turns[1:]], [prefix for _, prefix in turns]
    assert lifetime_advice(gaps, prefixes, RATES, now="5m", instead="5m").saved == 0
    there = lifetime_advice(gaps, prefixes, RATES).saved
    back = lifetime_advice(gaps, prefixes, RATES, now="1h", instead="5m").saved
    assert there == pytest.approx(-back)
