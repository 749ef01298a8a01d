"""Verdicts, and what accounts for a difference: on turns that only have what the judgement looks at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prefixguard.exchange import Timing
from prefixguard.trial import EngineFacts, Sample, Skipped, Trial, judge
from prefixguard.turn import CacheOutcome, Cost, Tokens, Turn

ENGINE = EngineFacts("llama.cpp", "b1", "tiny", "llama.cpp:slots=1", windowed=False)


def turn(
    index: int = 0, *, low: int = 100, high: int = 100, total: int = 300, shared: int = 100,
    rebilled: int = 0, parent: int | None = None,
) -> Turn:  # fmt: skip
    return Turn(
        index=index, t=0, status=200, upstream=None, domain="", session="s", thread=0, parent=parent,
        donor=None, shape="append", api="openai-chat", model="tiny", divergence=None, findings=(),
        is_break=bool(rebilled), tokens=Tokens(total, shared, rebilled, rebilled, "server", True), usage=None,
        cache=CacheOutcome("llama.cpp", "option", True, low, high, None, "not-reported"),
        timing=Timing(), cost=Cost(),
    )  # fmt: skip


def sample(cached: int | None, ms: float = 50.0) -> Sample:
    return Sample(cached, ms, ms)


def judged(engine: EngineFacts, one: Turn, cached: int) -> Trial:
    return judge(engine, [one], {0: [sample(cached)]})


@pytest.mark.parametrize(
    ("low", "high", "cached", "windowed", "verdict", "code"),
    [
        (100, 100, 100, False, "exact", None),
        (0, 100, 100, True, "inside", None),
        (0, 100, 0, True, "inside", "PG702"),
        (50, 100, 20, True, "less", "PG702"),
        (100, 100, 20, None, "less", "PG702"),
        (100, 100, 20, False, "less", "PG804"),
        (100, 100, 101, False, "more", None),
    ],
)
def test_verdicts(
    low: int, high: int, cached: int, windowed: bool | None, verdict: str, code: str | None
) -> None:
    trial = judged(replace(ENGINE, windowed=windowed), turn(low=low, high=high), cached)
    (found,) = trial.turns
    assert (found.verdict, found.explanation) == (verdict, code)
    assert bool(found.words) == (verdict in ("less", "more") or code is not None)
    assert "give --model" in found.words or windowed is not None


def test_a_predicted_loss_of_the_slot_is_named() -> None:
    (found,) = judged(ENGINE, turn(shared=250), 100).turns
    assert (found.verdict, found.explanation) == ("exact", "PG606")
    (same,) = judged(ENGINE, turn(low=299, high=299, shared=300), 299).turns
    assert same.explanation is None


def test_nothing_is_predicted_of_a_cache_that_is_off() -> None:
    trial = judged(replace(ENGINE, caching=False), turn(), 0)
    assert (trial.count("exact"), len(trial.notes)) == (1, 1)


def test_times_are_medians_and_places_those_of_the_record() -> None:
    trial = judge(
        ENGINE, [turn(0), turn(1)],
        {0: [sample(100, 9), sample(100, 70), sample(100, 8)], 1: [sample(None)]},
        [Skipped(0, "was refused")], places=[1, 3],
    )  # fmt: skip
    (found,) = trial.turns
    assert (found.index, found.first_token_ms, trial.repeat) == (1, 9, 3)
    assert [s.index for s in trial.skipped] == [0, 3]
    assert "does not say" in trial.skipped[1].reason


@pytest.mark.parametrize(
    ("rebilled", "parent_total", "again"), [(120, 300, 120), (500, 300, 200), (500, 130, 30), (500, 50, 0)]
)
def test_a_break_costs_what_it_evaluates_again(rebilled: int, parent_total: int, again: int) -> None:
    """Never more than the parent had, or than was evaluated; without a fit, by the turn's own rate."""
    turns = [turn(0, total=parent_total), turn(1, parent=0, rebilled=rebilled)]
    trial = judge(ENGINE, turns, {0: [sample(100)], 1: [sample(100, 400)]})
    assert trial.fit is None
    assert trial.turns[1].break_ms == pytest.approx(again * 400 / 200)
    assert trial.break_ms == trial.turns[1].break_ms


def test_without_a_stored_state_what_was_shared_is_paid_for_too() -> None:
    turns = [turn(0), turn(1, parent=0, low=0, high=100, rebilled=50)]
    trial = judge(replace(ENGINE, windowed=True), turns, {0: [sample(100)], 1: [sample(0, 300)]})
    assert trial.turns[1].break_ms == pytest.approx(150)
