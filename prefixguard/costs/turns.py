"""What a turn cost, what it would have cost, and whose doing the difference is.

The analysis calls `cost_of_turn` once per turn and `sum_costs` per session.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prefixguard.costs.pricer import Pricer
from prefixguard.costs.rates import Rates, Terms, price
from prefixguard.finding import Agent
from prefixguard.turn import Cost, Turn, Usage
from prefixguard.wire.usage import UNSTATED

_FIRST_EPOCH_SECOND = 1e9
"""Smaller times count from the start of a log, not from 1970."""
_NOON = datetime.time(12, tzinfo=datetime.UTC)


def cost_of_turn(
    pricer: Pricer,
    model: str | None,
    api: str,
    upstream: str | None,
    usage: Usage | None,
    at: float,
    *,
    ideal_read: int | None,
    rule_write_ttl: str | None,
    options: Terms = Terms(),  # noqa: B008 - immutable
    estimated: bool = False,
    beside: Sequence[Usage] = (),
    possible_read: int = 0,
) -> Cost:
    """The four sums of one turn, in US dollars; None where no price is known.

    at: the request's time, in seconds since the epoch or since the log began.
    ideal_read: the tokens that a pure append would have read ("keep"); None
    when the turn was not understood. rule_write_ttl: the lifetime with which
    the cache model in force writes, None when it never bills for writing or
    the prompt is too short to be kept. estimated: the usage was not reported
    but worked out from estimated tokens. beside: requests billed with this
    one (`DecodedUsage.beside`). possible_read: the most that can have been
    read, for a usage that does not say: the bill is then a range.

    Ideal reads at least what was really read, and pays for writing the new
    tail. So `avoidable` is negative where a client did not write what a
    good one would have: an investment that the next turn earns back.
    """
    if usage is None or model is None:
        return Cost()
    rates = pricer.rates(model, api=api, upstream=upstream, at=moment(at, pricer, options), terms=options)
    if rates is None:
        return Cost()
    actual = price(rates, usage)
    extra = [price(rates, each) for each in beside]
    added = sum(money.total for money in extra)
    nothing_cached = price(rates, Usage(usage.total, 0, {}, usage.output)).total
    nothing_cached += sum(price(rates, Usage(each.total, 0, {}, each.output)).total for each in beside)
    least = most = None
    if usage.read is None and possible_read:
        read = min(possible_read, usage.total)
        least = price(rates, Usage(usage.total - read, read, {}, usage.output)).total + added
        most = actual.total + added
        least, most = min(least, most), max(least, most)
    doubts = bool(actual.doubts or any(money.doubts for money in extra))
    if ideal_read is None:
        return Cost(
            actual=actual.total + added, uncached=nothing_cached, estimated=estimated or doubts,
            least=least, most=most,
        )  # fmt: skip
    ideal = price(rates, ideal_usage(usage, ideal_read, rule_write_ttl, rates))
    avoidable = actual.total - ideal.total
    return Cost(
        actual=actual.total + added,
        uncached=nothing_cached,
        ideal=ideal.total + added,
        avoidable=0.0 if abs(avoidable) < 1e-12 else avoidable,
        estimated=estimated or doubts,
        least=least,
        most=most,
    )


def ideal_usage(usage: Usage, ideal_read: int, rule_write_ttl: str | None, rates: Rates) -> Usage:
    """The same prompt as a good client would have sent it.

    What was kept is read; behind it the client's own unmarked tail stays
    uncached, and the rest is written, at the lifetimes that the client chose:
    the shorter ones first, since they stand at the end of a prompt.
    """
    prompt = usage.total
    read = min(prompt, max(ideal_read, usage.read or 0))
    rest = prompt - read
    writes = {ttl: tokens for ttl, tokens in usage.write.items() if tokens}
    if not writes and (rule_write_ttl is None or not rates.write):
        return Usage(rest, read, {}, usage.output)
    uncached = min(usage.uncached, rest) if writes else 0
    rest -= uncached
    written: dict[str, int] = {}
    for ttl in sorted(writes, key=lambda each: rates.write_at(each, prompt)[0]):
        written[ttl] = min(rest, writes[ttl])
        rest -= written[ttl]
    if rest:
        last = max(written, key=lambda each: rates.write_at(each, prompt)[0]) if written else rule_write_ttl
        written[last or UNSTATED] = written.get(last or UNSTATED, 0) + rest
    return Usage(uncached, read, written, usage.output)


def moment(at: float, pricer: Pricer, terms: Terms) -> datetime.datetime:
    """When the prices are to be taken.

    The request's own time. With a price date, that day at the request's time
    of day. Where a log counts from its own start, noon of the price date, or
    of the day of the price list.
    """
    real: datetime.datetime | None = None
    if at >= _FIRST_EPOCH_SECOND:
        try:
            real = datetime.datetime.fromtimestamp(at, datetime.UTC)
        except (OverflowError, OSError, ValueError):
            real = None
    if terms.price_date is not None:
        return datetime.datetime.combine(terms.price_date, real.timetz() if real else _NOON)
    return real or datetime.datetime.combine(_list_date(pricer), _NOON)


def _list_date(pricer: Pricer) -> datetime.date:
    try:
        return datetime.date.fromisoformat(pricer.prices.date.removeprefix("after "))
    except ValueError:
        return datetime.date.max  # a list without a date: its newest prices


def sum_costs(costs: Iterable[Cost]) -> Cost:
    """The sums over the turns of a session, or over sessions.

    Leave failed requests out: they are not billed. A sum whose parts are not
    all known is marked `estimated`, and None when no part is known. Where
    caching does not pay at all, not caching is the ideal: the avoidable
    money of a sum is never negative.
    """
    known: list[Cost] = []
    complete = True
    for cost in costs:
        if cost.actual is None:
            complete = False
        else:
            known.append(cost)
    if not known:
        return Cost()
    # Nothing is known to be avoidable on a turn that was not understood.
    actual = math.fsum(cost.actual for cost in known if cost.actual is not None)
    ideals = [cost.actual if cost.ideal is None else cost.ideal for cost in known]
    ideal: float | None = min(actual, math.fsum(each for each in ideals if each is not None))
    if all(cost.ideal is None for cost in known):
        ideal = None  # nothing was understood: unknown, which is not "nothing"
    return Cost(
        currency=known[0].currency,
        actual=actual,
        uncached=math.fsum(cost.uncached or 0.0 for cost in known),
        ideal=ideal,
        avoidable=None if ideal is None else actual - ideal,
        estimated=not complete
        or any(cost.estimated or (cost.ideal is None and ideal is not None) for cost in known),
        least=_bound(known, [cost.least for cost in known]),
        most=_bound(known, [cost.most for cost in known]),
    )


def _bound(costs: Sequence[Cost], bounds: Sequence[float | None]) -> float | None:
    """A bound of a sum: exact parts count as they are; None when every part is exact."""
    if all(bound is None for bound in bounds):
        return None
    return math.fsum(
        (cost.actual or 0.0) if bound is None else bound for cost, bound in zip(costs, bounds, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Split:
    """Avoidable money by what caused it and by who can mend it, in US dollars.

    by_code also holds what was deliberate; by_agent does not. No finding
    accounts for `unexplained`.
    """

    by_code: Mapping[str, float] = field(default_factory=dict)
    by_agent: Mapping[Agent, float] = field(default_factory=dict)
    deliberate: float = 0.0
    unexplained: float = 0.0


def split_avoidable(turns: Iterable[Turn]) -> Split:
    """Shares each turn's avoidable money out among the findings that explain it.

    Those are its primary findings, or else its other findings that are more
    than remarks; several get equal shares. Investments (negative amounts)
    have no culprit and are left out.
    """
    by_code: dict[str, float] = {}
    by_agent: dict[Agent, float] = {}
    deliberate = unexplained = 0.0
    for turn in turns:
        money = turn.cost.avoidable
        if money is None or money <= 0:
            continue
        causes = [each for each in turn.findings if each.primary]
        causes = causes or [each for each in turn.findings if each.severity != "info"]
        if not causes:
            unexplained += money
        for cause in causes:
            share = money / len(causes)
            by_code[cause.code] = by_code.get(cause.code, 0.0) + share
            if cause.deliberate:
                deliberate += share
            else:
                by_agent[cause.by] = by_agent.get(cause.by, 0.0) + share
    return Split(by_code, by_agent, deliberate, unexplained)


def seconds_avoidable(usage: Usage, ideal_read: int, first_token_ms: float | None) -> float | None:
    """What a local server's user pays with: seconds of waiting that a cached prefix would have saved.

    The time to the first token, shared out by the tokens that had to be
    evaluated. An estimate: attention over a long prompt grows faster than
    that, and waiting in a queue is counted too. None where nobody measured,
    or the server does not say what it reused.
    """
    if first_token_ms is None or usage.read is None:
        return None
    evaluated = usage.total - usage.read
    spared = min(ideal_read, usage.total) - usage.read
    return first_token_ms / 1000 * spared / evaluated if spared > 0 and evaluated else 0.0
