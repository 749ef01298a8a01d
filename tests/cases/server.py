"""Simulated caches, written apart from the product: rendered texts, four characters a token.

`PrefixServer` reads the longest shared start in whole blocks, `MarkServer`
only what was written at a breakpoint. Both put their answer into the usage
fields of the API that they speak.
"""

from __future__ import annotations

import json
from typing import Any

PER_TOKEN = 4


def rendered(body: dict[str, Any], tools_first: bool = True) -> list[tuple[str, str | None]]:
    """(text, lifetime of the breakpoint behind it or None) in the order in which a server reads."""
    tools = body.get("tools") or body.get("toolConfig", {}).get("tools") or []
    head = body.get("system") or body.get("systemInstruction") or body.get("instructions") or []
    history = body.get("messages") or body.get("input") or body.get("contents") or body.get("prompt") or []
    groups = [tools, head, history] if tools_first else [head, tools, history]
    pieces: list[tuple[str, str | None]] = []
    for group in groups:
        elements = [group] if isinstance(group, (str, dict)) else group
        for element in elements:
            inner = (
                element.get("content")
                if isinstance(element, dict) and isinstance(element.get("content"), list)
                else None
            )
            for block in inner if inner is not None else [element]:
                pieces += _piece(block, element if inner is not None else {}, pieces)
    if body.get("cache_control") and pieces:
        pieces[-1] = (pieces[-1][0], body["cache_control"].get("ttl", "5m"))
    return pieces


def _piece(
    block: Any, around: dict[str, Any], so_far: list[tuple[str, str | None]]
) -> list[tuple[str, str | None]]:
    if isinstance(block, dict) and "cachePoint" in block:
        so_far[-1] = (so_far[-1][0], block["cachePoint"].get("ttl", "5m"))
        return []
    life = None
    if isinstance(block, dict) and "cache_control" in block:
        life = block["cache_control"].get("ttl", "5m")
        block = {k: v for k, v in block.items() if k != "cache_control"}
    if isinstance(block, dict) and around:
        block = {"role": around.get("role"), **block}
    if isinstance(block, dict) and any(name in json.dumps(block) for name in _MEDIA):
        block = {**block, "size": "I" * 4000}
    return [(block if isinstance(block, str) else json.dumps(block), life)]


_MEDIA = ('"image_url"', '"image"', '"inlineData"', '"fileData"', '"images"')


def tokens(texts: list[str]) -> int:
    return sum(len(t) for t in texts) // PER_TOKEN


class Server:
    """What the scenarios ask: the figures of one request, which is remembered."""

    def figures(
        self, body: dict[str, Any], t: float, status: int | None, latency: float
    ) -> dict[str, Any] | None:
        raise NotImplementedError


class PrefixServer(Server):
    """Longest common prefix of characters with anything seen, in blocks of `grain` tokens."""

    def __init__(
        self,
        dialect: str,
        *,
        grain: int = 128,
        minimum: int = 1024,
        tools_first: bool = True,
        idle: float | None = None,
        blind: bool = False,
    ) -> None:
        self.dialect, self.grain, self.minimum = dialect, grain, minimum
        self.tools_first, self.idle = tools_first, idle
        self.seen: list[tuple[str, float, str]] = []
        self.miss_next = 0
        """Requests that find nothing, as when another machine serves them."""

    def figures(
        self, body: dict[str, Any], t: float, status: int | None, latency: float
    ) -> dict[str, Any] | None:
        prompt = "".join(x for x, _ in rendered(body, self.tools_first))
        scope = json.dumps([body.get("model")])
        total = len(prompt) // PER_TOKEN
        shared = max(
            (
                _common(old, prompt)
                for old, when, key in self.seen
                if key == scope and (self.idle is None or t - when <= self.idle)
            ),
            default=0,
        )
        read = shared // PER_TOKEN // self.grain * self.grain
        if read < self.minimum or self.miss_next:
            read = 0
        self.miss_next = max(0, self.miss_next - 1)
        if (status or 200) < 400:
            self.seen = [*self.seen[-12:], (prompt, t, scope)]
        match self.dialect:
            case "openai-chat":
                return {
                    "prompt_tokens": total,
                    "completion_tokens": 90,
                    "prompt_tokens_details": {"cached_tokens": read},
                }
            case "openai-responses":
                return {
                    "input_tokens": total,
                    "output_tokens": 90,
                    "input_tokens_details": {"cached_tokens": read},
                }
            case "gemini":
                return {
                    "promptTokenCount": total,
                    "candidatesTokenCount": 90,
                    "cachedContentTokenCount": read,
                }
            case "ollama":
                return {"prompt_eval_count": total, "eval_count": 90, "prompt_eval_cached_count": read}
        raise ValueError(self.dialect)


