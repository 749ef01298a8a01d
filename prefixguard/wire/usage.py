"""Reads what a server says of its tokens, whichever dialect it says it in.

Decoding goes by the fields that are there, never by the path: gateways answer
one API in the words of another. What comes out is `turn.Usage`, where the
prompt is always uncached + read + written; a figure that the server left out
is unknown and stays None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prefixguard.turn import Usage

type Dialect = Literal[
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gateway",
    "deepseek",
    "gemini",
    "gemini-interactions",
    "bedrock",
    "ollama",
    "llama.cpp",
]
type _Fields = Mapping[str, Any]

UNSTATED = "default"
"""Key in `Usage.write` for tokens whose lifetime the server did not state."""

_TTL_FIELD = re.compile(r"(?:ephemeral|ttl)_(\d+[smhd])_(?:input_)?tokens")
_MOST = 2**53
"""Larger figures are no token counts, and a float could not hold them."""


@dataclass(frozen=True, slots=True)
class DecodedUsage:
    """A server's figures, understood.

    dialect: the counting convention that the fields follow; "gateway" is
        Anthropic's field names inside an OpenAI total.
    inconsistent: one sentence on how totals and parts contradict each other
        under that convention (PG803), or None when they add up.
    beside: server-side requests that are billed with this one although its
        totals leave them out (Anthropic's compaction iterations).
    """

    usage: Usage
    dialect: Dialect
    inconsistent: str | None = None
    beside: tuple[Usage, ...] = ()


def decode_usage(body: Mapping[str, Any]) -> DecodedUsage | None:
    """The usage in a response body, a stream event, or a bare usage object.

    None when it holds no count of prompt tokens. Never raises, whatever the
    JSON holds: a field of the wrong type counts as absent.
    """
    fields = _usage_object(body)
    for reader in _READERS:
        decoded = reader(fields)
        if decoded is not None:
            return _with_timings(decoded, body)
    return _timings(body)


def _usage_object(body: _Fields, depth: int = 2) -> _Fields:
    """The object that holds the counts: under the name that its API gives it, or the body itself."""
    for name in ("usage", "usageMetadata", "usage_metadata", "amazon-bedrock-invocationMetrics"):
        found = body.get(name)
        if isinstance(found, Mapping):
            return found
    if depth:
        # A Responses event, Anthropic's message_start, Bedrock's metadata event, Groq's last chunk.
        for name in ("response", "message", "metadata", "x_groq"):
            inner = body.get(name)
            if isinstance(inner, Mapping) and (usage := _usage_object(inner, depth - 1)) is not inner:
                return usage
    return body


def _count(fields: _Fields, *names: str) -> int | None:
    """The first of the named fields that holds a token count."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
            return value
    return None


def _part(fields: _Fields, *names: str) -> _Fields:
    """The first of the named fields that holds an object, or an empty one."""
    for name in names:
        if isinstance(value := fields.get(name), Mapping):
            return value
    return {}


def _anthropic(fields: _Fields) -> DecodedUsage | None:
    """`input_tokens` counts only what was neither read nor written."""
    uncached = _count(fields, "input_tokens")
    if uncached is None or _part(fields, "input_tokens_details") or _count(fields, "prompt_tokens"):
        return None
    if "cache_read_input_tokens" not in fields and "cache_creation_input_tokens" not in fields:
        # Without cache fields the two conventions agree; only OpenAI states a total.
        return _input_tokens(fields) if "total_tokens" in fields else _beside_the_cache(fields, uncached)
    return _beside_the_cache(fields, uncached)


def _beside_the_cache(fields: _Fields, uncached: int) -> DecodedUsage:
    read = _count(fields, "cache_read_input_tokens")
    write, problem = _writes(
        _count(fields, "cache_creation_input_tokens"), _by_ttl(_part(fields, "cache_creation"))
    )
    output = _count(fields, "output_tokens")
    cached = (read or 0) + sum(write.values())
    total = _count(fields, "total_tokens")
    if total is not None and output is not None and cached and not problem:
        if total == uncached + output and cached <= uncached:
            problem = (
                f"total_tokens {total} leaves the {cached} cached and written tokens out: "
                "whoever added it up may count them inside input_tokens"
            )
        elif total not in (uncached + output, uncached + output + cached):
            problem = f"total_tokens is {total}, but the parts add up to {uncached + output + cached}"
    usage = Usage(uncached, read, write, output)
    return DecodedUsage(usage, "anthropic", problem, tuple(_compactions(fields)))


def _compactions(fields: _Fields) -> list[Usage]:
    iterations = fields.get("iterations")
    if not isinstance(iterations, list):
        return []
    return [
        _beside_the_cache({**entry, "iterations": None}, uncached).usage
        for entry in iterations
        if isinstance(entry, Mapping)
        and entry.get("type") == "compaction"
        and (uncached := _count(entry, "input_tokens")) is not None
    ]


def _prompt_tokens(fields: _Fields) -> DecodedUsage | None:
    """OpenAI Chat and everything that copies it: cached tokens are inside `prompt_tokens`."""
    total = _count(fields, "prompt_tokens")
    if total is None or (not total and _count(fields, "input_tokens")):
        return None
    details = _part(fields, "prompt_tokens_details", "input_tokens_details")
    dialect: Dialect = "openai-chat"
    if "cache_read_input_tokens" in fields or "cache_creation_input_tokens" in fields:
        dialect = "gateway"
    elif "prompt_cache_hit_tokens" in fields:
        dialect = "deepseek"
    return _inside_the_total(fields, details, total, _count(fields, "completion_tokens"), dialect)


def _input_tokens(fields: _Fields) -> DecodedUsage | None:
    """OpenAI Responses: cached tokens are inside `input_tokens`."""
    total = _count(fields, "input_tokens")
    if total is None:
        return None
    details = _part(fields, "input_tokens_details")
    return _inside_the_total(fields, details, total, _count(fields, "output_tokens"), "openai-responses")


def _inside_the_total(
    fields: _Fields, details: _Fields, total: int, output: int | None, dialect: Dialect
) -> DecodedUsage:
    problem: str | None = None
    reads = {
        name: value
        for name, value in (
            ("cached_tokens", _count(details, "cached_tokens")),
            ("cached_tokens", _count(fields, "cached_tokens", "num_cached_tokens")),
            ("cache_read_input_tokens", _count(fields, "cache_read_input_tokens")),
            ("prompt_cache_hit_tokens", _count(fields, "prompt_cache_hit_tokens")),
        )
        if value is not None
    }
    read = max(reads.values(), default=None)
    if len(set(reads.values())) > 1:
        problem = "the cached tokens are given twice: " + " and ".join(f"{k} {v}" for k, v in reads.items())
    by_ttl = _by_ttl(_part(details, "cache_write_tokens_details", "cache_creation_token_details")) or _by_ttl(
        _part(fields, "cache_creation", "cache_write_tokens_details")
    )
    written = _count(details, "cache_write_tokens", "cache_creation_tokens")
    if written is None:
        written = _count(fields, "cache_write_tokens", "cache_creation_input_tokens")
    write, problem_with_writes = _writes(written, by_ttl)
    problem = problem or problem_with_writes

    cached = (read or 0) + sum(write.values())
    uncached = total - cached
    miss = _count(fields, "prompt_cache_miss_tokens")
    if miss is not None and read is not None and miss + read != total:
        problem = problem or f"{read} hit and {miss} missed tokens do not add up to prompt_tokens {total}"
    output, gap = _whole_output(fields, total, output)
    if uncached < 0 or (gap and cached and gap == cached):
        problem = problem or (
            f"{read or 0} cached and {cached - (read or 0)} written tokens are not inside the prompt total "
            f"of {total}, where this API counts them: taken as beside it"
        )
        uncached = total if gap == cached or dialect == "gateway" or (read or 0) > total else 0
    elif gap:
        parts = total + (output or 0)
        problem = problem or f"total_tokens is {parts + gap}, but prompt and reply add up to {parts}"
    return DecodedUsage(Usage(uncached, read, write, output), dialect, problem)


def _whole_output(fields: _Fields, prompt: int, output: int | None) -> tuple[int | None, int]:
    """The reply with its reasoning, and how far `total_tokens` is still off.

    Some servers (xAI) count reasoning beside `completion_tokens`; the total shows it.
    """
    stated = _count(fields, "total_tokens")
    if stated is None or output is None:
        return output, 0
    gap = stated - prompt - output
    details = _part(fields, "completion_tokens_details", "output_tokens_details")
    if gap > 0 and gap == _count(details, "reasoning_tokens"):
        return output + gap, 0
    return output, gap


def _gemini(fields: _Fields) -> DecodedUsage | None:
    """`usageMetadata` of generateContent, and `usage` of the Interactions API, in either spelling."""
    dialect: Dialect = "gemini"
    total = _count(fields, "promptTokenCount", "prompt_token_count")
    if total is None:
        dialect = "gemini-interactions"
        total = _count(fields, "total_input_tokens", "totalInputTokens")
    if total is None:
        return None
    read = _count(
        fields,
        "cachedContentTokenCount",
        "cached_content_token_count",
        "total_cached_tokens",
        "totalCachedTokens",
    )
    reply = _count(
        fields, "candidatesTokenCount", "candidates_token_count", "total_output_tokens", "totalOutputTokens"
    )
    thoughts = _count(
        fields, "thoughtsTokenCount", "thoughts_token_count", "total_thought_tokens", "totalThoughtTokens"
    )
    # Results of built-in tools are read by the model and billed as input, beside the prompt that was sent.
    tools = _count(
        fields,
        "toolUsePromptTokenCount",
        "tool_use_prompt_token_count",
        "total_tool_use_tokens",
        "totalToolUseTokens",
    )
    output = None if reply is None and thoughts is None else (reply or 0) + (thoughts or 0)
    problem = None
    stated = _count(fields, "totalTokenCount", "total_token_count", "total_tokens", "totalTokens")
    parts = total + (output or 0) + (tools or 0)
    if stated is not None and output is not None and stated != parts:
        problem = f"the total is {stated}, but prompt, tool results and reply add up to {parts}"
    if (read or 0) > total:
        problem = f"{read} cached tokens exceed the prompt of {total}, which should contain them"
    usage = Usage(max(0, total - (read or 0)) + (tools or 0), read, {}, output)
    return DecodedUsage(usage, dialect, problem)


def _bedrock(fields: _Fields) -> DecodedUsage | None:
    """Converse, and the metrics of InvokeModel: `inputTokens` excludes the cache.

    Its `totalTokens` is no witness: some models' leave the cached tokens out of it.
    """
    uncached = _count(fields, "inputTokens", "inputTokenCount")
    if uncached is None:
        return None
    by_ttl: dict[str, int] = {}
    details = fields.get("cacheDetails")
    for entry in details if isinstance(details, list) else ():
        if isinstance(entry, Mapping) and isinstance(ttl := entry.get("ttl"), str):
            by_ttl[ttl] = by_ttl.get(ttl, 0) + (_count(entry, "inputTokens") or 0)
    write, problem = _writes(
        _count(fields, "cacheWriteInputTokens", "cacheWriteInputTokenCount", "cacheWriteInputTokensCount"),
        by_ttl,
    )
    read = _count(fields, "cacheReadInputTokens", "cacheReadInputTokenCount", "cacheReadInputTokensCount")
    output = _count(fields, "outputTokens", "outputTokenCount")
    return DecodedUsage(Usage(uncached, read, write, output), "bedrock", problem)


def _ollama(fields: _Fields) -> DecodedUsage | None:
    """Ollama's own API: counts stand at the top of the last chunk."""
    total = _count(fields, "prompt_eval_count")
    if total is None:
        return None
    read = _count(fields, "prompt_eval_cached_count")
    problem = None
    if (read or 0) > total:
        problem = f"{read} cached tokens exceed prompt_eval_count {total}, which should contain them"
    return DecodedUsage(
        Usage(max(0, total - (read or 0)), read, {}, _count(fields, "eval_count")), "ollama", problem
    )


def _timings(body: _Fields) -> DecodedUsage | None:
    """llama.cpp's own figures: `cache_n` reused, `prompt_n` evaluated, `predicted_n` generated."""
    timings = _part(body, "timings")
    evaluated, read = _count(timings, "prompt_n"), _count(timings, "cache_n")
    if evaluated is None:
        return None
    problem = None
    total = _count(body, "tokens_evaluated")  # /completion: the whole prompt, despite its name
    if total is not None and read is not None and read + evaluated != total:
        problem = f"{read} reused and {evaluated} evaluated tokens do not add up to the prompt of {total}"
    return DecodedUsage(Usage(evaluated, read, {}, _count(timings, "predicted_n")), "llama.cpp", problem)


def _with_timings(decoded: DecodedUsage, body: _Fields) -> DecodedUsage:
    """Fills in, from llama.cpp's timings beside the usage, a cached count that the usage left out."""
    own = _timings(body)
    if own is None or own.usage.read is None or decoded.usage.read is not None:
        return decoded
    prompt = decoded.usage.total
    problem = decoded.inconsistent
    if own.usage.total != prompt:
        problem = (
            problem
            or f"timings count {own.usage.total} tokens of prompt, the usage beside them counts {prompt}"
        )
    usage = Usage(max(0, prompt - own.usage.read), own.usage.read, decoded.usage.write, decoded.usage.output)
    return DecodedUsage(usage, decoded.dialect, problem, decoded.beside)


def _by_ttl(fields: _Fields) -> dict[str, int]:
    """Written tokens by lifetime, from fields such as `ephemeral_5m_input_tokens` or `ttl_12h_tokens`."""
    return {
        match[1]: value
        for name in fields
        if isinstance(name, str)
        and (match := _TTL_FIELD.fullmatch(name)) is not None
        and (value := _count(fields, name)) is not None
    }


def _writes(total: int | None, by_ttl: Mapping[str, int]) -> tuple[dict[str, int], str | None]:
    """Written tokens by lifetime, and what is wrong with them.

    Without a breakdown the lifetime is unstated; an all-zero breakdown beside
    a total (streams that carry it only at their start) is none.
    """
    split = sum(by_ttl.values())
    if total is None or total == split:
        return dict(by_ttl) if by_ttl or total is None else {UNSTATED: total}, None
    if not split:
        return {UNSTATED: total}, None
    problem = f"{total} written tokens, but their lifetimes add up to {split}"
    if split > total:
        return dict(by_ttl), problem
    return {**by_ttl, UNSTATED: total - split}, problem


_READERS: tuple[Callable[[_Fields], DecodedUsage | None], ...] = (
    _anthropic,
    _prompt_tokens,
    _input_tokens,
    _gemini,
    _bedrock,
    _ollama,
)
