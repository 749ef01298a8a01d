"""From exchanges to a file of another format: the analysis runs, then its result is written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import msgspec

from prefixguard.analysis import Fold
from prefixguard.exchange import Exchange
from prefixguard.exporters.hash_trace import to_rows
from prefixguard.exporters.metrics import to_metrics
from prefixguard.exporters.names import read_names
from prefixguard.exporters.otel import Answer, to_spans
from prefixguard.simulate import from_sessions


def write_spans(exchanges: Iterable[Exchange], fold: Fold, stream: IO[bytes]) -> int:
    """One line of OTLP JSON: a trace per session. Returns how many requests it holds."""
    answers: dict[int, Answer] = {}
    for exchange in exchanges:
        turn = fold.step(exchange)
        answers[turn.index] = _answer(exchange)
    return _write(to_spans(fold.result().sessions, answers, read_names()), len(answers), stream)


def write_metrics(exchanges: Iterable[Exchange], fold: Fold, stream: IO[bytes]) -> int:
    """One line of OTLP JSON: what all requests add up to. Returns how many there are."""
    count = 0
    for exchange in exchanges:
        fold.step(exchange)
        count += 1
    return _write(to_metrics(fold.result().sessions, read_names()), count, stream)


def write_trace(
    exchanges: Iterable[Exchange], fold: Fold, stream: IO[bytes], *, block: int, salt: bytes
) -> int:
    """A line of hashed blocks for each request that a server would have cached. Returns how many."""
    times: list[float] = []
    recorded = from_sessions("export", _timed(exchanges, times.append), fold)
    # Only those that the fold kept became requests, in the same order.
    kept = [t for index, t in enumerate(times) if fold.laid_out(index) is not None]
    count = 0
    for row in to_rows(recorded.sent.requests, kept, block, salt):
        stream.write(msgspec.json.encode(row) + b"\n")
        count += 1
    return count


def _timed(exchanges: Iterable[Exchange], note: Callable[[float], None]) -> Iterator[Exchange]:
    for exchange in exchanges:
        note(exchange.t)
        yield exchange


def _write(document: dict[str, Any], count: int, stream: IO[bytes]) -> int:
    stream.write(msgspec.json.encode(document) + b"\n")
    return count


class _Says(msgspec.Struct):
    """The members of a response that are told on."""

    id: str | None = None
    model: str | None = None


def _answer(exchange: Exchange) -> Answer:
    says = _Says()
    if exchange.response is not None:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            says = msgspec.json.decode(exchange.response, type=_Says)
    agent = exchange.extra.get("agent")
    return Answer(says.id, says.model, msgspec.json.decode(agent, type=str) if agent else None)
