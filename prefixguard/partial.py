"""Turns of records that hold less than the whole request: what can be said, and what must stay unsaid.

Importers say in headers what a format did not keep; the fold reads them here.
Where the prompt itself is missing, or its head, what the server should have
read is told by the figures of the turns before (`series`), never by a prompt
that was not seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from prefixguard.caches.rule import CacheRule
from prefixguard.causes.evidence import Catalogue
from prefixguard.costs import Pricer, cost_of_turn, terms_of
from prefixguard.exchange import Exchange
from prefixguard.options import Options
from prefixguard.series import Figures, explain_series
from prefixguard.turn import CacheOutcome, Cost, Tokens, Turn, Usage
from prefixguard.wire.reported import fields_of
from prefixguard.wire.usage import DecodedUsage

SOURCE = "x-prefixguard-source"
"""Header of an imported request: the format that it was read from."""
LOST = "x-prefixguard-lost"
"""Header of an imported request: what the format did not keep of it, separated by commas."""
THREAD = "x-prefixguard-thread"
"""Header of an imported request: the line of conversation that it belongs to, where the format says so."""
EVENT = "x-prefixguard-event"
"""Header of an imported request: what its record says happened right before it ("compaction")."""

PROMPT = "prompt"
HEAD = frozenset({"prompt", "system", "tools", "breakpoints"})
"""Without one of these nothing can be predicted: how a prompt begins, or what is kept of it, is unknown."""


def unseen(headers: Mapping[str, str]) -> tuple[str, ...]:
    """What the record of a request does not hold, in the order in which it says so; () for a whole one."""
    said = headers.get(LOST)
    return tuple(part.strip() for part in said.split(",") if part.strip()) if said else ()


def figures_turn(
    index: int,
    exchange: Exchange,
    place: tuple[str, int],
    api: str,
    model: str | None,
    decoded: DecodedUsage | None,
    cost: Cost,
) -> Turn:
    """A request of which only figures are known. place: (session, thread). It has no parent that is known."""
    usage = decoded.usage if decoded else None
    return Turn(
        index=index, t=exchange.t, status=exchange.status, upstream=exchange.upstream, domain="",
        session=place[0], thread=place[1], parent=None, donor=None, shape="first", api=api, model=model,
        divergence=None, findings=(), is_break=False,
        tokens=Tokens(usage.total if usage else 0, 0, 0, 0, "none", False), usage=usage, cache=None,
        timing=exchange.timing, cost=cost, aborted=exchange.aborted, unseen=unseen(exchange.headers),
    )  # fmt: skip


def figures_cost(
    options: Options,
    rule: CacheRule,
    exchange: Exchange,
    api: str,
    model: str | None,
    decoded: DecodedUsage | None,
    response: object,
) -> Cost:
    """What was paid, and what it would have been without a cache. What was avoidable is unknown."""
    pricer: Pricer | None = options.pricer
    if pricer is None or decoded is None:
        return Cost()
    terms = terms_of(
        {}, fields_of(response) or None, price_date=options.price_date, local=not rule.hosted or options.local
    )
    usage = decoded.usage
    return cost_of_turn(
        pricer, model, api, exchange.upstream, usage, exchange.t,
        ideal_read=None, rule_write_ttl=None, options=terms, beside=decoded.beside,
        possible_read=usage.total,
    )  # fmt: skip


def without_guesses(turn: Turn, missing: Sequence[str]) -> Turn:
    """A turn whose prompt was seen in part: what rests on the missing part is taken off.

    Divergences in the part that was seen stand. The prediction goes, and with it
    what was found beside a break; the size is the server's, where it told one.
    """
    if not HEAD & set(missing):
        return replace(turn, unseen=tuple(missing))
    tokens = replace(turn.tokens, exact=False)
    if turn.usage is not None and turn.usage.total:
        tokens = replace(tokens, prompt=turn.usage.total)
    kept = tuple(finding for finding in turn.findings if finding.primary)
    return replace(turn, unseen=tuple(missing), tokens=tokens, findings=kept, cache=None, donor=None)


def explained(
    turns: Sequence[Turn], rules: Mapping[int, tuple[CacheRule, str, bool]], catalogue: Catalogue
) -> list[Turn]:
    """The turns, those of incomplete records with a verdict from the figures of their thread.

    rules: by index, the rule, what decided on it, and whether the record says
    that the client compacted its history right before.
    """
    found = {turn.index: turn for turn in turns}
    threads: dict[tuple[str, int, str], list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.index in rules and turn.usage is not None and (turn.status is None or turn.status < 400):
            threads[turn.session, turn.thread, rules[turn.index][0].name].append(turn)
    for told in threads.values():
        rule = rules[told[0].index][0]
        rows = [_figures(turn, rules[turn.index][2]) for turn in told]
        before: Turn | None = None
        for turn, step in zip(told, explain_series(rows, rule, catalogue), strict=True):
            _, decided_by, _ = rules[turn.index]
            cache = None
            if step.verdict != "not-reported":
                cache = CacheOutcome(
                    rule.name, decided_by, rule.verified, step.least, step.expected,
                    turn.usage.read if turn.usage else None, step.verdict,
                )  # fmt: skip
            findings = turn.findings
            if step.finding is not None and not turn.is_break:
                findings = (*findings, step.finding)
            changed = replace(turn, cache=cache, findings=findings)
            if PROMPT in turn.unseen and before is not None and step.verdict == "as-predicted":
                # It read all that an append reads, and nothing else does.
                changed = replace(changed, shape="append", parent=before.index)
            found[turn.index] = changed
            before = turn
    return [found[turn.index] for turn in turns]


def _figures(turn: Turn, compacted: bool) -> Figures:
    return Figures(turn.t, turn.model, turn.usage or Usage(0, None), compacted)
