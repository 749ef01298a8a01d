"""What a measurement needs of a server beyond rendering: a fresh start, its rule, its own clock."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from prefixguard.engines import Engine
from prefixguard.engines.client import JsonClient
from prefixguard.engines.kv_events import KvEvents, subscribe
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.engines.metrics import Metrics
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import InputError, ServerError
from prefixguard.kv import Model
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook
from prefixguard.trial import EngineFacts, Shown, Slot

_PREFILL = re.compile(rb'"prompt_ms":\s*([\d.eE+-]+)')
_COUNTERS = (
    "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_seconds_total",
)  # fmt: skip
_SECONDS_FOR_A_PROMPT = 600.0


@dataclass(frozen=True, slots=True)
class Counted:
    """A server's own figures of one prompt, for what its usage lacks, in tokens and milliseconds."""

    prompt: int | None = None
    cached: int | None = None
    prefill_ms: float | None = None


class Bench(Protocol):
    """A server that is measured.

    model: the name that requests must carry. facts: for reports, with the rule
    that predicts. counts: what the server says of its load, prompt tokens since
    its start, None where it does not say. no_calls: forbid tool calls. notes:
    what the reader of a report must know of it.
    """

    engine: Engine
    client: JsonClient
    model: str
    no_calls: bool
    facts: EngineFacts
    notes: tuple[str, ...]

    def fresh(self) -> Mapping[str, Any]:
        """Makes the next prompt read nothing; gives fields that every request of the run must carry."""
        ...

    def counted(self, body: bytes) -> Counted:
        """What the server says of the prompt that it has just answered with `body`, beside its usage."""
        ...

    def counts(self) -> float | None: ...

    def shown(self) -> Shown:
        """What the server shows beside its usage, since it was last asked."""
        ...


def bench_for(
    engine: Engine, *, key: str | None = None, model: str | None = None, flags: tuple[str, ...] = (),
    kv_events: str | None = None, rulebook: Rulebook | None = None,
) -> Bench:  # fmt: skip
    """The bench of an attached server. model: a file or name that tells the model's layers, where the
    server does not. flags: the options of a server that we launched. kv_events: where it publishes the
    events of its cache, for a vLLM that does not say so itself. Raises ServerError, InputError.
    """
    client = JsonClient(engine.url, key=key, timeout=_SECONDS_FOR_A_PROMPT)
    rules = rulebook or Rulebook()
    if isinstance(engine, LlamaCpp):
        if kv_events is not None:
            raise InputError("--kv-events: llama.cpp publishes no events of its cache, vLLM does")
        return LlamaCppBench(engine, client, model, flags, rules)
    if isinstance(engine, Vllm):
        return VllmBench(engine, client, model, flags, rules, kv_events)
    raise ServerError(f"{engine.url}: {engine.kind} servers cannot be measured")


class LlamaCppBench:
    """A llama.cpp server. A fresh start erases every slot, or fills it with what nobody begins with."""

    def __init__(
        self, engine: LlamaCpp, client: JsonClient, model: str | None, flags: tuple[str, ...], rules: Rulebook
    ) -> None:
        self.engine: Engine = engine
        self.notes: tuple[str, ...] = ()
        self.client = client
        self.no_calls = False
        self._flush = engine.tokenize("~ ~ ~", begin=False).tolist()
        self._slots = engine.properties.slots
        self._has_metrics = True
        self._shows_slots = True
        self._last: tuple[float, ...] | None = None
        self.model = engine.properties.model
        shape = _shape(model, rules) if model else _found(str(engine.properties.model), rules)
        windowed = _windowed(shape, whole_windows="--swa-full" in flags)
        rule = f"llama.cpp:slots={self._slots}" + (",hybrid" if windowed else "")
        self.facts = EngineFacts(
            engine.kind, engine.properties.build, Path(self.model).name or "unknown", rule, flags, windowed
        )

    def fresh(self) -> Mapping[str, Any]:
        for slot in range(self._slots):
            try:
                self.client.post(f"/slots/{slot}?action=erase", {})
            except ServerError:
                self._flood(slot)
        self._last = self._metrics()
        return {}

    def _flood(self, slot: int) -> None:
        try:
            self.client.post("/completion", {"prompt": self._flush, "n_predict": 0, "id_slot": slot})
        except ServerError as error:
            # Some builds complain of what the model sampled; the prompt stands in the slot by then.
            if " answered 500" not in str(error):
                raise

    def counted(self, body: bytes) -> Counted:
        # Answers to Anthropic's API carry no times, and an answer that broke off no counts: what the
        # server's counters grew by is this prompt's.
        before, self._last = self._last, self._metrics()
        told = _PREFILL.findall(body)
        prefill = float(told[-1]) if told else None
        if before is None or self._last is None:
            return Counted(prefill_ms=prefill)
        fresh, cached, seconds = (now - then for now, then in zip(self._last, before, strict=True))
        return Counted(
            round(fresh + cached), round(cached), prefill if prefill is not None else seconds * 1000
        )

    def _metrics(self) -> tuple[float, ...] | None:
        """The counters of prompts since the server's start; None where `/metrics` is switched off."""
        if not self._has_metrics:
            return None
        try:
            metrics = Metrics(self.client.text("/metrics"))
        except ServerError:
            self._has_metrics = False
            return None
        found = [metrics.sum(name) for name in _COUNTERS]
        return tuple(value for value in found if value is not None) if None not in found else None

    def counts(self) -> float | None:
        found = self._metrics()
        return found[0] + found[1] if found is not None else None

    def shown(self) -> Shown:
        if not self._shows_slots:
            return Shown()
        try:
            slots = self.client.get("/slots")
        except ServerError:
            self._shows_slots = False
            return Shown()
        # A slot that nothing has used yet names neither tokens nor a task.
        return Shown(
            slots={
                slot["id"]: Slot(slot.get("n_prompt_tokens") or 0, slot.get("id_task") or 0)
                for slot in slots
                if isinstance(slot, dict) and isinstance(slot.get("id"), int)
            }
        )


