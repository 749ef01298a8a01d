"""Whose prices a request gets, and when it gets none."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.costs import ListPricer, PriceTable, Rate, Rates, Terms, price, storage_cost, terms_of
from prefixguard.costs.tables import Price
from prefixguard.errors import RuleError
from prefixguard.rulebook import Rulebook, read_table
from prefixguard.turn import Usage
from prefixguard.wire.usage import UNSTATED

NOVEMBER = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
TABLES = Rulebook().tables("prices", PriceTable)


@pytest.fixture(scope="module")
def pricer() -> ListPricer:
    return ListPricer(TABLES)


def found(
    pricer: ListPricer, model: str, upstream: str | None = None, api: str = "openai-chat", **terms: object
) -> Rates | None:
    return pricer.rates(model, api=api, upstream=upstream, at=NOVEMBER, terms=Terms(**terms))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "upstream", "api"),
    [
        ("no-such-model", None, "openai-chat"),
        ("no-such-model", "https://api.openai.com", "openai-chat"),
        ("claude-opus-5-5", "https://api.deepseek.com", "openai-chat"),
        ("Qwen/Qwen3-8B", "http://localhost:8000", "openai-chat"),
        ("gpt-oss-20b", "http://10.0.0.3:8000", "openai-chat"),
        ("deepseek-v4-pro", "http://gpu-box:30000", "openai-chat"),
        ("deepseek-v4-pro", "https://llm.example.com", "openai-chat"),
        ("qwen3-max", "https://dashscope.aliyuncs.com", "openai-chat"),
        ("claude-opus-5-5", None, "llamacpp"),
        ("gpt-6.1-sol", "http://localhost:11434", "ollama-chat"),
        ("", None, "openai-chat"),
    ],
)
def test_what_nobody_lists_has_no_price(
    pricer: ListPricer, model: str, upstream: str | None, api: str
) -> None:
    assert found(pricer, model, upstream, api) is None


def test_a_server_of_the_users_own_has_no_price_whatever_its_model_is_called(pricer: ListPricer) -> None:
    assert found(pricer, "deepseek-v4-pro", None, local=True) is None
    assert found(pricer, "claude-opus-5-5", "https://api.anthropic.com", local=True) is None
    assert found(pricer, "qwen3-max", "https://dashscope-intl.aliyuncs.com", local=True) is None


@pytest.mark.parametrize(
    ("model", "upstream", "seller"),
    [
        ("claude-opus-5-5", "https://api.anthropic.com", "anthropic/claude-opus-5-5"),
        ("claude-opus-5-5", "api.anthropic.com:443", "anthropic/claude-opus-5-5"),
        ("Claude-Opus-5-5[1m]", "https://api.anthropic.com", "anthropic/claude-opus-5-5"),
        ("anthropic/claude-opus-5-5", "http://localhost:4000", "anthropic/claude-opus-5-5"),
        ("claude-opus-5-5", "https://gateway.example.com/v1", "anthropic/claude-opus-5-5"),
        ("gpt-6.1-sol-2026-10-12", None, "openai/gpt-6.1-sol"),
        ("models/gemini-2.5-pro", "https://generativelanguage.googleapis.com", "google/gemini-2.5-pro"),
        ("us.anthropic.claude-opus-5-5", None, "aws/regional.anthropic.claude-opus-5-5"),
        ("us.anthropic.claude-opus-5-5", "http://localhost:4000", "aws/regional.anthropic.claude-opus-5-5"),
        ("openai/gpt-5.1", "https://openrouter.ai/api", "openrouter/openai/gpt-5.1"),
        ("grok-4.7", "http://127.0.0.1:9000", "x-ai/grok-4.7"),
        ("deepseek-v4-pro", None, "deepseek/deepseek-v4-pro"),
    ],
)
def test_the_host_says_who_sells_and_else_the_model(
    pricer: ListPricer, model: str, upstream: str | None, seller: str
) -> None:
    rates = found(pricer, model, upstream)
    assert rates is not None
    assert rates.source.split(" + ")[0] == f"genai-prices {seller}"


def test_the_price_list_is_named_and_dated(pricer: ListPricer) -> None:
    prices = pricer.prices
    assert prices.source == "genai-prices"
    assert datetime.date.fromisoformat(prices.date.removeprefix("after ")) >= datetime.date(2026, 11, 10)
    assert ListPricer(()).prices.date == "unknown"


def test_terms_without_a_price_are_a_doubt_and_not_a_guess(pricer: ListPricer) -> None:
    rates = found(pricer, "grok-4.7", "https://api.x.ai", service_tier="priority")
    assert rates is not None
    assert "service_tier" in rates.doubts[0]
    assert rates.uncached == Rate(2.0, ((199_999, 4.0),))


def test_a_missing_read_price_is_the_full_price_and_a_doubt() -> None:
    money = price(Rates(Rate(3.0), Rate(15.0)), Usage(1000, 500, {"5m": 200, "1h": 100}, 0))
    assert money.read == pytest.approx(500 * 3 / 1e6)
    assert sum(money.write.values()) == pytest.approx(300 * 3 / 1e6)
    assert len(money.doubts) == 1


def test_an_unknown_lifetime_is_a_doubt() -> None:
    rates = Rates(Rate(2.0), Rate(1.0), Rate(0.2), write={UNSTATED: Rate(2.5)}, default_lifetimes=("5m",))
    assert price(rates, Usage(0, 0, {"5m": 10}, 0)).doubts == ()
    assert price(rates, Usage(0, 0, {"24h": 10}, 0)).doubts == ("no price for writes of 24h is known",)


def test_unknown_figures_are_doubts() -> None:
    assert len(price(Rates(Rate(2.0), Rate(1.0)), Usage(10, None)).doubts) == 2


def test_a_rented_cache_costs_by_the_hour(pricer: ListPricer) -> None:
    rates = found(pricer, "gemini-2.5-pro")
    assert rates is not None
    assert storage_cost(rates, 200_000, 2) == pytest.approx(200_000 * 2 * 4.5 / 1e6)
    assert storage_cost(Rates(Rate(1.0), Rate(1.0)), 200_000, 2) is None


def test_an_entry_holds_from_its_first_day_until_the_day_before_its_end() -> None:
    entry = Price(
        models=("m-*",),
        provider="p",
        since=datetime.date(2026, 11, 2),
        until=datetime.date(2026, 11, 5),
        service_tier="flex",
    )

    def holds(day: int, model: str = "m-1", provider: str = "p", tier: str | None = "flex") -> bool:
        at = datetime.datetime(2026, 11, day, 23, 59, tzinfo=datetime.UTC)
        return entry.holds_for(provider, "", model, at, Terms(service_tier=tier))

    assert [day for day in range(1, 8) if holds(day)] == [2, 3, 4]
    assert not holds(3, model="n-1")
    assert not holds(3, provider="q")
    assert not holds(3, tier=None)


def test_days_and_dates_add_up() -> None:
    entry = Price(days=("sat",), dates=(datetime.date(2026, 11, 3),))
    november = [datetime.datetime(2026, 11, day, tzinfo=datetime.UTC) for day in range(1, 9)]
    assert [at.day for at in november if entry.holds_for("", "", "m", at, Terms())] == [3, 7]


def test_a_surcharge_of_ours_gives_way_to_a_price_of_the_package() -> None:
    ours = PriceTable(
        date=datetime.date(2026, 11, 1),
        source="test",
        provider="openai",
        vendor_of=("gpt-*",),
        price=(Price(service_tier="flex", times=7.0), Price(speed="fast", times=3.0)),
    )
    pricer = ListPricer([ours])
    flex = found(pricer, "gpt-5.1", "https://api.openai.com", service_tier="flex")
    assert flex is not None
    assert flex.uncached == Rate(0.625)
    fast = found(pricer, "gpt-5.1", "https://api.openai.com", speed="fast")
    assert fast is not None
    assert fast.uncached == Rate(1.25 * 3)


CONTRACT = """
date = 2026-11-01
source = "our contract"

