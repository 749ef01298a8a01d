"""The report as Markdown: for a pull request, a ticket, or the summary of a build job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from prefixguard.reports import figures
from prefixguard.reports.advice import advice
from prefixguard.reports.ranking import Ranked, misses, ranked
from prefixguard.reports.visible import one_line, safe, windows
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Analysis, Session

_EXPLAINED = 5  # findings told in full
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def to_markdown(analysis: Analysis, findings: Mapping[str, FindingRule]) -> str:
    """The analysis as GitHub-flavoured Markdown with a final line end.

    Text out of prompts stands in code spans and blocks only, so that it cannot
    become a heading, a link or HTML.
    """
    sessions = analysis.sessions
    parts = ["# Prompt cache report", _sums(sessions)]
    if sessions:
        parts.append(_sessions(sessions))
    loud = [entry for entry in ranked(sessions) if entry.severity != "info"]
    if loud:
        parts.append("## What to mend first")
        parts += [_entry(entry, findings, several=len(sessions) > 1) for entry in loud[:_EXPLAINED]]
        if len(loud) > _EXPLAINED:
            rest = ", ".join(
                f"{e.code} {e.name} ({figures.plural(e.turns, 'turn')})" for e in loud[_EXPLAINED:]
            )
            parts.append(f"Also: {rest}.")
    prices = analysis.prices
    footer = f"prefixguard {plain(analysis.version)}"
    if prices is not None:
        footer += f"; prices: {plain(prices.source)} {plain(prices.version)} of {plain(prices.date)}"
    parts.append(f"<sub>{footer}. ~ marks an estimate, ? what is unknown.</sub>")
    return "\n\n".join(part for part in parts if part) + "\n"


def _sums(sessions: Sequence[Session]) -> str:
    if not sessions:
        return "No requests to a model were found."
    breaks = sum(session.totals.breaks - session.totals.breaks_deliberate for session in sessions)
    blind = sum(figures.is_unseen(session) for session in sessions)
    seen = len(sessions) - blind
    told = ""
    if blind:
        told = f"No break can be seen in {figures.plural(blind, 'session')}: the record holds no prompts."
    if not seen:
        return told
    found = figures.plural(breaks, "break") if breaks else "No break"
    return f"**{found}** in {figures.plural(seen, 'session')}. {told}".rstrip()


def _sessions(sessions: Sequence[Session]) -> str:
    head = (
        "session",
        "turns",
        "breaks",
        "decided",
        "misses",
        "cached",
        "re-billed",
        "rewritten",
        "cost",
        "avoidable",
    )
    return table(head, [_session_row(session) for session in sessions])


def _session_row(session: Session) -> list[str]:
    totals = session.totals
    factor = figures.rewrite_factor(session)
    blind = figures.is_unseen(session)
    again = figures.tokens(totals.rebilled_tokens, estimated=figures.is_estimated(session))
    return [
        code(session.id),
        f"{totals.turns:,}",
        *(
            (figures.UNKNOWN, figures.UNKNOWN)
            if blind
            else (f"{totals.breaks - totals.breaks_deliberate:,}", f"{totals.breaks_deliberate:,}")
        ),
        f"{misses(session):,}",
        figures.percent(totals.hit_rate),
        figures.UNKNOWN if blind else plain(again),
        figures.UNKNOWN if factor is None else f"{factor:.1f} times",
        plain(figures.bill(totals.cost)),
        plain(figures.money(totals.cost.avoidable, totals.cost)),
    ]


def _entry(entry: Ranked, findings: Mapping[str, FindingRule], *, several: bool) -> str:
    rule = findings.get(entry.code)
    title = f"### {entry.code} {plain(entry.name)}" + (f": {plain(rule.title)}" if rule else "")
    sums = [figures.plural(entry.turns, "turn")]
    if entry.tokens:
        sums.append(f"{figures.tokens(entry.tokens, estimated=entry.estimated)} tokens re-billed")
    if entry.cost is not None:
        sums.append(f"{figures.money(entry.cost, entry.worst.cost)} avoidable")
    if entry.deliberate:
        sums.append("looks like a decision")
    turn = entry.worst
    finding = next(f for f in turn.findings if f.code == entry.code)
    place = f"Turn {turn.index}" + (f" of {code(entry.session.id)}" if several else "")
    pointer = finding.pointer or (turn.divergence.pointer if turn.divergence and finding.primary else "")
    if pointer:
        place += f" at {code(pointer)}"
    if finding.source is not None:
        place += f", {code(f'{finding.source.filename}:{finding.source.row}')}"
    if finding.message:
        place += f": {plain(finding.message)}"
    parts = [title, plain(", ".join(sums)) + ".", place + ("." if place[-1] not in ".!?" else "")]
    if finding.primary and turn.divergence is not None:
        shown = zip("-+", windows(turn.divergence), strict=True)
        lines = [sign + line for sign, window in shown if window for line in window.plain.split("\n")]
        if lines:
            parts.append(block("\n".join(lines), "diff"))
    if rule is not None:
        general, special = advice(rule, turn)
        # The catalogue's texts are ours; their backticks are meant as Markdown.
        parts.append(f"**To do:** {general}" + (f" {special}" if special else ""))
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that are Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Text that Markdown prints as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def code(text: str) -> str:
    """A code span around any text; safe inside a table."""
    shown = one_line(text).replace("|", "\\|") or " "
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def block(text: str, language: str = "") -> str:
    """A fenced code block around any text."""
    shown = safe(text)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
