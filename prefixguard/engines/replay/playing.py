"""Plays a recorded session on a server, run after run, and hands what it said to the analysis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from prefixguard.analysis import Fold, Options
from prefixguard.engines.replay.benches import Bench
from prefixguard.engines.replay.bodies import Asked, NotReplayedError, asked_again
from prefixguard.errors import InputError, ServerError
from prefixguard.exchange import Exchange, Rendered, Timing
from prefixguard.rulebook import Rulebook
from prefixguard.trial import Evidence, Sample, Shown, Skipped, Trial, Witness, judge
from prefixguard.wire.streams import assemble
from prefixguard.wire.usage import decode_usage


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a measurement is: requests done, of how many, and what is done now."""

    done: int
    total: int
    doing: str


def measure(
    exchanges: Sequence[Exchange],
    bench: Bench,
    *,
    rulebook: Rulebook | None = None,
    repeat: int = 1,
    warm_up: int = 0,
    reply_tokens: int = 1,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Trial:
    """Asks every request again, in the recorded order and one after the other, `repeat` times.

    Each run begins fresh. warm_up: runs before, whose times do not count.
    Predictions rest on the ids that the server itself makes of the prompts; they
    are asked for behind each run, so that looking does not disturb the times.
    Raises InputError when nothing of the record can be asked again, ServerError
    when the server goes away.
    """
    skipped: list[Skipped] = []
    asked = _askable(exchanges, bench, reply_tokens, skipped)
    samples: dict[int, list[Sample]] = defaultdict(list)
    first: list[Exchange] | None = None
    kept: list[int] = []
    notes: list[str] = list(bench.notes)
    trail: list[tuple[bool, Shown]] = []  # whether it was a counted turn, and what was shown behind it
    salt: str | None = None
    total = len(asked) * (warm_up + repeat)
    for run in range(warm_up + repeat):
        extra = bench.fresh()
        before, ours = bench.counts(), 0
        if first is None:
            salt = extra.get("cache_salt")
            trail.append((False, bench.shown()))
        answered: list[Exchange] = []
        for number, place in enumerate(asked if first is None else kept):
            what = "warming up" if run < warm_up else f"run {run - warm_up + 1} of {repeat}"
            on_progress(Progress(run * len(asked) + number, total, what))
            request = asked_again(
                exchanges[place],
                model=bench.model,
                reply_tokens=reply_tokens,
                extra=extra,
                no_calls=bench.no_calls,
            )
            try:
                exchange, sample, size = _ask(bench, exchanges[place], request)
            except ServerError as error:
                if not _refused(error):
                    raise
                if first is not None:
                    raise ServerError(f"turn {place} was answered before, and now: {error}") from error
                if run < warm_up:
                    continue
                skipped.append(Skipped(place, f"the server refused it: {error}"))
                continue
            answered.append(exchange)
            if first is None:
                trail.append((run >= warm_up, bench.shown()))
            if run >= warm_up and first is None:
                kept.append(place)
            ours += size
            if run >= warm_up:
                samples[number if first is not None else len(kept) - 1].append(sample)
        after = bench.counts()
        if before is not None and after is not None and after - before > ours:
            notes.append(
                f"the server took {after - before - ours:,.0f} prompt tokens more than were asked for here: "
                "somebody else uses it"
            )
        if run >= warm_up and first is None:
            first = answered
    if not first:
        reason = f"; the first: {skipped[0].reason}" if skipped else ""
        raise InputError(f"nothing of this record could be asked again of {bench.engine.url}{reason}")
    fold = Fold(rulebook or Rulebook(), Options(server=bench.facts.rule))
    rendered = [bench.engine.render(exchange) for exchange in first]
    turns = [fold.step(replace(e, rendered=ids)) for e, ids in zip(first, rendered, strict=True)]
    turns = fold.turns() or turns
    return judge(
        bench.facts, turns, samples, skipped, places=kept, warm_up=warm_up,
        evidence=_evidence(trail, rendered, salt, notes), notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _evidence(
    trail: Sequence[tuple[bool, Shown]],
    rendered: Sequence[Rendered | None],
    salt: str | None,
    notes: list[str],
) -> dict[int, Evidence]:
    """What the server showed of each counted turn, in order; what it lost and threw out goes to `notes`."""
    witness, found = Witness(), dict[int, Evidence]()
    for counted, shown in trail:
        if counted:
            ids = rendered[len(found)]
            found[len(found)] = witness.turn(ids.prompt if ids is not None else None, shown, salt)
        else:
            witness.see(shown)
    if witness.lost:
        notes.append(f"{witness.lost:,} messages of the cache's events were lost: evictions may be missing")
    elif witness.ledger.stored:
        notes.append(
            f"the events of the cache: {witness.ledger.stored:,} blocks stored, "
            f"{witness.ledger.removed:,} thrown out"
        )
    return found


def _askable(
    exchanges: Sequence[Exchange], bench: Bench, reply_tokens: int, skipped: list[Skipped]
) -> list[int]:
    """The places of what can be asked again; what cannot goes to `skipped`."""
    found = []
    for place, exchange in enumerate(exchanges):
        try:
            asked_again(exchange, model=bench.model, reply_tokens=reply_tokens)
        except NotReplayedError as error:
            skipped.append(Skipped(place, str(error)))
        else:
            found.append(place)
    return found


def _ask(bench: Bench, recorded: Exchange, request: Asked) -> tuple[Exchange, Sample, int]:
    """One request: the exchange that came of it, what was measured, the tokens of its prompt."""
    passed = {
        name: value
        for name, value in recorded.headers.items()
        if name.startswith(("x-prefixguard-", "anthropic-version"))
    }
    answer = bench.client.timed(request.path, request.body, passed)
    counted = bench.counted(answer.body)
    response = assemble(answer.body, answer.content_type)
    exchange = replace(
        recorded, path=request.path, request=request.body, response=response, usage=None,
        status=answer.status, upstream=bench.engine.url, aborted=False, rendered=None,
        timing=Timing(answer.first_ms, answer.total_ms),
    )  # fmt: skip
    body = msgspec.json.decode(response) if response else None
    found = decode_usage(body) if isinstance(body, dict) else None
    usage = found.usage if found is not None else None
    # The server's usage is of this very request; its counters may hold another client's as well.
    cached = usage.read if usage is not None and usage.read is not None else counted.cached
    size = usage.total if usage is not None else counted.prompt or 0
    return exchange, Sample(cached, answer.first_ms, counted.prefill_ms), size


def _refused(error: ServerError) -> bool:
    """Whether the server is there, and said no to this one request."""
    return " answered 4" in str(error) or " answered 5" in str(error)
