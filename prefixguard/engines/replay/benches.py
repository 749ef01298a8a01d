"""What a measurement needs of a server beyond rendering: a fresh start, its rule, its own clock."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from prefixguard.engines import Engine
from prefixguard.engines.client import JsonClient
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.engines.metrics import Metrics
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import InputError, ServerError
from prefixguard.kv import Model
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook
from prefixguard.trial import EngineFacts

_PREFILL = re.compile(rb'"prompt_ms":\s*([\d.eE+-]+)')
_SECONDS_FOR_A_PROMPT = 600.0


class Bench(Protocol):
    """A server that is measured.

    model: the name that requests must carry. facts: for reports, with the rule
    that predicts. counts: what the server says of its load, prompt tokens since
    its start, None where it does not say.
    """

    engine: Engine
    client: JsonClient
    model: str
    facts: EngineFacts

    def fresh(self) -> Mapping[str, Any]:
        """Makes the next prompt read nothing; gives fields that every request of the run must carry."""
        ...

    def prefill_ms(self, body: bytes) -> float | None:
        """The server's own time for a prompt, from a whole or streamed answer."""
        ...

    def counts(self) -> float | None: ...


def bench_for(
    engine: Engine, *, key: str | None = None, model: str | None = None, flags: tuple[str, ...] = (),
    rulebook: Rulebook | None = None,
) -> Bench:  # fmt: skip
    """The bench of an attached server. model: a file or name that tells the model's layers, where the
    server does not. flags: the options of a server that we launched. Raises ServerError, InputError.
    """
    client = JsonClient(engine.url, key=key, timeout=_SECONDS_FOR_A_PROMPT)
    rules = rulebook or Rulebook()
    if isinstance(engine, LlamaCpp):
        return LlamaCppBench(engine, client, model, flags, rules)
    if isinstance(engine, Vllm):
        return VllmBench(engine, client, model, flags, rules)
    raise ServerError(f"{engine.url}: {engine.kind} servers cannot be measured")


class LlamaCppBench:
    """A llama.cpp server. A fresh start erases every slot, or fills it with what no conversation begins with."""

    def __init__(
        self, engine: LlamaCpp, client: JsonClient, model: str | None, flags: tuple[str, ...], rules: Rulebook
    ) -> None:
        self.engine: Engine = engine
        self.client = client
        self._flush = engine.tokenize("~ ~ ~", begin=False).tolist()
        self._slots = engine.properties.slots
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
                self.client.post("/completion", {"prompt": self._flush, "n_predict": 0, "id_slot": slot})
        return {}

    def prefill_ms(self, body: bytes) -> float | None:
        found = _PREFILL.findall(body)
        return float(found[-1]) if found else None

    def counts(self) -> float | None:
        try:
            metrics = Metrics(self.client.text("/metrics"))
        except ServerError:
            return None
        evaluated = metrics.sum("llamacpp:prompt_tokens_total")
        cached = metrics.sum("llamacpp:prompt_tokens_cached_total")
        return evaluated + cached if evaluated is not None and cached is not None else None


class VllmBench:
    """A vLLM server. Each run has a cache salt of its own, so that nobody else's blocks are read or lost."""

    def __init__(
        self, engine: Vllm, client: JsonClient, model: str | None, flags: tuple[str, ...], rules: Rulebook
    ) -> None:
        self.engine: Engine = engine
        self._vllm = engine
        self.client = client
        self.model = engine.model
        shape = _shape(model, rules) if model else _found(engine.model, rules)
        windowed = _windowed(shape, whole_windows=engine.retention == "None")
        rule = f"vllm:block={engine.block}" + (",hybrid" if windowed else "")
        self.facts = EngineFacts(
            engine.kind, engine.version, engine.model, rule, flags, windowed, engine.caching
        )

    def fresh(self) -> Mapping[str, Any]:
        return {"cache_salt": f"prefixguard-{secrets.token_hex(8)}"}

    def prefill_ms(self, body: bytes) -> float | None:
        return None  # vLLM shows no time of its own in an answer

    def counts(self) -> float | None:
        return self._vllm.metrics().sum("vllm:prompt_tokens_total")


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
