"""`lint --session LOG`: which findings a recorded session confirms, and which lines made its breaks.

Beside the last step of the linter: the recorded half is analysed, `blame` joins
it to what was read of the source.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from prefixguard.analysis import analyze
from prefixguard.blame import Blame
from prefixguard.importers import open_source
from prefixguard.lint.index import index_of
from prefixguard.lint.run import Link, Report
from prefixguard.rulebook import Rulebook


def confirm(
    report: Report, log: Path, roots: list[Path], rulebook: Rulebook, server: str | None = None
) -> int:
    """Mark the findings that the session confirms, and note where each of its breaks comes from.

    Returns how many breaks there are.

    server: the cache rule to judge by; None infers it. Raises InputError when the log cannot be read.
    """
    index = index_of(report, roots)
    analysis = analyze(open_source(str(log)), rulebook, server=server)
    confirmed: dict[int, list[str]] = {}
    for session in analysis.sessions:
        for turn in session.turns:
            if not turn.is_break:
                continue
            blame = index.locate(turn)
            name = f"turn {turn.index} of session {session.id}"
            codes = tuple(f.code for f in turn.findings if f.primary) or tuple(f.code for f in turn.findings)
            report.links.append(_link(name, codes, blame, turn.tokens.rebilled))
            if blame is not None and blame.finding is not None and blame.confidence != "low":
                confirmed.setdefault(blame.finding, []).append(name)
    report.findings = [
        replace(finding, extra={**finding.extra, "confirmed_by": confirmed[key]})
        if key in confirmed
        else finding
        for key, finding in enumerate(report.findings)
    ]
    return len(report.links)


def _link(name: str, codes: tuple[str, ...], blame: Blame | None, tokens: int) -> Link:
    if blame is None:
        return Link(name, codes, None, None, "", "nothing in the source fits", tokens)
    return Link(name, codes, blame.line.filename, blame.line.row, blame.confidence, blame.why, tokens)
