"""Usage is read by its fields, and a figure that is not there is unknown, not zero."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.turn import Usage
from prefixguard.wire.usage import UNSTATED, DecodedUsage, decode_usage


def decoded(body: dict[str, object]) -> DecodedUsage:
    found = decode_usage(body)
    assert found is not None
    return found


DIALECTS = [
    pytest.param(
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 100_000,
            "cache_creation_input_tokens": 1000,
            "output_tokens": 400,
        },
        "anthropic",
        Usage(50, 100_000, {UNSTATED: 1000}, 400),
        id="anthropic-excludes-the-cache",
    ),
    pytest.param(
        {
            "input_tokens": 50,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 101_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 100_000},
            "output_tokens": 400,
        },
        "anthropic",
        Usage(50, 0, {"5m": 1000, "1h": 100_000}, 400),
        id="anthropic-lifetimes",
    ),
    pytest.param(
        {"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": None},
        "anthropic",
        Usage(9, None, {}, 4),
        id="anthropic-shape-without-figures",
    ),
    pytest.param(
        {
            "prompt_tokens": 101_050,
            "completion_tokens": 400,
            "prompt_tokens_details": {"cached_tokens": 100_000},
        },
        "openai-chat",
        Usage(1050, 100_000, {}, 400),
        id="openai-chat-includes-the-cache",
    ),
    pytest.param(
        {
            "prompt_tokens": 5000,
            "completion_tokens": 7,
            "total_tokens": 5007,
            "prompt_tokens_details": {"cached_tokens": 3000, "cache_write_tokens": 1500},
        },
        "openai-chat",
        Usage(500, 3000, {UNSTATED: 1500}, 7),
        id="openai-chat-writes",
    ),
    pytest.param(
        {
            "input_tokens": 9000,
            "output_tokens": 10,
            "total_tokens": 9010,
            "input_tokens_details": {
                "cached_tokens": 4000,
                "cache_write_tokens": 3000,
                "cache_write_tokens_details": {"ttl_30m_tokens": 1000, "ttl_12h_tokens": 2000},
            },
        },
        "openai-responses",
        Usage(2000, 4000, {"30m": 1000, "12h": 2000}, 10),
        id="responses-lifetimes",
    ),
    pytest.param(
        {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100},
        "openai-responses",
        Usage(90, None, {}, 10),
        id="responses-without-details",
    ),
    pytest.param(
        {
            "prompt_tokens": 101_050,
            "cache_read_input_tokens": 100_000,
            "cache_creation_input_tokens": 1000,
            "completion_tokens": 400,
            "prompt_tokens_details": {"cached_tokens": 100_000},
        },
        "gateway",
        Usage(50, 100_000, {UNSTATED: 1000}, 400),
        id="anthropic-names-inside-an-openai-total",
    ),
    pytest.param(
        {
            "prompt_tokens": 101_050,
            "prompt_cache_hit_tokens": 100_000,
            "prompt_cache_miss_tokens": 1050,
            "completion_tokens": 400,
        },
        "deepseek",
        Usage(1050, 100_000, {}, 400),
        id="deepseek",
    ),
    pytest.param(
        {
            "promptTokenCount": 101_050,
            "cachedContentTokenCount": 100_000,
            "candidatesTokenCount": 400,
            "thoughtsTokenCount": 50,
            "totalTokenCount": 101_500,
        },
        "gemini",
        Usage(1050, 100_000, {}, 450),
        id="gemini-thoughts-are-output",
    ),
    pytest.param(
        {
            "promptTokenCount": 100,
            "candidatesTokenCount": 4,
            "toolUsePromptTokenCount": 30,
            "totalTokenCount": 134,
        },
        "gemini",
        Usage(130, None, {}, 4),
        id="gemini-tool-results-are-input",
    ),
    pytest.param(
        {
            "total_input_tokens": 900,
            "total_cached_tokens": 600,
            "total_output_tokens": 5,
            "total_tokens": 905,
        },
        "gemini-interactions",
        Usage(300, 600, {}, 5),
        id="gemini-interactions",
    ),
    pytest.param(
        {
            "inputTokens": 30,
            "outputTokens": 5,
            "totalTokens": 35,
            "cacheReadInputTokens": 2000,
            "cacheWriteInputTokens": 70,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 50}, {"ttl": "5m", "inputTokens": 20}],
        },
        "bedrock",
        Usage(30, 2000, {"1h": 50, "5m": 20}, 5),
        id="bedrock-excludes-the-cache",
    ),
    pytest.param(
        {"inputTokenCount": 30, "outputTokenCount": 5, "cacheReadInputTokenCount": 7},
        "bedrock",
        Usage(30, 7, {}, 5),
        id="bedrock-invocation-metrics",
    ),
    pytest.param(
        {"prompt_eval_count": 800, "prompt_eval_cached_count": 512, "eval_count": 20},
        "ollama",
        Usage(288, 512, {}, 20),
        id="ollama",
    ),
    pytest.param(
        {"prompt_eval_count": 800, "eval_count": 20}, "ollama", Usage(800, None, {}, 20), id="older-ollama"
    ),
    pytest.param(
        {
            "content": "x",
            "tokens_evaluated": 120,
            "tokens_cached": 139,
            "timings": {"cache_n": 100, "prompt_n": 20, "predicted_n": 19},
        },
        "llama.cpp",
        Usage(20, 100, {}, 19),
        id="llama-completion",
    ),
    pytest.param(
        {
            "usage": {"prompt_tokens": 120, "completion_tokens": 19, "total_tokens": 139},
            "timings": {"cache_n": 100, "prompt_n": 20, "predicted_n": 19},
        },
        "openai-chat",
        Usage(20, 100, {}, 19),
        id="llama-chat-timings-fill-in-the-cached-count",
    ),
    pytest.param(
        {"prompt_tokens": 900, "completion_tokens": 3, "cached_tokens": 256},
        "openai-chat",
        Usage(644, 256, {}, 3),
        id="cached-tokens-beside-the-total",
    ),
    pytest.param(
        {
            "prompt_tokens": 900,
            "completion_tokens": 30,
            "total_tokens": 1000,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 70},
        },
        "openai-chat",
        Usage(900, 0, {}, 100),
        id="xai-counts-reasoning-beside-the-reply",
    ),
]


@pytest.mark.parametrize(("body", "dialect", "usage"), DIALECTS)
def test_each_dialect_gives_the_same_three_parts(body: dict[str, object], dialect: str, usage: Usage) -> None:
    assert decoded(body) == DecodedUsage(usage, dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "details", [None, {}, {"cached_tokens": None}, {"cached_tokens": "many"}, {"cached_tokens": -1}, []]
)
def test_a_missing_cached_count_is_unknown_not_zero(details: object) -> None:
    body = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": details}
    assert decoded(body).usage == Usage(5, None, {}, 1)


@pytest.mark.parametrize(
    "body",
    [
        {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4}},
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4}}},
        {
            "type": "response.completed",
            "response": {"usage": {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 4}}},
        },
        {
            "usage": None,
            "x_groq": {"usage": {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}},
        },
        {"metadata": {"usage": {"inputTokens": 3, "cacheReadInputTokens": 4}}},
        {"usageMetadata": {"promptTokenCount": 7, "cachedContentTokenCount": 4}},
        {"message": {"content": "hi"}, "prompt_eval_count": 7, "prompt_eval_cached_count": 4},
    ],
)
def test_usage_is_found_where_each_api_puts_it(body: dict[str, object]) -> None:
    assert (decoded(body).usage.uncached, decoded(body).usage.read) == (3, 4)


@pytest.mark.parametrize(
    "body", [{}, {"usage": None}, {"usage": {"output_tokens": 3}}, {"error": {"type": "overloaded"}}]
)
def test_no_prompt_count_is_no_usage(body: dict[str, object]) -> None:
    assert decode_usage(body) is None


CONTRADICTIONS = [
    pytest.param(
        {"prompt_tokens": 50, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1000}},
        Usage(50, 1000, {}, 1),
        "not inside",
        id="cached-exceeds-the-total-that-holds-it",
    ),
    pytest.param(
        {
            "prompt_tokens": 2000,
            "completion_tokens": 10,
            "total_tokens": 3010,
            "prompt_tokens_details": {"cached_tokens": 1000},
        },
        Usage(2000, 1000, {}, 10),
        "not inside",
        id="the-total-shows-that-cached-is-beside",
    ),
    pytest.param(
        {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 40},
        },
        Usage(0, 80, {UNSTATED: 40}, 10),
        "not inside",
        id="read-and-written-overlap",
    ),
    pytest.param(
        {"prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 50},
        Usage(40, 60, {}, None),
        "do not add up",
        id="deepseek-parts",
    ),
    pytest.param(
        {"prompt_tokens": 100, "cache_read_input_tokens": 60, "prompt_tokens_details": {"cached_tokens": 0}},
        Usage(40, 60, {}, None),
        "given twice",
        id="two-cached-counts",
    ),
    pytest.param(
        {
            "input_tokens": 5,
            "cache_creation_input_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 60},
        },
        Usage(5, None, {"5m": 60, UNSTATED: 40}, None),
        "lifetimes",
        id="lifetimes-do-not-add-up",
    ),
    pytest.param(
        {"input_tokens": 5000, "cache_read_input_tokens": 4000, "output_tokens": 10, "total_tokens": 5010},
        Usage(5000, 4000, {}, 10),
        "inside input_tokens",
        id="a-translator-that-may-count-inclusively",
    ),
    pytest.param(
        {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 150},
        Usage(100, None, {}, 10),
        "total_tokens is 150",
        id="hidden-reasoning",
    ),
    pytest.param(
        {"tokens_evaluated": 130, "timings": {"cache_n": 100, "prompt_n": 20}},
        Usage(20, 100, {}, None),
        "130",
        id="llama-timings",
    ),
    pytest.param(
        {"promptTokenCount": 10, "cachedContentTokenCount": 20},
        Usage(0, 20, {}, None),
        "exceed",
        id="gemini",
    ),
]


@pytest.mark.parametrize(("body", "usage", "words"), CONTRADICTIONS)
def test_contradictions_are_said(body: dict[str, object], usage: Usage, words: str) -> None:
    found = decoded(body)
    assert found.usage == usage
    assert found.inconsistent is not None
    assert words in found.inconsistent


def test_a_zero_breakdown_beside_a_total_is_no_contradiction() -> None:
    body = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    }
    assert decoded(body) == DecodedUsage(Usage(5, None, {UNSTATED: 100}, None), "anthropic")


def test_compaction_is_billed_beside_the_turn() -> None:
    message = {"type": "message", "input_tokens": 20, "output_tokens": 5}
    compaction = {
        "type": "compaction",
        "input_tokens": 900,
        "cache_read_input_tokens": 10,
        "cache_creation_input_tokens": 0,
        "output_tokens": 70,
    }
    body = {"input_tokens": 20, "output_tokens": 5, "iterations": [compaction, message, None]}
    assert decoded(body).beside == (Usage(900, 10, {UNSTATED: 0}, 70),)
    assert decoded(body).usage == Usage(20, None, {}, 5)


NAMES = st.sampled_from(
    [
        "usage",
        "usageMetadata",
        "message",
        "response",
        "timings",
        "cache_n",
        "prompt_n",
        "tokens_evaluated",
        "input_tokens",
        "output_tokens",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "cached_tokens",
        "prompt_tokens_details",
        "input_tokens_details",
        "completion_tokens_details",
        "reasoning_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "ephemeral_5m_input_tokens",
        "cache_write_tokens",
        "cache_write_tokens_details",
        "ttl_12h_tokens",
        "prompt_cache_hit_tokens",
        "prompt_cache_miss_tokens",
        "promptTokenCount",
        "cachedContentTokenCount",
        "inputTokens",
        "cacheDetails",
        "cacheWriteInputTokens",
        "ttl",
        "prompt_eval_count",
        "iterations",
        "type",
        "compaction",
    ]
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["compaction", "5m", "", "12"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=8)
    ),
)


@given(st.dictionaries(NAMES, JSON, max_size=10))
def test_arbitrary_json_never_crashes_and_never_gives_a_negative_count(body: dict[str, object]) -> None:
    found = decode_usage(body)
    if found is not None:
        for usage in (found.usage, *found.beside):
            counts = [usage.uncached, usage.read, usage.output, *usage.write.values()]
            assert all(count is None or (type(count) is int and count >= 0) for count in counts)
            assert usage.total == usage.uncached + (usage.read or 0) + sum(usage.write.values())
        json.dumps([found.usage.uncached, found.usage.read, dict(found.usage.write)])


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**5))
def test_the_same_request_reads_the_same_in_every_convention(
    uncached: int, read: int, write: int, output: int
) -> None:
    total = uncached + read + write
    expected = Usage(uncached, read, {UNSTATED: write}, output)
    exclusive = {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
    }
    chat = {
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
    }
    responses = {
        "input_tokens": total,
        "output_tokens": output,
        "total_tokens": total + output,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
    }
    bedrock = {
        "inputTokens": uncached,
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": write,
        "outputTokens": output,
    }
    for body in (exclusive, chat, responses, bedrock):
        assert decoded(body).usage == expected
        assert decoded(body).inconsistent is None
