"""How many of a prompt's tokens the scripted server says it had cached: two rules, as vendors have them.

Tokens are those of one open vocabulary over the JSON of a prompt's parts. That
is no vendor's count, and need not be: the analysis has to live with servers
that count otherwise than it does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bench.agents.script import Api, Json

_LEAST = 1024
_BLOCK = 128
_LOOK_BACK = 20


@dataclass(frozen=True)
class Usage:
    """Input tokens by what became of them."""

    total: int
    read: int
    written: int = 0


@dataclass
class Cache:
    """Remembers the prompts of one server. Entries do not expire: a run takes a minute."""

    prompts: list[tuple[str, list[bytes]]] = field(default_factory=list)
    entries: set[bytes] = field(default_factory=set)

    def take(self, api: Api, model: str, body: Json, host: str = "") -> Usage:
        """The usage of a prompt, which is remembered. host: the name under which it was asked for."""
        body = as_read(host, body)
        if api == "messages":
            return self._by_breakpoints(model, body)
        return self._by_prefix(api, model, body)

    def _by_prefix(self, api: Api, model: str, body: Json) -> Usage:
        """The longest start that an earlier prompt shares, in whole blocks."""
        parts = [unit for unit, _ in units(api, body)]
        shared = max((_shared(parts, other) for name, other in self.prompts if name == model), default=0)
        self.prompts.append((model, parts))
        total = sum(map(tokens, parts))
        read = min(shared, total - 1) // _BLOCK * _BLOCK
        return Usage(total, read if read >= _LEAST else 0)

    def _by_breakpoints(self, model: str, body: Json) -> Usage:
        """What the client marked: read up to a known mark, written up to the last one."""
        digest = hashlib.blake2b(model.encode())
        ends: list[tuple[bytes, int, bool]] = []
        size = 0
        for unit, marked in units("messages", body):
            digest.update(unit)
            size += tokens(unit)
            ends.append((digest.copy().digest(), size, marked))
        total = ends[-1][1] if ends else 0
        marks = [i for i, (_, tokens, marked) in enumerate(ends) if marked and tokens >= _LEAST]
        read = 0
        for at in reversed(marks):
            reach = range(at, max(-1, at - _LOOK_BACK), -1)
            read = max(read, next((ends[i][1] for i in reach if ends[i][0] in self.entries), 0))
        self.entries.update(ends[at][0] for at in marks)
        written = max(0, ends[marks[-1]][1] - read) if marks else 0
        return Usage(total, read, written)


def as_read(host: str, body: Json) -> Json:
    """Anthropic's own server drops Claude Code's attribution block, which changes with each request."""
    system = body.get("system")
    if host != "api.anthropic.com" or not isinstance(system, list) or not system:
        return body
    drop = str(system[0].get("text")).startswith("x-anthropic-billing-header:")
    return {**body, "system": system[1:]} if drop else body


def units(api: Api, body: Json) -> list[tuple[bytes, bool]]:
    """The prompt in pieces, in the order in which it is read, and whether each is marked for the cache."""
    parts: list[Any] = list(body.get("tools") or ())
    if api == "messages":
        parts += _blocks(body.get("system"))
        for message in body.get("messages") or ():
            parts += [{"role": message.get("role"), **block} for block in _blocks(message.get("content"))]
        last = bool(body.get("cache_control"))
        found = [_unit(part) for part in parts]
        return [(text, marked or (last and i == len(found) - 1)) for i, (text, marked) in enumerate(found)]
    if api == "chat":
        parts += body.get("messages") or ()
    elif api == "responses":
        parts += [body.get("instructions") or ""]
        items = body.get("input") or ()
        parts += [_item(item) for item in items] if isinstance(items, list) else [items]
    else:
        parts += [body.get("systemInstruction") or "", *(body.get("contents") or ())]
    return [_unit(part) for part in parts]


def _item(item: Json) -> Json:
    """What a model reads of an item: a client sends a reply back without some of its members."""
    content = item.get("content")
    texts = [c.get("text", c) for c in content] if isinstance(content, list) else content
    read = ("type", "role", "name", "arguments", "input", "call_id", "output", "encrypted_content", "summary")
    return {name: item[name] for name in read if name in item} | {"content": texts}


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _unit(part: Any) -> tuple[bytes, bool]:
    marked = isinstance(part, dict) and bool(part.get("cache_control"))
    if marked:
        part = {name: value for name, value in part.items() if name != "cache_control"}
    return json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode(), marked


@lru_cache(maxsize=4096)
def tokens(unit: bytes) -> int:
    """The tokens of one part."""
    from prefixguard.tokens.encodings import counter

    return counter("o200k_base")(unit.decode())


def _shared(one: list[bytes], other: list[bytes]) -> int:
    """Tokens of the common start; inside the part that differs, by its bytes."""
    found = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            same = next(
                (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
            )
            return found + tokens(a) * same // len(a)
        found += tokens(a)
    return found
