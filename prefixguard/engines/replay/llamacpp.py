"""A llama.cpp server as it is measured: slots that are emptied, timings in its answers, counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefixguard.engines import Engine
from prefixguard.engines.client import JsonClient
from prefixguard.engines.llamacpp import LlamaCpp
from prefixguard.engines.metrics import Metrics
from prefixguard.engines.replay.counted import Counted
from prefixguard.engines.replay.layers import layers, windowed
from prefixguard.errors import ServerError
from prefixguard.rulebook import Rulebook
from prefixguard.trial import EngineFacts, Shown, Slot

_PREFILL = re.compile(rb'"prompt_ms":\s*([\d.eE+-]+)')
_COUNTERS = (
    "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_seconds_total",
)  # fmt: skip


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
        less = windowed(layers(model, engine.properties.model, rules), whole_windows="--swa-full" in flags)
        rule = f"llama.cpp:slots={self._slots}" + (",hybrid" if less else "")
        self.facts = EngineFacts(
            engine.kind, engine.properties.build, Path(self.model).name or "unknown", rule, flags, less
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
