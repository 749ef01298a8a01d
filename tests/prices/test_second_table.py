"""Our base prices against a second published table, compiled by other people from other pages.

A development test: it needs model-prices, and may fail when either package
learns of a price before the other. Then look the price up, and correct
`rules/prices/` if ours is wrong.
"""

from __future__ import annotations

import datetime

import pytest

from prefixguard.costs import ListPricer, PriceTable, Rates, Terms
from prefixguard.rulebook import Rulebook

other = pytest.importorskip("model_prices")

# The day of the second table's data; noon, which is off-peak everywhere.
AT = datetime.datetime(2026, 10, 26, 12, tzinfo=datetime.UTC)

VENDORS = {
    "anthropic": (
        "https://api.anthropic.com",
        [
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "claude-fable-5-1",
            "claude-opus-5",
            "claude-opus-4-8",
            "claude-opus-4-5",
            "claude-sonnet-4-6",
            "claude-haiku-4-5",
        ],
    ),
    "openai": (
        "https://api.openai.com",
        [
            "gpt-6-astra",
            "gpt-6.1-sol",
            "gpt-6.1-terra",
            "gpt-5.6-sol",
            "gpt-5.5",
            "gpt-5.1",
            "gpt-4.1",
            "gpt-4o",
        ],
    ),
    "google": (
        "https://generativelanguage.googleapis.com",
        [
            "gemini-4-argon",
            "gemini-3.8-flash",
            "gemini-3.1-pro-preview",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
        ],
    ),
    "deepseek": ("https://api.deepseek.com", ["deepseek-v4-pro", "deepseek-v4-flash"]),
    "xai": ("https://api.x.ai", ["grok-4.7", "grok-4.6", "grok-4.3"]),
    "moonshotai": ("https://api.moonshot.ai", ["kimi-k3", "kimi-k2.6"]),
    "zai": ("https://api.z.ai", ["glm-5.3", "glm-5.1"]),
    "mistral": ("https://api.mistral.ai", ["mistral-medium-3-5", "devstral-2512"]),
    "minimax": ("https://api.minimax.io", ["minimax-m3"]),
    "alibaba": (
        "https://dashscope-intl.aliyuncs.com",
        ["qwen3.8-max", "qwen3.7-plus", "qwen3-max", "qwen3-coder-plus", "qwen-plus", "qwen-flash"],
    ),
}


@pytest.fixture(scope="module")
def pricer() -> ListPricer:
    return ListPricer(Rulebook().tables("prices", PriceTable))


def ours(pricer: ListPricer, vendor: str, model: str) -> Rates | None:
    return pricer.rates(model, api="", upstream=VENDORS[vendor][0], at=AT, terms=Terms())


@pytest.mark.parametrize(("vendor", "model"), [(v, m) for v, (_, models) in VENDORS.items() for m in models])
@pytest.mark.parametrize("prompt", [20_000, 600_000])
def test_both_tables_say_the_same(pricer: ListPricer, vendor: str, model: str, prompt: int) -> None:
    mine, theirs = ours(pricer, vendor, model), other.rates(model, AT, provider=vendor)
    assert mine is not None
    assert theirs is not None
    million = 1e6 / prompt
    assert mine.uncached.at(prompt) == pytest.approx(theirs.breakdown(prompt).input * million)
    assert mine.output.at(prompt) == pytest.approx(theirs.breakdown(prompt, prompt).output * million)
    # Where only one table states a price there is nothing to compare.
    if mine.read is not None and theirs.cache_read is not None:
        expected = theirs.breakdown(cache_read_tokens=prompt).cache_read * million
        assert mine.read_at(prompt) == pytest.approx(expected)
    if mine.write and theirs.cache_write:
        expected = theirs.breakdown(cache_write_tokens=prompt).cache_write * million
        assert mine.write_at("default", prompt)[0] == pytest.approx(expected)
    if mine.write and theirs.cache_write_1h_multiple is not None:
        expected = theirs.breakdown(cache_write_1h_tokens=prompt).cache_write_1h * million
        assert mine.write_at("12h" if vendor == "openai" else "1h", prompt)[0] == pytest.approx(expected)


def test_enough_was_compared(pricer: ListPricer) -> None:
    found = [(v, m) for v, (_, models) in VENDORS.items() for m in models]
    rates = [ours(pricer, vendor, model) for vendor, model in found]
    assert sum(each is not None and each.read is not None for each in rates) >= 35
    assert sum(each is not None and bool(each.write) for each in rates) >= 20