class VllmBench:
    """A vLLM server. Each run has a cache salt of its own, so that nobody else's blocks are read or lost."""

    def __init__(
        self, engine: Vllm, client: JsonClient, model: str | None, flags: tuple[str, ...], rules: Rulebook,
        kv_events: str | None = None,
    ) -> None:  # fmt: skip
        self.engine: Engine = engine
        self.notes: tuple[str, ...] = ()
        self._events: KvEvents | None = None
        try:
            self._events = subscribe(client, kv_events)
        except ServerError as error:
            if kv_events is not None:
                raise
            self.notes = (str(error),)
        self._vllm = engine
        self._last: tuple[float, float] | None = None
        self.client = client
        self.model = engine.model
        # Without --enable-auto-tool-choice it refuses requests with tools, but not these.
        self.no_calls = True
        shape = _shape(model, rules) if model else _found(engine.model, rules)
        windowed = _windowed(shape, whole_windows=engine.retention == "None")
        rule = f"vllm:block={engine.block}" + (",hybrid" if windowed else "")
        self.facts = EngineFacts(
            engine.kind, engine.version, engine.model, rule, flags, windowed, engine.caching
        )

    def fresh(self) -> Mapping[str, Any]:
        self._last = self._hits()
        return {"cache_salt": f"prefixguard-{secrets.token_hex(8)}"}

    def counted(self, body: bytes) -> Counted:
        # Without --enable-prompt-tokens-details usage is silent, and the counters speak.
        before, self._last = self._last, self._hits()
        if before is None or self._last is None:
            return Counted()
        prompt, cached = (round(now - then) for now, then in zip(self._last, before, strict=True))
        return Counted(prompt, cached)

    def _hits(self) -> tuple[float, float] | None:
        metrics = self._vllm.metrics()
        asked = metrics.sum("vllm:prefix_cache_queries_total")
        hit = metrics.sum("vllm:prefix_cache_hits_total")
        return (asked, hit) if asked is not None and hit is not None else None

    def counts(self) -> float | None:
        return self._vllm.metrics().sum("vllm:prompt_tokens_total")

    def shown(self) -> Shown:
        if self._events is None:
            return Shown()
        events = self._events.heard()
        lost, self._events.lost = self._events.lost, 0
        return Shown(events, lost=lost)


def _shape(name: str, rules: Rulebook) -> Model:
    return open_model(name, rules)


def _found(name: str, rules: Rulebook) -> Model | None:
    """The model that a server names, where its file lies on this machine or its name is known."""
    try:
        return open_model(name, rules) if name else None
    except InputError:
        return None


def _windowed(shape: Model | None, *, whole_windows: bool) -> bool | None:
    """Whether some layers keep less than the whole prompt; None when the layers are not known.

    whole_windows: the server keeps windows as if they were full.
    """
    if shape is None:
        return None
    kinds = {cache.kind for cache in shape.caches}
    return "linear" in kinds or (not whole_windows and bool(kinds & {"sliding", "chunked"}))
