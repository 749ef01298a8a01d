"""The report as a page: sources analysed one after the other, each with its prompts while they are packed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from prefixguard import __version__
from prefixguard.analysis import Analysis, Fold
from prefixguard.blame import with_sources
from prefixguard.cli.sources import Reading, tracked
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.options import Options
from prefixguard.reports.html import Listed
from prefixguard.reports.html.document import ReportedSession, html_report
from prefixguard.reports.html.overview import Recording
from prefixguard.rulebook import Rulebook
from prefixguard.store import LAST


def html_report_of(names: Sequence[str], reading: Reading, code: Sequence[Path] = ()) -> bytes:
    """The report on the named sources as one HTML file; without names, on the last session."""
    if reading.upstream_log is not None:
        raise InputError("report: a page shows one tap; use --upstream-log with another --format")
    rulebook = Rulebook()
    options = reading.options(rulebook)
    sessions = _sessions(names or (LAST,), reading, rulebook, options, code)
    prices = options.pricer.prices if options.pricer else None
    return html_report(sessions, rulebook.findings, prices, __version__)


def _sessions(
    names: Sequence[str], reading: Reading, rulebook: Rulebook, options: Options, code: Sequence[Path]
) -> Iterator[ReportedSession]:
    count = 0
    for name in names:
        exchanges = reading.exchanges(name)
        fold = Fold(rulebook, options)
        for exchange in tracked(exchanges):
            fold.step(exchange)
        for session in _blamed(fold.result(), code).sessions:
            own = [exchanges[turn.index] for turn in session.turns]
            source = name if len(names) > 1 and not session.id.startswith(name) else ""
            count += 1
            listed = Listed(str(count), session, _recording(own), _agent(own), source)
            yield ReportedSession(listed, fold)


def _blamed(analysis: Analysis, code: Sequence[Path]) -> Analysis:
    if not code:
        return analysis
    from prefixguard.lint.index import source_index

    return with_sources(analysis, source_index(code))


def _recording(exchanges: Sequence[Exchange]) -> Recording:
    """The mode that shows least, of those in which the exchanges were recorded."""
    modes = {_said(exchange, "recording") for exchange in exchanges}
    return "hashes" if "hashes" in modes else "redacted" if "redacted" in modes else "full"


def _agent(exchanges: Sequence[Exchange]) -> str | None:
    return next((agent for exchange in exchanges if (agent := _said(exchange, "agent"))), None)


def _said(exchange: Exchange, name: str) -> str | None:
    raw = exchange.extra.get(name)
    try:
        value = msgspec.json.decode(raw) if raw is not None else None
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, str) else None
