"""The metrics page of the proxy, for Prometheus: what was read from caches, what broke, and why.

Fed with the recorder's events, from the link's reading thread, beside the
requests: an event costs a few additions, and Prometheus' own library only makes
the page. Labels are few and bounded: models, upstreams and causes, never sessions.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from prefixguard.errors import MissingExtraError
from prefixguard.proxy.frames import Event, Stored, TurnSeen

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MOST_VALUES: Final = 50
"""Values of one label; what comes later is called "other", so that a client cannot make up series."""
_OTHER: Final = "other"
_REASON: Final = 60


class _Counter(NamedTuple):
    name: str
    text: str
    labels: tuple[str, ...] = ()


class _Histogram(NamedTuple):
    name: str
    text: str
    bounds: tuple[float, ...]


_BOTH: Final = ("model", "upstream")
_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_RATIOS: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_REQUESTS: Final = _Counter("requests", "Requests to a model.", (*_BOTH, "api", "outcome"))
_INPUT: Final = _Counter("input_tokens", "Prompt tokens as the server reported them.", (*_BOTH, "kind"))
_OUTPUT: Final = _Counter("output_tokens", "Generated tokens as the server reported them.", _BOTH)
_BREAKS: Final = _Counter("prefix_breaks", "Breaks of a cached prefix.", (*_BOTH, "cause", "deliberate"))
_REBILLED: Final = _Counter("rebilled_tokens", "Tokens sent again although they were cached.", _BOTH)
_MISSES: Final = _Counter("cache_misses", "Requests that read less than predicted, unbroken.", _BOTH)
_AVOIDABLE: Final = _Counter("avoidable_cost_usd", "Money that an append-only prompt saves.", _BOTH)
_RECORDED: Final = _Counter("exchanges_recorded", "Exchanges that were stored.")
_COUNTERS: Final = (
    _REQUESTS, _INPUT, _OUTPUT, _BREAKS, _REBILLED, _MISSES, _AVOIDABLE, _RECORDED,
)  # fmt: skip
_KEPT: Final = _Histogram("prefix_kept_ratio", "Share of a prompt that was not billed again.", _RATIOS)
_FIRST: Final = _Histogram("time_to_first_token_seconds", "Until the first token.", _SECONDS)
_DURATION: Final = _Histogram("request_duration_seconds", "Until the last byte.", _SECONDS)
_HISTOGRAMS: Final = (_KEPT, _FIRST, _DURATION)


class _Distribution:
    """How many values lie below each bound, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum = 0.0


class Metrics:
    """Counts events. The library is imported when the page is first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[_Counter, dict[tuple[str, ...], float]] = {
            counter: defaultdict(float) for counter in _COUNTERS
        }
        self._spread: dict[_Histogram, dict[tuple[str, ...], _Distribution]] = {
            histogram: {} for histogram in _HISTOGRAMS
        }
        self._counts[_RECORDED][()] = 0
        self._values: dict[str, set[str]] = {}

    def add(self, event: Event) -> None:
        """Count an event."""
        match event:
            case TurnSeen():
                with self._lock:
                    self._turn(event)
            case Stored():
                with self._lock:
                    self._counts[_RECORDED][()] += 1
            case _:
                pass

    def page(self, lost: Mapping[str, int]) -> bytes:
        """The page in Prometheus' text format. lost: exchanges that were not recorded, by reason.

        Raises MissingExtraError without its library.
        """
        try:
            from prometheus_client import CollectorRegistry, generate_latest
        except ImportError as error:
            raise MissingExtraError("proxy", "proxy") from error
        with self._lock:
            families = [*self._families(lost)]

        class Page:
            def collect(self) -> list[Metric]:
                return families

        registry = CollectorRegistry()
        registry.register(Page())
        return generate_latest(registry)

    def _turn(self, turn: TurnSeen) -> None:
        both = (self._bounded("model", turn.model), self._bounded("upstream", turn.upstream))
        outcome = "ok"
        if turn.status is None or turn.status >= 400:
            outcome = "failed"
        elif turn.aborted:
            outcome = "aborted"
        counts = self._counts
        counts[_REQUESTS][*both, self._bounded("api", turn.api), outcome] += 1
        for kind, count in (
            ("cached", turn.reported_read),
            ("written", turn.written_tokens),
            ("uncached", turn.uncached_tokens),
        ):
            if count is not None:
                counts[_INPUT][*both, kind] += count
        if turn.output_tokens is not None:
            counts[_OUTPUT][both] += turn.output_tokens
        if turn.is_break:
            causes = [cause for cause in turn.causes if cause.primary]
            decided = "yes" if causes and all(cause.deliberate for cause in causes) else "no"
            for code in {cause.code for cause in causes} or {"unknown"}:
                counts[_BREAKS][*both, code, decided] += 1
            counts[_REBILLED][both] += turn.rebilled_tokens
        elif turn.verdict == "less":
            counts[_MISSES][both] += 1
        if turn.prompt_tokens and outcome == "ok":
            again = turn.rebilled_tokens if turn.is_break else 0
            self._observe(_KEPT, both, max(0.0, 1 - again / turn.prompt_tokens))
        if turn.first_token_ms is not None:
            self._observe(_FIRST, both, turn.first_token_ms / 1000)
        if turn.total_ms is not None:
            self._observe(_DURATION, both, turn.total_ms / 1000)
        if turn.avoidable_usd is not None and turn.avoidable_usd > 0:
            counts[_AVOIDABLE][both] += turn.avoidable_usd

    def _observe(self, histogram: _Histogram, labels: tuple[str, ...], value: float) -> None:
        spread = self._spread[histogram].get(labels)
        if spread is None:
            spread = self._spread[histogram][labels] = _Distribution(len(histogram.bounds))
        spread.counts[bisect_left(histogram.bounds, value)] += 1
        spread.sum += value

    def _bounded(self, label: str, value: str | None) -> str:
        value = value or "unknown"
        known = self._values.setdefault(label, set())
        if value in known:
            return value
        if len(known) >= _MOST_VALUES:
            return _OTHER
        known.add(value)
        return value

    def _families(self, lost: Mapping[str, int]) -> Iterator[Metric]:
        """What was counted, as the library knows it."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        made: Any
        for counter, values in self._counts.items():
            made = CounterMetricFamily(f"prefixguard_{counter.name}", counter.text, labels=counter.labels)
            for labels, value in values.items():
                made.add_metric(labels, value)
            yield made
        for histogram, spreads in self._spread.items():
            made = HistogramMetricFamily(f"prefixguard_{histogram.name}", histogram.text, labels=_BOTH)
            bounds = [*map(str, histogram.bounds), "+Inf"]
            for labels, spread in spreads.items():
                buckets = zip(bounds, accumulate(spread.counts), strict=True)
                made.add_metric(labels, list(buckets), spread.sum)
            yield made
        made = GaugeMetricFamily(
            "prefixguard_exchanges_lost", "Exchanges that were not recorded.", labels=["reason"]
        )
        reasons: dict[str, int] = defaultdict(int)
        for reason, count in lost.items():
            reasons[self._bounded("reason", reason.partition(":")[0][:_REASON])] += count
        for reason, count in reasons.items():
            made.add_metric([reason], count)
        yield made
