"""What single requests cost, each worked out by hand from the vendors' published prices.

The comments give dollars per million tokens at the date of the request.
"""

from __future__ import annotations

import datetime

import pytest

from prefixguard.costs import ListPricer, PriceTable, Terms, price
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Usage
from prefixguard.wire.usage import UNSTATED


@pytest.fixture(scope="module")
def pricer() -> ListPricer:
    return ListPricer(Rulebook().tables("prices", PriceTable))


def utc(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


ANTHROPIC, OPENAI, GEMINI = (
    "https://api.anthropic.com",
    "https://api.openai.com",
    "https://generativelanguage.googleapis.com",
)
NOVEMBER = "2026-11-20T12:00"
OPUS = Usage(120, 80_000, {"5m": 2000, "1h": 3000}, 500)

REQUESTS = [
    # Opus 5.5: input 4, read 0.20, 5m 5, 1h 8, output 20.
    # 120x4 + 80,000x0.2 + 2,000x5 + 3,000x8 + 500x20 = 480 + 16,000 + 10,000 + 24,000 + 10,000 = 60,480
    ("claude-opus-5-5", ANTHROPIC, OPUS, NOVEMBER, Terms(), 0.06048),
    # The same with US inference, x1.1: 66,528
    ("claude-opus-5-5", ANTHROPIC, OPUS, NOVEMBER, Terms(geo="us"), 0.066528),
    # Fast mode: 8, 0.40, 10, 16, 40, so twice: 120,960; and in the US: 133,056
    ("claude-opus-5-5", ANTHROPIC, OPUS, NOVEMBER, Terms(speed="fast"), 0.12096),
    ("claude-opus-5-5", ANTHROPIC, OPUS, NOVEMBER, Terms(speed="fast", geo="us"), 0.133056),
    # Batch halves everything: 30,240
    ("claude-opus-5-5", ANTHROPIC, OPUS, NOVEMBER, Terms(batch=True), 0.03024),
    # Haiku 5.5: 0.1, 0.01, output 0.5; above 100,000 tokens of prompt five times that, for all of them.
    # 100,000 tokens: 10,000x0.1 + 90,000x0.01 + 1,000x0.5 = 1,000 + 900 + 500 = 2,400
    ("claude-haiku-5-5", ANTHROPIC, Usage(10_000, 90_000, {}, 1000), NOVEMBER, Terms(), 0.0024),
    # 100,001 tokens: 10,001x0.5 + 90,000x0.05 + 1,000x2.5 = 5,000.5 + 4,500 + 2,500 = 12,000.5
    ("claude-haiku-5-5", ANTHROPIC, Usage(10_001, 90_000, {}, 1000), NOVEMBER, Terms(), 0.0120005),
    # GPT-6.1 sol above 272,000 tokens: 4, read 0.2, write 5, output 15.
    # 1,000x4 + 280,000x0.2 + 19,000x5 + 2,000x15 = 4,000 + 56,000 + 95,000 + 30,000 = 185,000
    ("gpt-6.1-sol", OPENAI, Usage(1000, 280_000, {"30m": 19_000}, 2000), NOVEMBER, Terms(), 0.185),
    # GPT-5.6 sol until 2026-08-20: 5, 0.5, 12h write 2.5x5 = 12.5, output 30.
    # 10,000x5 + 50,000x0.5 + 20,000x12.5 + 1,000x30 = 50,000 + 25,000 + 250,000 + 30,000 = 355,000
    ("gpt-5.6-sol", OPENAI, Usage(10_000, 50_000, {"12h": 20_000}, 1000), "2026-08-01T12:00", Terms(), 0.355),
    # From 2026-08-21: 4, 0.4, 12h write 10, output 20. 40,000 + 20,000 + 200,000 + 20,000 = 280,000
    ("gpt-5.6-sol", OPENAI, Usage(10_000, 50_000, {"12h": 20_000}, 1000), "2026-08-21T00:00", Terms(), 0.28),
    # GPT-5.1 flex: 0.625, 0.0625, output 5. 8,000x0.625 + 32,000x0.0625 + 600x5 = 5,000 + 2,000 + 3,000
    ("gpt-5.1", OPENAI, Usage(8000, 32_000, {}, 600), NOVEMBER, Terms(service_tier="flex"), 0.01),
    # GPT-5.1 priority: 2.5, 0.25, 20. 20,000 + 8,000 + 12,000
    ("gpt-5.1", OPENAI, Usage(8000, 32_000, {}, 600), NOVEMBER, Terms(service_tier="priority"), 0.04),
    # Azure sells the same model at 1.25, 0.125, 10: 10,000 + 4,000 + 6,000
    ("gpt-5.1", "https://acme.openai.azure.com", Usage(8000, 32_000, {}, 600), NOVEMBER, Terms(), 0.02),
    # Gemini 2.5 Pro above 200,000: 2.5, 0.25, 15.
    # 10,000x2.5 + 240,000x0.25 + 1,000x15 = 25,000 + 60,000 + 15,000
    ("gemini-2.5-pro", GEMINI, Usage(10_000, 240_000, {}, 1000), NOVEMBER, Terms(), 0.1),
    # ... and flex is half of that.
    ("gemini-2.5-pro", GEMINI, Usage(10_000, 240_000, {}, 1000), NOVEMBER, Terms(service_tier="flex"), 0.05),
    # Gemini 4 Argon, November: 2, 0.1, 10. 10,000x2 + 90,000x0.1 + 500x10 = 20,000 + 9,000 + 5,000 = 34,000
    ("gemini-4-argon", GEMINI, Usage(10_000, 90_000, {}, 500), "2026-11-30T23:59", Terms(), 0.034),
    # ... and double from December on: 68,000
    ("gemini-4-argon", GEMINI, Usage(10_000, 90_000, {}, 500), "2026-12-01T00:00", Terms(), 0.068),
    # DeepSeek V4 Pro, a Thursday, 02:00 UTC, peak: 1.32, 0.044, 3.96.
    # 1,050x1.32 + 100,000x0.044 + 400x3.96 = 1,386 + 4,400 + 1,584 = 7,370; at noon half: 3,685
    (
        "deepseek-v4-pro",
        "https://api.deepseek.com",
        Usage(1050, 100_000, {}, 400),
        "2026-11-19T02:00",
        Terms(),
        0.00737,
    ),
    (
        "deepseek-v4-pro",
        "https://api.deepseek.com",
        Usage(1050, 100_000, {}, 400),
        "2026-11-19T12:00",
        Terms(),
        0.003685,
    ),
    # The same hour on a Saturday, and on a public holiday, is not peak.
    (
        "deepseek-v4-pro",
        "https://api.deepseek.com",
        Usage(1050, 100_000, {}, 400),
        "2026-11-21T02:00",
        Terms(),
        0.003685,
    ),
    (
        "deepseek-v4-pro",
        "https://api.deepseek.com",
        Usage(1050, 100_000, {}, 400),
        "2026-10-05T02:00",
        Terms(),
        0.003685,
    ),
    # Before 2026-08-17 there were no peak hours: 0.435, 0.003625, 0.87. 456.75 + 362.5 + 348 = 1,167.25
    (
        "deepseek-v4-pro",
        "https://api.deepseek.com",
        Usage(1050, 100_000, {}, 400),
        "2026-08-01T02:00",
        Terms(),
        0.00116725,
    ),
    # Grok 4.7: 2, 0.5, 6. 4,000x2 + 60,000x0.5 + 1,000x6 = 8,000 + 30,000 + 6,000 = 44,000
    ("grok-4.7", "https://api.x.ai", Usage(4000, 60_000, {}, 1000), NOVEMBER, Terms(), 0.044),
    # Kimi K3: 3, 0.3, 1h write 6, output 15.
    # 500x3 + 20,000x0.3 + 4,000x6 + 300x15 = 1,500 + 6,000 + 24,000 + 4,500
    ("kimi-k3", "https://api.moonshot.ai", Usage(500, 20_000, {"1h": 4000}, 300), NOVEMBER, Terms(), 0.036),
    # GLM-5.3: 1.4, 0.26, 4.4. 5,000x1.4 + 30,000x0.26 + 500x4.4 = 7,000 + 7,800 + 2,200 = 17,000
    ("GLM-5.3", "https://api.z.ai", Usage(5000, 30_000, {}, 500), NOVEMBER, Terms(), 0.017),
    # Qwen3 Max, 40,000 tokens: second tier, 2.4, 0.48, write 3, output 12.
    # 5,000x2.4 + 30,000x0.48 + 5,000x3 + 1,000x12 = 12,000 + 14,400 + 15,000 + 12,000 = 53,400
    (
        "qwen3-max",
        "https://dashscope-intl.aliyuncs.com",
        Usage(5000, 30_000, {UNSTATED: 5000}, 1000),
        NOVEMBER,
        Terms(),
        0.0534,
    ),
    # gpt-oss-120b on Groq: 0.15, 0.075, 0.6.
    # 10,000x0.15 + 40,000x0.075 + 1,000x0.6 = 1,500 + 3,000 + 600 = 5,100
    (
        "openai/gpt-oss-120b",
        "https://api.groq.com",
        Usage(10_000, 40_000, {}, 1000),
        NOVEMBER,
        Terms(),
        0.0051,
    ),
    # Opus 5.5 on Bedrock in one region, a tenth more: 4.4, 0.22, 5m 5.5, output 22.
    # 100x4.4 + 50,000x0.22 + 1,000x5.5 + 500x22 = 440 + 11,000 + 5,500 + 11,000 = 27,940
    (
        "us.anthropic.claude-opus-5-5",
        "https://bedrock-runtime.us-east-1.amazonaws.com",
        Usage(100, 50_000, {"5m": 1000}, 500),
        NOVEMBER,
        Terms(),
        0.02794,
    ),
    # The same on one of Vertex's regional endpoints, and on its global one: 25,400
    (
        "claude-opus-5-5",
        "https://us-east5-aiplatform.googleapis.com",
        Usage(100, 50_000, {"5m": 1000}, 500),
        NOVEMBER,
        Terms(),
        0.02794,
    ),
    (
        "claude-opus-5-5",
        "https://aiplatform.googleapis.com",
        Usage(100, 50_000, {"5m": 1000}, 500),
        NOVEMBER,
        Terms(),
        0.0254,
    ),
]


@pytest.mark.parametrize(("model", "upstream", "usage", "at", "terms", "dollars"), REQUESTS)
def test_a_request_costs_what_it_comes_to_by_hand(
    pricer: ListPricer, model: str, upstream: str, usage: Usage, at: str, terms: Terms, dollars: float
) -> None:
    rates = pricer.rates(model, api="", upstream=upstream, at=utc(at), terms=terms)
    assert rates is not None
    money = price(rates, usage)
    assert money.total == pytest.approx(dollars, rel=1e-12)
    assert money.doubts == ()


EXAMPLE_PRICES = [
    # Labelled records of each dialect, at example prices: input 3, read 0.3, output 15, and `write`.
    (
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 100_000,
            "cache_creation_input_tokens": 1000,
            "output_tokens": 400,
        },
        {UNSTATED: 3.75},
        0.0399,
    ),
    (
        {
            "prompt_tokens": 101_050,
            "completion_tokens": 400,
            "prompt_tokens_details": {"cached_tokens": 100_000},
        },
        {},
        0.03915,
    ),
    (
        {"promptTokenCount": 101_050, "cachedContentTokenCount": 100_000, "candidatesTokenCount": 400},
        {},
        0.03915,
    ),
    (
        {
            "prompt_tokens": 101_050,
            "prompt_cache_hit_tokens": 100_000,
            "prompt_cache_miss_tokens": 1050,
            "completion_tokens": 400,
        },
        {},
        0.03915,
    ),
    (
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 101_000,
            "output_tokens": 400,
            "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 100_000},
        },
        {UNSTATED: 3.75, "1h": 6.0},
        0.6099,
    ),
    (
        {
            "input_tokens": 101_050,
            "output_tokens": 400,
            "input_tokens_details": {"cached_tokens": 60_000, "cache_write_tokens": 40_000},
        },
        {UNSTATED: 3.75},
        0.17715,
    ),
    (
        {
            "prompt_tokens": 101_050,
            "cache_read_input_tokens": 100_000,
            "cache_creation_input_tokens": 1000,
            "completion_tokens": 400,
            "prompt_tokens_details": {"cached_tokens": 100_000},
        },
        {UNSTATED: 3.75},
        0.0399,
    ),
]


@pytest.mark.parametrize(("body", "write", "dollars"), EXAMPLE_PRICES)
def test_no_dialect_is_billed_twice_or_not_at_all(
    body: dict[str, object], write: dict[str, float], dollars: float
) -> None:
    from prefixguard.costs import Rate, Rates
    from prefixguard.wire.usage import decode_usage

    decoded = decode_usage(body)
    assert decoded is not None
    rates = Rates(
        uncached=Rate(3.0),
        output=Rate(15.0),
        read=Rate(0.3),
        write={ttl: Rate(dollars) for ttl, dollars in write.items()},
        default_lifetimes=("5m",),
    )
    money = price(rates, decoded.usage)
    assert (money.total, money.doubts) == (pytest.approx(dollars, abs=1e-9), ())
