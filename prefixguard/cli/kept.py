"""Sources analysed for reports that show the prompts themselves: the folds are kept with what they found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from prefixguard.analysis import Analysis, Fold
from prefixguard.blame import with_sources
from prefixguard.cli.sources import standing_options, tell, tracked
from prefixguard.exchange import Exchange
from prefixguard.importers import open_source
from prefixguard.reports.html import Listed
from prefixguard.reports.html.document import ReportedSession
from prefixguard.reports.html.overview import Recording
from prefixguard.rulebook import Rulebook
from prefixguard.store import LAST


def html_report_of(
    names: Sequence[str], store: str | None, server: str | None, code: Sequence[Path] = ()
) -> bytes:
    """The report on the named sources as one HTML file; without names, on the last session."""
    from prefixguard.reports.html.document import html_report

    rulebook = Rulebook()
    options = standing_options(rulebook, server)
    found: list[ReportedSession] = []
    analysis: Analysis | None = None
    for name in names or (LAST,):
        exchanges = open_source(name, store, tell)
        fold = Fold(rulebook, options)
        for exchange in tracked(exchanges):
            fold.step(exchange)
        analysis = _blamed(fold.result(), code)
        for session in analysis.sessions:
            own = [exchanges[turn.index] for turn in session.turns]
            source = name if len(names) > 1 and not session.id.startswith(name) else ""
            listed = Listed(str(len(found) + 1), session, _recording(own), _agent(own), source)
            found.append(ReportedSession(listed, fold))
    assert analysis is not None
    return html_report(found, rulebook.findings, analysis.prices, analysis.version)


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
