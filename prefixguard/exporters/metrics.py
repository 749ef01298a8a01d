"""Sessions as OpenTelemetry metrics, in OTLP's JSON: by model and provider, never by session."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from prefixguard import __version__
from prefixguard.exporters.names import Names
from prefixguard.exporters.otel import attributes
from prefixguard.turn import Session, Turn

_CUMULATIVE = 2

type _Labels = tuple[tuple[str, str], ...]


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._points: dict[_Labels, list[float]] = defaultdict(list)

    def add(self, labels: _Labels, value: float) -> None:
        self._points[labels].append(value)

    def points(self, begin: str, end: str) -> list[dict[str, Any]]:
        found = []
        for labels, values in self._points.items():
            counts = [0] * (len(self._bounds) + 1)
            for value in values:
                counts[bisect_left(self._bounds, value)] += 1
            found.append(
                {
                    "attributes": attributes(dict(labels)),
                    "startTimeUnixNano": begin,
                    "timeUnixNano": end,
                    "count": str(len(values)),
                    "sum": float(sum(values)),
                    "min": float(min(values)),
                    "max": float(max(values)),
                    "bucketCounts": [str(count) for count in counts],
                    "explicitBounds": [float(bound) for bound in self._bounds],
                }
            )
        return found


def to_metrics(sessions: Iterable[Session], names: Names) -> dict[str, Any]:
    """The sessions as one ExportMetricsServiceRequest."""
    tokens, duration = _Histogram(names.buckets["tokens"]), _Histogram(names.buckets["duration"])
    breaks: dict[_Labels, int] = defaultdict(int)
    rebilled: dict[_Labels, int] = defaultdict(int)
    begin, end = float("inf"), 0.0
    for session in sessions:
        for turn in session.turns:
            labels = _labels(turn, names)
            begin, end = min(begin, turn.t), max(end, turn.t + (turn.timing.total_ms or 0.0) / 1000)
            kind = names.metrics["token_kind"]
            if turn.usage is not None:
                tokens.add((*labels, (kind, "input")), turn.usage.total)
                if turn.usage.output is not None:
                    tokens.add((*labels, (kind, "output")), turn.usage.output)
            if turn.timing.total_ms is not None:
                duration.add(labels, turn.timing.total_ms / 1000)
            if turn.is_break:
                for code in {f.code for f in turn.findings if f.primary} or {"unknown"}:
                    breaks[(*labels, (names.span["causes"], code))] += 1
                rebilled[labels] += turn.tokens.rebilled
    when = (_nanoseconds(begin if end else 0.0), _nanoseconds(end))
    called = names.metrics
    metrics = [
        _histogram(called["tokens"], "{token}", tokens.points(*when)),
        _histogram(called["duration"], "s", duration.points(*when)),
        _sum(called["breaks"], "{break}", breaks, *when),
        _sum(called["rebilled"], "{token}", rebilled, *when),
    ]
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": attributes({"service.name": "prefixguard"})},
                "scopeMetrics": [
                    {
                        "scope": {"name": "prefixguard", "version": __version__},
                        "metrics": [m for m in metrics if m],
                    }
                ],
            }
        ]
    }


def _labels(turn: Turn, names: Names) -> _Labels:
    called = names.span
    found = [(called["operation"], names.operation(turn)), (called["provider"], names.provider(turn))]
    if turn.model:
        found.append((called["model"], turn.model))
    return tuple(found)


def _histogram(name: str, unit: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    if not points:
        return {}
    told = {"aggregationTemporality": _CUMULATIVE, "dataPoints": points}
    return {"name": name, "unit": unit, "histogram": told}


def _sum(name: str, unit: str, counts: dict[_Labels, int], begin: str, end: str) -> dict[str, Any]:
    points = [
        {"attributes": attributes(dict(labels)), "startTimeUnixNano": begin, "timeUnixNano": end,
         "asInt": str(count)}
        for labels, count in counts.items()
    ]  # fmt: skip
    if not points:
        return {}
    told = {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}
    return {"name": name, "unit": unit, "sum": told}


def _nanoseconds(t: float) -> str:
    return str(max(0, round(t * 1e9)))