[[price]]
provider = "anthropic"
models = ["claude-opus-*"]
times = 0.8

[[price]]
hosts = ["gpu-box"]
input = 0.05
output = 0.2
read = 0.01

[[price]]
provider = "openai"
models = ["gpt-5.1"]
input = 1.0
"""


@pytest.fixture
def contracted(tmp_path: Path) -> ListPricer:
    file = tmp_path / "contract.toml"
    file.write_text(CONTRACT, encoding="utf-8")
    return ListPricer(TABLES, read_table(file, PriceTable))


def test_a_contract_has_the_last_word(contracted: ListPricer) -> None:
    opus = found(contracted, "claude-opus-5-5", "https://api.anthropic.com", geo="us")
    assert opus is not None
    assert opus.uncached.base == pytest.approx(4 * 1.1 * 0.8)
    assert opus.write["1h"].base == pytest.approx(8 * 1.1 * 0.8)
    assert contracted.prices.source == "genai-prices and contract"


def test_a_contract_can_price_a_server_of_ones_own(contracted: ListPricer) -> None:
    rates = found(contracted, "Qwen/Qwen3-8B", "http://gpu-box:8000", local=True)
    assert rates is not None
    assert (rates.uncached, rates.read, rates.output) == (Rate(0.05), Rate(0.01), Rate(0.2))


def test_a_contract_that_names_only_the_input_price_keeps_the_multiples(contracted: ListPricer) -> None:
    rates = found(contracted, "gpt-5.1", "https://api.openai.com")
    assert rates is not None
    assert rates.uncached == Rate(1.0)
    assert rates.read is not None
    assert rates.read.base == pytest.approx(0.1)
    assert rates.output == Rate(10.0)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("input = -1.0", "input"),
        ("input = 'dear'", "input"),
        ("inptu = 1.0", "inptu"),
        ("times = 0", "times"),
        ("days = ['caturday']", "days"),
        ("models = ['GPT-5']", "lower case"),
        ("tiers = [{ above = 10, input = 1.0 }]", "tiers need the base price"),
    ],
)
def test_a_wrong_contract_is_one_clear_line(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "contract.toml"
    file.write_text(f"date = 2026-11-01\nsource = 'x'\n[[price]]\n{line}\n", encoding="utf-8")
    with pytest.raises(RuleError) as caught:
        read_table(file, PriceTable)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_response_says_which_terms_a_request_got() -> None:
    request = {"service_tier": "auto", "speed": "fast", "inference_geo": "us"}
    assert terms_of(request) == Terms(speed="fast", geo="us")
    assert terms_of(request, {"service_tier": "flex"}).service_tier == "flex"
    answer = {"usage": {"service_tier": "batch", "speed": "standard", "inference_geo": "not_available"}}
    assert terms_of(request, answer) == Terms(batch=True)
    assert terms_of({"service_tier": 5}, {"usage": None}) == Terms()


def test_reading_the_price_package_waits_for_the_first_price() -> None:
    code = (
        "import sys, prefixguard.costs as costs; from prefixguard.rulebook import Rulebook;"
        "costs.ListPricer(Rulebook().tables('prices', costs.PriceTable)).prices;"
        "print('genai_prices' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


MODELS = st.sampled_from(
    [
        ("anthropic", "claude-opus-5"),
        ("anthropic", "claude-haiku-5-5"),
        ("openai", "gpt-6.1-sol"),
        ("openai", "gpt-4o"),
        ("google", "gemini-2.5-pro"),
        ("moonshotai", "kimi-k3"),
        ("zai", "GLM-5.3"),
        ("mistral", "mistral-large-4"),
    ]
)
COUNTS = st.integers(0, 400_000)


@settings(max_examples=60, deadline=None)
@given(
    MODELS,
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    st.booleans(),
    st.datetimes(datetime.datetime(2025, 6, 1), datetime.datetime(2027, 6, 1)),
)
def test_the_arithmetic_is_the_packages_own(
    model: tuple[str, str],
    uncached: int,
    read: int,
    write: int,
    output: int,
    batch: bool,
    at: datetime.datetime,
) -> None:
    from genai_prices import Usage as Counts
    from genai_prices import calc_price

    provider, name = model
    terms = Terms(batch=batch)
    moment = at.replace(tzinfo=datetime.UTC)
    pricer = ListPricer([table for table in TABLES if not table.price])
    rates = pricer.rates(name, api="", upstream=URLS[provider], at=moment, terms=terms)
    assert rates is not None
    theirs = calc_price(
        Counts(
            input_tokens=uncached + read + write,
            cache_read_tokens=read,
            cache_write_tokens=write,
            output_tokens=output,
        ),
        name,
        provider_id=provider,
        genai_request_timestamp=moment,
        price_context={"processing": "batch"} if batch else None,
    )
    ours = price(rates, Usage(uncached, read, {UNSTATED: write}, output))
    assert ours.total == pytest.approx(float(theirs.total_price), rel=1e-9, abs=1e-12)


URLS = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "google": "https://generativelanguage.googleapis.com",
    "moonshotai": "https://api.moonshot.ai",
    "zai": "https://api.z.ai",
    "mistral": "https://api.mistral.ai",
}


@given(st.text(max_size=30), st.none() | st.text(max_size=30), st.sampled_from(["", "gemini", "ollama-chat"]))
@settings(max_examples=100, deadline=None)
def test_no_name_and_no_host_crashes_the_pricer(model: str, upstream: str | None, api: str) -> None:
    found(ListPricer(TABLES), model, upstream, api)
