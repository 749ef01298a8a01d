"""A session in one sentence, to paste into a ticket."""

from __future__ import annotations

from prefixguard.reports import figures
from prefixguard.reports.ranking import ranked
from prefixguard.reports.visible import one_line
from prefixguard.turn import Prices, Session


def ticket_line(session: Session, prices: Prices | None) -> str:
    """What happened in a session, how much, mostly why and where."""
    totals = session.totals
    turns = figures.plural(totals.turns, "turn")
    start = f"prefixguard: session {one_line(session.id)}:"
    faults = totals.breaks - totals.breaks_deliberate
    cached = figures.percent(totals.hit_rate)
    if figures.is_unseen(session):
        return (
            f"{start} {turns} without their prompts, so no break can be seen; {cached} of the tokens cached."
        )
    if not faults:
        return f"{start} no break of the prompt cache in {turns}, {cached} of the prompt tokens cached."
    again = figures.tokens(totals.rebilled_tokens, estimated=figures.is_estimated(session))
    parts = [f"{start} {faults} of {turns} broke the prompt cache, {again} tokens re-billed"]
    if totals.cost.avoidable:
        parts.append(f" ({figures.money(totals.cost.avoidable, totals.cost)} avoidable)")
    order = ranked([session])
    if order:
        worst = order[0].worst
        parts.append(f"; mostly {order[0].code} {order[0].name}")
        if worst.divergence is not None and worst.divergence.pointer:
            parts.append(f" at {one_line(worst.divergence.pointer)}")
    parts.append(".")
    if prices is not None and totals.cost.avoidable:
        parts.append(f" Prices: {prices.source} {prices.version} of {prices.date}.")
    return "".join(parts)
