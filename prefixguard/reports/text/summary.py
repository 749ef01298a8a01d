"""A session, or several, on one page: the verdict, the turns, what to mend first, the sums."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prefixguard.reports import figures
from prefixguard.reports.ranking import misses, ranked
from prefixguard.reports.text.line import what_happened
from prefixguard.reports.text.mending import Catalogue, first_to_mend, remarks
from prefixguard.reports.text.tables import sessions_table, turns_table
from prefixguard.reports.visible import one_line
from prefixguard.turn import Analysis, Prices, Session, Totals

_JUDGED = ("breakpoints", "parameters", "system", "tools")
"""Parts of a request that may hold a break, and that an imported record may not hold."""
_TOLD_SESSIONS = 3  # sessions told one by one; more get a table


def render_report(analysis: Analysis, findings: Catalogue, *, every_turn: bool = False) -> RenderableType:
    """The whole analysis: each session, or a table of them when they are many, and the prices used.

    findings: the catalogue. every_turn: show quiet turns too, and tell every session.
    """
    sessions = analysis.sessions
    parts: list[RenderableType] = []
    if not sessions:
        parts += [Text("No requests to a model were found.", "yellow"), Text()]
    if len(sessions) > 1:
        parts += [sessions_table(sessions), Text()]
    if len(sessions) <= _TOLD_SESSIONS or every_turn:
        for session in sessions:
            parts += [render_session(session, findings, every_turn=every_turn), Text()]
    elif mending := first_to_mend(ranked(sessions), findings):
        parts += [*mending, Text()]
    parts.append(prices_line(analysis.prices, sessions))
    return Group(*parts)


def render_session(session: Session, findings: Catalogue, *, every_turn: bool = False) -> RenderableType:
    """One session. A clean one is two lines."""
    told = any(what_happened(turn) for turn in session.turns)
    parts: list[RenderableType] = [_heading(session), verdict(session, told=told)]
    if told or every_turn:
        parts += [Text(), turns_table(session, every_turn=every_turn)]
    order = ranked([session])
    if any(entry.severity != "info" for entry in order):
        parts += [Text(), *first_to_mend(order, findings)]
    elif order:
        parts.append(remarks(order))
    if told:
        parts += [Text(), totals_lines(session)]
    return Group(*parts)


def _heading(session: Session) -> Text:
    heading = Text(one_line(session.id), "bold")
    heading.append("  " + ", ".join(session_facts(session)), "dim not bold")
    return heading


def session_facts(session: Session) -> list[str]:
    """What a heading says of a session: turns and threads, its length in time, APIs, models."""
    turns = session.turns
    facts = [figures.plural(len(turns), "turn")]
    threads = len({turn.thread for turn in turns})
    if threads > 1:
        facts[0] += f" in {threads} threads"
    span = turns[-1].t - turns[0].t if turns else 0.0
    if span >= 1:
        facts.append(figures.duration(span))
    facts += sorted({turn.api for turn in turns if turn.api})
    facts += sorted({one_line(turn.model) for turn in turns if turn.model})
    return facts


def verdict(session: Session, *, told: bool = False) -> Text:
    """One sentence or two: breaks and decisions, what they cost, misses.

    told: the sums follow elsewhere, so that the cached share is left out.
    """
    totals = session.totals
    unseen = _unseen(session)
    faults = totals.breaks - totals.breaks_deliberate
    again = figures.tokens(totals.rebilled_tokens, estimated=figures.is_estimated(session))
    text = Text()
    if faults:
        text.append(figures.plural(faults, "break"), "bold red")
    elif unseen == "prompt":
        text.append("Breaks cannot be seen: the record holds figures, no prompts", "yellow")
    else:
        text.append("No break", "green")
    if totals.breaks_deliberate:
        text.append(" and " if faults else ", but ")
        text.append(figures.plural(totals.breaks_deliberate, "decision"), "yellow")
    if totals.breaks:
        text.append(f": {again} tokens were re-billed")
        if totals.cost.avoidable is not None and totals.cost.avoidable > 0:
            text.append(f", {figures.money(totals.cost.avoidable, totals.cost)} avoidable")
    text.append(". ")
    if lost := misses(session):
        known = "of what an append reads" if unseen == "prompt" else "without a change"
        text.append(f"{figures.plural(lost, 'miss', 'misses')} {known}", "yellow")
        text.append(". ")
    if unseen and unseen != "prompt":
        text.append(f"Not in the record, so not judged: {unseen}. ", "yellow")
    if not told:
        text.append(_cached_phrase(totals))
    return text


def _unseen(session: Session) -> str:
    """What an imported record does not hold of a session's prompts: "prompt" for all of it, or a list."""
    if figures.is_unseen(session):
        return "prompt"
    parts = {part for turn in session.turns for part in turn.unseen if part in _JUDGED}
    return ", ".join(sorted(parts))


def _cached_phrase(totals: Totals) -> str:
    if totals.hit_rate is None:
        phrase = f"Cached tokens {figures.UNKNOWN}: the server did not report them"
    else:
        phrase = f"{figures.percent(totals.hit_rate)} of the prompt tokens were read from the cache"
    if totals.cost.actual is not None:
        phrase += f", {figures.bill(totals.cost)}"
    return phrase + "."


def totals_lines(session: Session) -> Table:
    """The sums of a session."""
    totals = session.totals
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    sizes = [figures.prompt_tokens(turn) for turn in session.turns]
    sent = figures.exact_tokens(sum(size for size, _ in sizes), estimated=any(e for _, e in sizes))
    again = figures.exact_tokens(totals.rebilled_tokens, estimated=figures.is_estimated(session))
    read = figures.percent(totals.hit_rate)
    grid.add_row("Tokens", f"{sent} sent, {read} read from the cache, {again} re-billed")
    factor = figures.rewrite_factor(session)
    if factor is not None:
        grid.add_row("Computed", f"{factor:.1f} times the largest prompt; 1.0 is the least")
    cost = totals.cost
    if cost.actual is not None:
        grid.add_row(
            "Cost",
            f"{figures.bill(cost)}; {figures.money(cost.uncached, cost)} without a cache, "
            f"{figures.money(cost.ideal, cost)} at best, {figures.money(cost.avoidable, cost)} avoidable",
        )
    return grid


def prices_line(prices: Prices | None, sessions: Sequence[Session]) -> Text:
    """Which prices were used, for which models there are none, and what the marks mean."""
    unpriced = sorted(
        {
            one_line(turn.model)
            for session in sessions
            for turn in session.turns
            if turn.model and turn.cost.actual is None and turn.usage is not None
        }
    )
    text = Text(style="dim")
    if prices is None:
        text.append("Prices: none used, costs are unknown.")
    else:
        text.append(f"Prices: {prices.source} {prices.version} of {prices.date}.")
        if unpriced:
            text.append(f" No price is known for {', '.join(unpriced)}.")
    if any(figures.is_estimated(session) for session in sessions):
        text.append(" ~ marks an estimate, ? what is unknown.")
    return text
