"""Actual, uncached, ideal and avoidable money of turns and sessions."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.costs import (
    Rate,
    Rates,
    Terms,
    cost_of_turn,
    seconds_avoidable,
    split_avoidable,
    sum_costs,
)
from prefixguard.exchange import Timing
from prefixguard.finding import Finding
from prefixguard.turn import Cost, Prices, Tokens, Turn, Usage

# Dollars per million: input 10, read 1, 5m 12.5, 1h 20, output 50.
BREAKPOINTS = Rates(
    Rate(10.0),
    Rate(50.0),
    Rate(1.0),
    write={"default": Rate(12.5), "1h": Rate(20.0)},
    default_lifetimes=("5m",),
)
# A cache that bills nothing for writing.
AUTOMATIC = Rates(Rate(10.0), Rate(50.0), Rate(1.0))


@dataclass
class Fixed:
    """A pricer with one answer, which remembers what it was asked."""

    rates_given: Rates | None
    asked: list[datetime.datetime] = field(default_factory=list)

    @property
    def prices(self) -> Prices:
        return Prices("test", "1", "2026-11-10")

    def rates(
        self, model: str, *, api: str, upstream: str | None, at: datetime.datetime, terms: Terms
    ) -> Rates | None:
        self.asked.append(at)
        return self.rates_given


def cost(
    usage: Usage | None,
    keep: int | None,
    rates: Rates | None = BREAKPOINTS,
    ttl: str | None = "5m",
    **more: object,
) -> Cost:
    return cost_of_turn(
        Fixed(rates),
        "m",
        "anthropic-messages",
        None,
        usage,
        0.0,
        ideal_read=keep,
        rule_write_ttl=ttl,
        **more,  # type: ignore[arg-type]
    )


def test_an_append_has_nothing_to_avoid() -> None:
    # 10,000 read, 500 new tokens written, 3 uncached.
    found = cost(Usage(3, 10_000, {"5m": 500}, 100), keep=10_000)
    # 3x10 + 10,000x1 + 500x12.5 + 100x50 = 30 + 10,000 + 6,250 + 5,000 = 21,280
    assert found.actual == pytest.approx(0.02128)
    assert found.avoidable == 0.0
    # 10,503x10 + 5,000 = 110,030
    assert found.uncached == pytest.approx(0.11003)
    assert not found.estimated


def test_a_break_costs_the_write_less_the_read() -> None:
    # A clock in the head: all 10,500 tokens are written again. Ideal: 10,000 read, 500 written.
    found = cost(Usage(3, 0, {"5m": 10_500}, 100), keep=10_000)
    # 10,000 x (12.5 - 1) = 115,000
    assert found.avoidable == pytest.approx(0.115)


def test_on_an_automatic_cache_a_break_costs_the_input_less_the_read() -> None:
    found = cost(Usage(10_500, 0, {}, 100), keep=10_000, rates=AUTOMATIC, ttl=None)
    assert found.avoidable == pytest.approx(10_000 * (10 - 1) / 1e6)


def test_the_tail_stands_at_the_shorter_lifetime() -> None:
    # The head is written again for an hour, the tail for five minutes.
    # Ideal reads the head and writes 400 tokens for five minutes.
    found = cost(Usage(0, 0, {"5m": 400, "1h": 10_000}, 0), keep=10_000)
    assert found.ideal == pytest.approx((10_000 * 1 + 400 * 12.5) / 1e6)
    # Where more is new than was written for 5m, the rest is written for 1h as the client did.
    found = cost(Usage(0, 0, {"5m": 400, "1h": 10_000}, 0), keep=9000)
    assert found.ideal == pytest.approx((9000 * 1 + 400 * 12.5 + 1000 * 20) / 1e6)


def test_what_was_read_beyond_the_kept_prefix_stays_read() -> None:
    assert cost(Usage(0, 12_000, {"5m": 100}, 0), keep=10_000).avoidable == 0.0


def test_a_client_without_breakpoints_is_charged_for_the_writes_it_should_have_made() -> None:
    first = cost(Usage(10_000, 0, {}, 0), keep=0)
    # Writing costs a quarter more than not: 10,000 x (10 - 12.5) = -25,000
    assert first.avoidable == pytest.approx(-0.025)
    second = cost(Usage(10_500, 0, {}, 0), keep=10_000)
    # 10,500x10 - (10,000x1 + 500x12.5) = 105,000 - 16,250 = 88,750
    assert second.avoidable == pytest.approx(0.08875)
    both = sum_costs([first, second])
    # Net of both premiums.
    assert both.avoidable == pytest.approx(0.08875 - 0.025)


def test_where_caching_does_not_pay_nothing_is_avoidable() -> None:
    once = sum_costs([cost(Usage(10_000, 0, {}, 0), keep=0)])
    assert once.avoidable == 0.0
    assert once.ideal == once.actual


def test_a_prompt_too_short_to_be_kept_is_not_written() -> None:
    assert cost(Usage(300, 0, {}, 0), keep=0, ttl=None).avoidable == 0.0


@pytest.mark.parametrize("found", [cost(None, 10), cost(Usage(10, 0, {}, 1), 5, rates=None)])
def test_without_usage_or_price_there_is_no_money(found: Cost) -> None:
    assert found == Cost()


def test_a_turn_that_was_not_understood_has_no_ideal() -> None:
    found = cost(Usage(10, 0, {}, 1), None)
    assert (found.ideal, found.avoidable) == (None, None)
    assert found.actual is not None
    assert sum_costs([found]).avoidable is None
    beside = sum_costs([found, cost(Usage(10, 0, {}, 1), 5)])
    assert beside.avoidable is not None
    assert beside.estimated


def test_estimates_are_marked() -> None:
    assert cost(Usage(10, 0, {}, 1), 5, estimated=True).estimated
    assert cost(Usage(10, None, {}, 1), 5).estimated
    assert cost(Usage(10, 0, {}, None), 5).estimated
    assert not cost(Usage(10, 0, {}, 1), 5).estimated


def test_requests_billed_beside_the_turn_are_in_its_cost_and_not_avoidable() -> None:
    alone = cost(Usage(3, 10_000, {"5m": 500}, 100), keep=10_000)
    found = cost(Usage(3, 10_000, {"5m": 500}, 100), keep=10_000, beside=(Usage(1000, 100, {}, 10),))
    assert alone.actual is not None
    # 1,000x10 + 100x1 + 10x50 = 10,600; uncached 1,100x10 + 500
    assert found.actual == pytest.approx(alone.actual + 0.0106)
    assert found.uncached == pytest.approx((alone.uncached or 0) + 0.0115)
    assert found.avoidable == 0.0


def test_a_sum_with_unknown_parts_is_estimated_and_not_zero() -> None:
    known = cost(Usage(10, 0, {}, 1), 0, rates=AUTOMATIC)
    assert sum_costs([]) == Cost()
    assert sum_costs([Cost(), Cost()]) == Cost()
    assert sum_costs([known, Cost()]).actual == known.actual
    assert sum_costs([known, Cost()]).estimated
    assert not sum_costs([known, known]).estimated


@pytest.mark.parametrize(
    ("at", "price_date", "expected"),
    [
        (1_780_000_000.0, None, "2026-05-28T20:26:40+00:00"),
        (12.5, None, "2026-11-10T12:00:00+00:00"),
        (12.5, datetime.date(2026, 8, 1), "2026-08-01T12:00:00+00:00"),
        (1_780_000_000.0, datetime.date(2026, 8, 1), "2026-08-01T20:26:40+00:00"),
        (1e300, None, "2026-11-10T12:00:00+00:00"),
        (float("nan"), None, "2026-11-10T12:00:00+00:00"),
    ],
)
def test_prices_are_those_of_the_request_s_time(
    at: float, price_date: datetime.date | None, expected: str
) -> None:
    pricer = Fixed(AUTOMATIC)
    cost_of_turn(
        pricer,
        "m",
        "openai-chat",
        None,
        Usage(1, 0, {}, 1),
        at,
        ideal_read=0,
        rule_write_ttl=None,
        options=Terms(price_date=price_date),
    )
    assert [asked.isoformat() for asked in pricer.asked] == [expected]


def turn(avoidable: float | None, *findings: Finding) -> Turn:
    return Turn(
        index=0,
        t=0.0,
        status=200,
        upstream=None,
        domain="",
        session="s",
        thread=0,
        parent=None,
        donor=None,
        shape="changed",
        api="openai-chat",
        model="m",
        divergence=None,
        findings=findings,
        is_break=True,
        tokens=Tokens(0, 0, 0, 0, "estimate", False),
        usage=None,
        cache=None,
        timing=Timing(),
        cost=Cost(avoidable=avoidable),
    )


def test_avoidable_money_goes_to_the_primary_finding_and_its_agent() -> None:
    clock = Finding("PG101", "clock-in-prefix", "", primary=True)
    remark = Finding("PG208", "shape", "", severity="info")
    expired = Finding("PG501", "expired", "", by="time")
    pruned = Finding("PG302", "pruned", "", primary=True, deliberate=True)
    split = split_avoidable(
        [
            turn(0.5, clock, remark),
            turn(0.25, expired, remark),
            turn(0.125, pruned),
            turn(0.0625, remark),
            turn(-1.0, clock),
            turn(None, clock),
            turn(1.0, clock, pruned),
        ]
    )
    assert split.by_code == {"PG101": 1.0, "PG501": 0.25, "PG302": 0.625}
    assert split.by_agent == {"client": 1.0, "time": 0.25}
    assert (split.deliberate, split.unexplained) == (0.625, 0.0625)


def test_seconds_are_shared_out_by_the_tokens_that_were_evaluated() -> None:
    # 9,000 of 10,000 evaluated tokens need not have been: nine tenths of two seconds.
    assert seconds_avoidable(Usage(10_000, 0), 9000, 2000.0) == pytest.approx(1.8)
    assert seconds_avoidable(Usage(1000, 9000), 9000, 2000.0) == 0.0
    assert seconds_avoidable(Usage(0, 9000), 9000, 2000.0) == 0.0
    assert seconds_avoidable(Usage(10_000, 0), 9000, None) is None
    assert seconds_avoidable(Usage(10_000, None), 9000, 2000.0) is None


COUNTS = st.integers(0, 10**6)
USAGES = st.builds(
    Usage,
    COUNTS,
    st.none() | COUNTS,
    st.dictionaries(st.sampled_from(["5m", "1h", "default"]), COUNTS),
    st.none() | COUNTS,
)


@given(USAGES, COUNTS, st.sampled_from([None, "5m", "1h"]), st.sampled_from([BREAKPOINTS, AUTOMATIC]))
def test_the_ideal_is_the_same_prompt_and_never_dearer_than_what_a_writing_client_paid(
    usage: Usage, keep: int, ttl: str | None, rates: Rates
) -> None:
    from prefixguard.costs.turns import ideal_usage

    ideal = ideal_usage(usage, keep, ttl, rates)
    assert ideal.total == usage.total
    assert (ideal.read or 0) >= min(keep, usage.total)
    assert min([ideal.uncached, *ideal.write.values()]) >= 0
    found = cost(usage, keep, rates, ttl)
    assert found.actual is not None
    assert found.ideal is not None
    if sum(usage.write.values()) or ttl is None:
        assert found.ideal <= found.actual + 1e-9


@given(USAGES, COUNTS)
def test_reading_more_never_makes_the_ideal_dearer(usage: Usage, keep: int) -> None:
    less, more = cost(usage, keep).ideal, cost(usage, keep + 1000).ideal
    assert less is not None
    assert more is not None
    assert more <= less + 1e-9
