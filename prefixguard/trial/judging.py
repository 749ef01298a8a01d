"""Holds measurements to predictions: a verdict for each turn, and what accounts for a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from prefixguard.trial.evidence import Evidence
from prefixguard.trial.fit import Fit, Point, fit_points
from prefixguard.trial.outcome import EngineFacts, MeasuredTurn, Sample, Skipped, Trial, TrialVerdict
from prefixguard.turn import Turn

_NO_FIGURE = "the server does not say how many tokens it read from its cache"
_MISSES = ("PG606", "PG602", "PG605", "PG601", "PG706", "PG703", "PG804")

_MORE = {
    "llama.cpp": (
        "more than this session left: a prompt restored from host memory (--cache-ram), pieces moved by "
        "--cache-reuse, or the prompt of another client"
    ),
    "vllm": "more than this session left: blocks of another client with the same salt, or of an offload tier",
}


def judge(
    engine: EngineFacts,
    turns: Sequence[Turn],
    samples: Mapping[int, Sequence[Sample]],
    skipped: Sequence[Skipped] = (),
    *,
    places: Sequence[int] | None = None,
    warm_up: int = 0,
    notes: Sequence[str] = (),
    evidence: Mapping[int, Evidence] | None = None,
) -> Trial:
    """The trial of analysed turns. samples: by the turn's index, one for each run.

    places: where each turn stands in the record, when some of the record was
    passed over. evidence: by the turn's index, of the first run.
    """
    measured: list[MeasuredTurn] = []
    passed = list(skipped)
    sizes = {turn.index: turn.tokens.prompt for turn in turns}
    for turn in turns:
        place = places[turn.index] if places is not None else turn.index
        taken = samples[turn.index]
        counts = [sample.cached for sample in taken]
        if turn.cache is None or counts[0] is None:
            passed.append(Skipped(place, turn.note or _NO_FIGURE))
            continue
        parent = sizes.get(turn.parent) if turn.parent is not None else None
        shown = _placed((evidence or {}).get(turn.index), places)
        measured.append(_judged(engine, turn, place, taken, counts[0], parent, shown))
    fit = fit_points([p for turn in measured if (p := _point(turn)) is not None])
    priced = tuple(replace(turn, break_ms=_break_ms(turn, fit)) for turn in measured)
    return Trial(
        engine, priced, tuple(sorted(passed, key=lambda s: s.index)), fit,
        repeat=max((len(taken) for taken in samples.values()), default=0), warm_up=warm_up,
        notes=(*notes, *_notes(engine, priced)),
    )  # fmt: skip


def _judged(
    engine: EngineFacts, turn: Turn, place: int, taken: Sequence[Sample], first: int, parent: int | None,
    shown: Evidence | None,
) -> MeasuredTurn:  # fmt: skip
    assert turn.cache is not None
    low, high = (turn.cache.read_low, turn.cache.read_high) if engine.caching else (0, 0)
    verdict = _verdict(low, high, first)
    explanation, words = _explained(engine, turn, verdict, low, high, first, shown)
    primary = next((f.code for f in turn.findings if f.primary), None)
    total = turn.usage.total if turn.usage is not None else turn.tokens.prompt
    return MeasuredTurn(
        index=place, session=turn.session, thread=turn.thread, shape=turn.shape, prompt_tokens=total,
        predicted_low=low, predicted_high=high, measured=first,
        measured_each=tuple(s.cached for s in taken if s.cached is not None),
        verdict=verdict, explanation=explanation, words=words,
        first_token_ms=_median([s.first_token_ms for s in taken]),
        prefill_ms=_median([s.prefill_ms for s in taken]),
        exact_ids=turn.tokens.exact, is_break=turn.is_break, cause=primary if turn.is_break else None,
        rebilled=turn.tokens.rebilled, parent_tokens=parent, evidence=shown,
    )  # fmt: skip


def _verdict(low: int, high: int, measured: int) -> TrialVerdict:
    if measured < low:
        return "less"
    if measured > high:
        return "more"
    return "exact" if low == high else "inside"


def _explained(
    engine: EngineFacts, turn: Turn, verdict: TrialVerdict, low: int, high: int, measured: int,
    shown: Evidence | None,
) -> tuple[str | None, str]:  # fmt: skip
    codes = [f.code for f in turn.findings]
    if verdict == "exact":
        own = min(turn.tokens.shared, turn.tokens.prompt - 1)
        if engine.kind == "llama.cpp" and turn.tokens.exact and measured < own and engine.caching and high:
            return "PG606", f"{_taken_by(shown)}: {measured:,} of {own:,} shared tokens were left"
        return None, ""
    if verdict == "more":
        return None, _MORE.get(engine.kind, "more than this session left")
    missing = high - measured
    if shown is not None and missing and (shown.cleared or shown.evicted):
        return "PG602", _thrown_out(shown, measured)
    if engine.windowed and missing:
        return "PG702", f"no state was kept at the divergence: {missing:,} shared tokens were evaluated again"
    if verdict == "inside":
        return None, ""
    named = next((code for code in _MISSES if code in codes), None)
    if named is not None and named != "PG804":
        return named, next(f.message for f in turn.findings if f.code == named)
    if engine.windowed is None:
        return "PG702", "fewer than the prefix allows; the model's layers are not known: give --model"
    return "PG804", f"the prefix is unchanged, yet {low - measured:,} tokens of it were not read"


def _taken_by(shown: Evidence | None) -> str:
    """Who had the slot before, as far as the server showed it."""
    if shown is None or shown.slot is None:
        return "another prompt took the slot"
    who = f"turn {shown.last}" if shown.last is not None else "a prompt that is none of ours"
    held = f" and left {shown.held:,} tokens in it" if shown.held else ""
    return f"{who} had taken slot {shown.slot}{held}"


def _thrown_out(shown: Evidence, measured: int) -> str:
    if shown.cleared:
        return "the cache had been emptied, as its events say"
    left, stored = shown.left or 0, shown.stored or 0
    words = f"evicted: {left:,} of {stored:,} stored tokens were left, as the cache's events say"
    return words if left == measured else f"{words}; {measured:,} were read"


def _placed(shown: Evidence | None, places: Sequence[int] | None) -> Evidence | None:
    """The same with the turn that had the slot before named by its place in the record."""
    if shown is None or shown.last is None or places is None:
        return shown
    return replace(shown, last=places[shown.last])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _point(turn: MeasuredTurn) -> Point | None:
    """A turn whose every run read the same: else its median belongs to no one count."""
    if turn.first_token_ms is None or len(set(turn.measured_each)) != 1:
        return None
    return Point(turn.prompt_tokens, turn.measured, turn.first_token_ms)


def _break_ms(turn: MeasuredTurn, fit: Fit | None) -> float | None:
    """What it took to evaluate again what an append would have read."""
    if not turn.is_break:
        return None
    # Without a stored state, what lies before the divergence is evaluated again as well.
    again = turn.rebilled + max(0, turn.predicted_high - turn.measured)
    again = min(again, turn.prompt_tokens - turn.measured)
    if turn.parent_tokens is not None:
        again = min(again, max(0, turn.parent_tokens - turn.measured))
    if fit is not None:
        return fit.between(turn.measured, turn.measured + again)
    evaluated = turn.prompt_tokens - turn.measured
    took = turn.prefill_ms if turn.prefill_ms is not None else turn.first_token_ms
    return took * again / evaluated if took is not None and evaluated else None


def _notes(engine: EngineFacts, turns: Sequence[MeasuredTurn]) -> list[str]:
    notes = []
    if not engine.caching:
        notes.append("the server says that its prefix cache is off: every turn is evaluated whole")
    varied = [turn.index for turn in turns if len(set(turn.measured_each)) > 1]
    if varied:
        shown = ", ".join(map(str, varied[:8])) + (" ..." if len(varied) > 8 else "")
        notes.append(
            f"cached tokens differ between the runs on turns {shown}: something outlived the fresh start, "
            "or somebody else uses the server"
        )
    guessed = sum(not turn.exact_ids for turn in turns)
    if guessed:
        notes.append(f"{guessed} of {len(turns)} predictions rest on counted text, not on the server's ids")
    return notes
