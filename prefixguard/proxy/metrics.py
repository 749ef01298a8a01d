"""The metrics page of the proxy, for Prometheus: what was read from caches, what broke, and why.

Fed with the recorder's events, from the link's reading thread. Labels are few
and bounded: models, upstreams and causes, never sessions.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from prefixguard.errors import MissingExtraError
from prefixguard.proxy.frames import Event, Stored, TurnSeen

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MOST_VALUES: Final = 50
"""Values of one label; what comes later is called "other", so that a client cannot make up series."""
_OTHER: Final = "other"
_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160)
_RATIOS: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_REASON: Final = 60


class Metrics:
    """Counts events. The library is imported with the first one, or when the page is first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registry: CollectorRegistry | None = None
        self._series: dict[str, Any] = {}
        self._values: dict[str, set[str]] = {}
        self._missing = False

    def add(self, event: Event) -> None:
        """Count an event. Without the library nothing is counted."""
        try:
            self._make()
        except MissingExtraError:
            return
        match event:
            case TurnSeen():
                self._turn(event)
            case Stored():
                self._series["recorded"].inc()
            case _:
                pass

    def page(self, lost: Mapping[str, int]) -> bytes:
        """The page in Prometheus' text format. lost: exchanges that were not recorded, by reason.

        Raises MissingExtraError without its library.
        """
        self._make()
        for reason, count in lost.items():
            self._series["lost"].labels(self._bounded("reason", reason.partition(":")[0][:_REASON])).set(
                count
            )
        from prometheus_client import generate_latest

        assert self._registry is not None
        return generate_latest(self._registry)

    def _turn(self, turn: TurnSeen) -> None:
        model = self._bounded("model", turn.model or "unknown")
        upstream = self._bounded("upstream", turn.upstream or "unknown")
        both = (model, upstream)
        outcome = "ok"
        if turn.status is None or turn.status >= 400:
            outcome = "failed"
        elif turn.aborted:
            outcome = "aborted"
        self._series["requests"].labels(*both, self._bounded("api", turn.api or "unknown"), outcome).inc()
        for kind, count in (("cached", turn.reported_read), ("written", turn.written_tokens),
                            ("uncached", turn.uncached_tokens)):  # fmt: skip
            if count is not None:
                self._series["input"].labels(*both, kind).inc(count)
        if turn.output_tokens is not None:
            self._series["output"].labels(*both).inc(turn.output_tokens)
        if turn.is_break:
            causes = [cause for cause in turn.causes if cause.primary]
            decided = "yes" if causes and all(cause.deliberate for cause in causes) else "no"
            for code in {cause.code for cause in causes} or {"unknown"}:
                self._series["breaks"].labels(*both, code, decided).inc()
            self._series["rebilled"].labels(*both).inc(turn.rebilled_tokens)
        elif turn.verdict == "less":
            self._series["misses"].labels(*both).inc()
        if turn.prompt_tokens and outcome == "ok":
            again = turn.rebilled_tokens if turn.is_break else 0
            self._series["kept"].labels(*both).observe(max(0.0, 1 - again / turn.prompt_tokens))
        if turn.first_token_ms is not None:
            self._series["first"].labels(*both).observe(turn.first_token_ms / 1000)
        if turn.total_ms is not None:
            self._series["duration"].labels(*both).observe(turn.total_ms / 1000)
        if turn.avoidable_usd is not None and turn.avoidable_usd > 0:
            self._series["avoidable"].labels(*both).inc(turn.avoidable_usd)

    def _bounded(self, label: str, value: str) -> str:
        known = self._values.setdefault(label, set())
        if value in known:
            return value
        if len(known) >= _MOST_VALUES:
            return _OTHER
        known.add(value)
        return value

    def _make(self) -> None:
        with self._lock:
            if self._registry is not None:
                return
            try:
                from prometheus_client import (
                    CollectorRegistry,
                    Counter,
                    Gauge,
                    Histogram,
                    disable_created_metrics,
                )
            except ImportError as error:
                raise MissingExtraError("proxy", "proxy") from error
            disable_created_metrics()  # type: ignore[no-untyped-call]
            registry = CollectorRegistry(auto_describe=True)
            both = ("model", "upstream")

            def counter(name: str, text: str, *labels: str) -> Any:
                return Counter(f"prefixguard_{name}", text, labels, registry=registry)

            def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Any:
                return Histogram(f"prefixguard_{name}", text, both, registry=registry, buckets=buckets)

            self._series = {
                "requests": counter("requests", "Requests to a model.", *both, "api", "outcome"),
                "input": counter("input_tokens", "Prompt tokens as the server reported them.", *both, "kind"),
                "output": counter("output_tokens", "Generated tokens as the server reported them.", *both),
                "breaks": counter(
                    "prefix_breaks", "Breaks of a cached prefix.", *both, "cause", "deliberate"
                ),
                "rebilled": counter("rebilled_tokens", "Tokens sent again although they were cached.", *both),
                "misses": counter("cache_misses", "Requests that read less than predicted, unbroken.", *both),
                "avoidable": counter("avoidable_cost_usd", "Money that an append-only prompt saves.", *both),
                "kept": histogram(
                    "prefix_kept_ratio", "Share of a prompt that was not billed again.", _RATIOS
                ),
                "first": histogram("time_to_first_token_seconds", "Until the first token.", _SECONDS),
                "duration": histogram("request_duration_seconds", "Until the last byte.", _SECONDS),
                "recorded": counter("exchanges_recorded", "Exchanges that were stored."),
                "lost": Gauge(
                    "prefixguard_exchanges_lost",
                    "Exchanges that were not recorded.",
                    ["reason"],
                    registry=registry,
                ),
            }
            self._registry = registry
