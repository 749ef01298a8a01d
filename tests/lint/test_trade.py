"""What trimming costs against keeping: the rule agrees with the sums that a report makes of real tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.costs.advice import pruning_advice
from prefixguard.costs.rates import Rate, Rates
from prefixguard.lint.formats import printed
from prefixguard.lint.formats.explain import explained
from prefixguard.lint.run import Options, lint
from prefixguard.lint.trade import trade, trades
from prefixguard.rulebook import Rulebook
from prefixguard.wire.usage import UNSTATED

RULES = Rulebook()
FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "lint"


@given(
    st.sampled_from(["anthropic-messages", "openai-chat", "gemini", ""]),
    st.integers(1, 200_000),
    st.integers(0, 200_000),
    st.integers(1, 500),
)
def test_the_rule_says_what_a_report_would(api: str, freed: int, behind: int, turns: int) -> None:
    both = trade(RULES, "PG302", api)
    assert both is not None
    rates = Rates(Rate(1.0), Rate(5.0), read=Rate(both.read), write={UNSTATED: Rate(both.again)})
    told = pruning_advice(freed, behind, turns, rates, prompt=0, ttl=UNSTATED)
    needed = both.factor * behind / freed
    if abs(turns - needed) > 0.01 * needed + 1e-6:
        assert told.pays == (turns > needed)


def test_the_example_is_worked_out() -> None:
    both = trade(RULES, "PG304", "anthropic-messages")
    assert both is not None
    assert both.turns == round(both.factor * both.behind / both.freed)
    assert f"{both.turns} turns" in both.text


@pytest.mark.parametrize("code", ["PG101", "PG201", "PG311"])
def test_what_takes_nothing_out_has_no_trade(code: str) -> None:
    assert trade(RULES, code) is None
    assert trades(RULES, code) == []


def test_prices_that_differ_are_told_apart_once() -> None:
    told = [(both.read, both.again) for both in trades(RULES, "PG301")]
    assert len(told) == len(set(told)) >= 2
    assert explained("PG301", RULES).count("A token sent again costs") == len(told)


def test_findings_carry_it_for_their_own_api() -> None:
    report = lint([FIXTURES / "faulty" / "pruned_copy.ts"], Options(jobs=1))
    (entry,) = [e for e in json.loads(printed("json", report, RULES)) if e["code"] == "PG302"]
    assert entry["trade"]["break_even"]["turns_per_behind_over_freed"] == pytest.approx(
        entry["trade"]["again"] / entry["trade"]["read"] - 1
    )
    assert entry["trade"]["text"] in printed("text", report, RULES)
    assert (
        entry["trade"]["text"]
        in json.loads(printed("sarif", report, RULES))["runs"][0]["results"][0]["message"]["text"]
    )
