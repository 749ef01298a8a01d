"""Servers that keep one cache for all, told apart by a salt: vLLM and SGLang as they are measured.

Each run has a cache salt of its own, so that nobody else's entries are read or
lost. Where usage does not name cached tokens, the counters of `/metrics` do.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from prefixguard.engines import Engine
from prefixguard.engines.client import JsonClient
from prefixguard.engines.kv_events import KvEvents, subscribe
from prefixguard.engines.replay.counted import Counted
from prefixguard.engines.replay.layers import layers, windowed
from prefixguard.engines.sglang import Sglang
from prefixguard.engines.tokenizing import TokenizingServer
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import ServerError
from prefixguard.rulebook import Rulebook
from prefixguard.trial import EngineFacts, Shown


class SaltedBench:
    """A server whose requests take a `cache_salt`.

    asked, hit: its counters of prompt tokens, of all and of those that were cached.
    """

    asked: str
    hit: str
    # Without a parser of calls these servers refuse requests with tools, unless calls are forbidden.
    no_calls = True

    def __init__(self, server: TokenizingServer, client: JsonClient, facts: EngineFacts) -> None:
        self.engine: Engine = server
        self.client = client
        self.model = server.model
        self.facts = facts
        self.notes: tuple[str, ...] = ()
        self._server = server
        self._last: tuple[float, float] | None = None

    def fresh(self) -> Mapping[str, Any]:
        self._last = self._counters()
        return {"cache_salt": f"prefixguard-{secrets.token_hex(8)}"}

    def counted(self, body: bytes) -> Counted:
        before, self._last = self._last, self._counters()
        if before is None or self._last is None:
            return Counted()
        prompt, cached = (round(now - then) for now, then in zip(self._last, before, strict=True))
        return Counted(prompt, cached)

    def _counters(self) -> tuple[float, float] | None:
        try:
            metrics = self._server.metrics()
        except ServerError:
            return None  # SGLang shows none unless it is asked to at its start
        asked, hit = metrics.sum(self.asked), metrics.sum(self.hit)
        return (asked, hit or 0.0) if asked is not None else None

    def counts(self) -> float | None:
        found = self._counters()
        return found[0] if found is not None else None

    def shown(self) -> Shown:
        return Shown()


class VllmBench(SaltedBench):
    """A vLLM server. Its cache's events are heard where it publishes any."""

    asked = "vllm:prefix_cache_queries_total"
    hit = "vllm:prefix_cache_hits_total"

    def __init__(
        self, engine: Vllm, client: JsonClient, model: str | None, flags: tuple[str, ...], rules: Rulebook,
        kv_events: str | None = None,
    ) -> None:  # fmt: skip
        less = windowed(layers(model, engine.model, rules), whole_windows=engine.retention == "None")
        rule = f"vllm:block={engine.block}" + (",hybrid" if less else "")
        facts = EngineFacts(engine.kind, engine.version, engine.model, rule, flags, less, engine.caching)
        super().__init__(engine, client, facts)
        self._events: KvEvents | None = None
        try:
            self._events = subscribe(client, kv_events)
        except ServerError as error:
            if kv_events is not None:
                raise
            self.notes = (str(error),)

    def counts(self) -> float | None:
        return self._server.metrics().sum("vllm:prompt_tokens_total")

    def shown(self) -> Shown:
        if self._events is None:
            return Shown()
        events = self._events.heard()
        lost, self._events.lost = self._events.lost, 0
        return Shown(events, lost=lost)


class SglangBench(SaltedBench):
    """An SGLang server."""

    asked = "sglang:prompt_tokens_total"
    hit = "sglang:cached_tokens_total"

    def __init__(
        self, engine: Sglang, client: JsonClient, model: str | None, flags: tuple[str, ...], rules: Rulebook
    ) -> None:
        less = windowed(layers(model, str(engine.info.get("model_path") or engine.model), rules))
        rule = f"sglang:page={engine.page}" + (",hybrid" if less else "")
        facts = EngineFacts(engine.kind, engine.version, engine.model, rule, flags, less, engine.caching)
        super().__init__(engine, client, facts)
