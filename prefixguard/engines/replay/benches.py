"""What a measurement needs of a server beyond rendering: a fresh start, its rule, its own clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from prefixguard.engines import Engine
from prefixguard.engines.client import JsonClient
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.engines.replay.counted import Counted
from prefixguard.engines.replay.llamacpp import LlamaCppBench
from prefixguard.engines.replay.salted import SglangBench, VllmBench
from prefixguard.engines.sglang import Sglang
from prefixguard.engines.vllm import Vllm
from prefixguard.errors import InputError, ServerError
from prefixguard.rulebook import Rulebook
from prefixguard.trial import EngineFacts, Shown

_SECONDS_FOR_A_PROMPT = 600.0


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
    if isinstance(engine, Sglang):
        if kv_events is not None:
            raise InputError("--kv-events: only those of vLLM are understood")
        return SglangBench(engine, client, model, flags, rules)
    raise ServerError(f"{engine.url}: {engine.kind} servers cannot be measured")