def _common(a: str, b: str) -> int:
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    low, high = 0, n
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle)
    return low


class MarkServer(Server):
    """Entries at breakpoints, a look back of twenty blocks, lifetimes of five minutes or an hour."""

    def __init__(self, dialect: str, *, minimum: int = 1024, honours: tuple[str, ...] = ("5m", "1h")) -> None:
        self.dialect, self.minimum, self.honours = dialect, minimum, honours
        self.entries: dict[str, tuple[float, float, float]] = {}
        """Prefix: (last use, lifetime, when it can first be read)."""

    def figures(
        self, body: dict[str, Any], t: float, status: int | None, latency: float
    ) -> dict[str, Any] | None:
        pieces = rendered(body)
        total = tokens([x for x, _ in pieces])
        marked = [(i + 1, life) for i, (_, life) in enumerate(pieces) if life]
        if len(marked) > 4 or (status or 200) >= 400:
            return None
        read = 0
        for boundary, _ in reversed(marked):
            for at in range(boundary, max(0, boundary - 20), -1):
                key = self._key(body, pieces, at)
                entry = self.entries.get(key)
                size = tokens([x for x, _ in pieces[:at]])
                if (
                    entry
                    and t - entry[0] <= entry[1]
                    and entry[2] <= t
                    and size >= self.minimum
                    and size > read
                ):
                    read = size
                    self.entries[key] = (t, entry[1], entry[2])
        write = {"5m": 0, "1h": 0}
        last = read
        for boundary, life in marked:
            size = tokens([x for x, _ in pieces[:boundary]])
            kept = life if life in self.honours else "5m"
            if size >= self.minimum:
                if size > last:
                    write[kept or "5m"] += size - last
                    last = size
                self.entries[self._key(body, pieces, boundary)] = (
                    t,
                    3600 if kept == "1h" else 300,
                    t + latency / 2,
                )
        rest = total - read - sum(write.values())
        if self.dialect == "bedrock":
            return {
                "inputTokens": rest,
                "cacheReadInputTokens": read,
                "cacheWriteInputTokens": sum(write.values()),
                "outputTokens": 90,
            }
        return {
            "input_tokens": rest,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": sum(write.values()),
            "cache_creation": {
                "ephemeral_5m_input_tokens": write["5m"],
                "ephemeral_1h_input_tokens": write["1h"],
            },
            "output_tokens": 90,
        }

    def _key(self, body: dict[str, Any], pieces: list[tuple[str, str | None]], boundary: int) -> str:
        key = [body.get("model"), body.get("tool_choice")]
        return json.dumps(key) + "".join(x for x, _ in pieces[:boundary])


def server_for(api: str) -> Server:
    """The usual server behind an API."""
    match api:
        case "anthropic" | "bedrock":
            return MarkServer(api)
        case "ollama":
            return PrefixServer("ollama", grain=1, minimum=1, tools_first=False)
        case "completions":
            return PrefixServer("openai-chat", grain=128)
    return PrefixServer(api)
