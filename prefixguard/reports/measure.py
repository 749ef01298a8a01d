"""A trial for readers and for programs: `prefixguard-measure/1`, a table of predicted against measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixguard.trial import Evidence, Fit, MeasuredTurn, Trial

SCHEMA = "prefixguard-measure/1"
_STYLES = {"exact": "green", "inside": "green", "less": "red", "more": "yellow"}

# -- for programs ------------------------------------------------------------------------------


def measure_to_json(trial: Trial) -> bytes:
    """`prefixguard-measure/1`. Times are medians in milliseconds, counts are tokens, unknown is null."""
    engine = trial.engine
    fields = {
        "schema": SCHEMA,
        "engine": {
            "kind": engine.kind,
            "version": engine.version,
            "model": engine.model,
            "rule": engine.rule,
            "flags": list(engine.flags),
            "windowed": engine.windowed,
        },
        "repeat": trial.repeat,
        "warm_up": trial.warm_up,
        "turns": [_turn(turn) for turn in trial.turns],
        "skipped": [{"index": s.index, "reason": s.reason} for s in trial.skipped],
        "exact": trial.count("exact"),
        "inside": trial.count("inside"),
        "accounted_by_events": trial.accounted,
        "of": len(trial.turns),
        "fit": None if trial.fit is None else _fit(trial.fit),
        "breaks": {
            "turns": sum(turn.is_break for turn in trial.turns),
            "ms": _rounded(trial.break_ms),
        },
        "notes": list(trial.notes),
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def _turn(turn: MeasuredTurn) -> dict[str, Any]:
    return {
        "index": turn.index,
        "session": turn.session,
        "thread": turn.thread,
        "shape": turn.shape,
        "prompt_tokens": turn.prompt_tokens,
        "predicted_low": turn.predicted_low,
        "predicted_high": turn.predicted_high,
        "measured_cached": turn.measured,
        "measured_each": list(turn.measured_each),
        "verdict": turn.verdict,
        "explanation": turn.explanation,
        "words": turn.words or None,
        "server_ids": turn.exact_ids,
        "first_token_ms": _rounded(turn.first_token_ms),
        "prefill_ms": _rounded(turn.prefill_ms),
        "break": turn.is_break,
        "cause": turn.cause,
        "rebilled": turn.rebilled,
        "break_ms": _rounded(turn.break_ms),
        "evidence": None if turn.evidence is None else _evidence(turn.evidence),
    }


def _evidence(shown: Evidence) -> dict[str, Any]:
    return {
        "slot": shown.slot,
        "slot_held": shown.held,
        "slot_last_turn": shown.last,
        "stored": shown.stored,
        "left": shown.left,
        "cleared": shown.cleared,
    }


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "a_ms": fit.a,
        "b_ms_per_token": fit.b,
        "c_ms_per_token2": fit.c,
        "points": fit.points,
        "largest_deviation": round(fit.off, 4),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


# -- for readers -------------------------------------------------------------------------------


def measure_page(trial: Trial) -> RenderableType:
    """The whole measurement: server, turns, verdict, fit, what breaks cost."""
    return Group(*_parts(trial))


def _parts(trial: Trial) -> Iterator[RenderableType]:
    engine = trial.engine
    yield Text.assemble(
        (f"{engine.kind} {engine.version}", "bold"), f", {engine.model}, judged by {engine.rule}"
    )
    if engine.flags:
        yield Text(f"Started with {' '.join(engine.flags)}", "dim")
    yield Text()
    yield _table(trial)
    differing = [turn for turn in trial.turns if turn.words]
    if differing:
        yield Text()
        for turn in differing:
            told = f"turn {turn.index}: " + (f"{turn.explanation} " if turn.explanation else "")
            yield Padding(Text(told + turn.words), (0, 0, 0, 2))
    yield Text()
    yield _verdict(trial)
    yield from _times(trial)
    if trial.skipped:
        yield Text(f"{len(trial.skipped)} exchanges were not measured:", "yellow")
        for reason in dict.fromkeys(s.reason for s in trial.skipped):
            count = sum(s.reason == reason for s in trial.skipped)
            yield Padding(Text(f"{count} x {reason}"), (0, 0, 0, 2))
    for note in trial.notes:
        yield Text(f"Note: {note}", "yellow")


def _table(trial: Trial) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("turn", "prompt", "predicted", "measured", "first token", "prefill", "tokens/s"):
        table.add_column(name, justify="right")
    table.add_column("")
    for turn in trial.turns:
        evaluated = turn.prompt_tokens - turn.measured
        took = turn.prefill_ms
        speed = f"{evaluated / took * 1000:,.0f}" if took and evaluated > 1 else "-"
        table.add_row(
            str(turn.index), f"{turn.prompt_tokens:,}", _range(turn),
            Text(f"{turn.measured:,}", _STYLES[turn.verdict]), _ms(turn.first_token_ms), _ms(took), speed,
            _remark(turn),
        )  # fmt: skip
    return table


def _range(turn: MeasuredTurn) -> str:
    sign = "" if turn.exact_ids else "~"
    if turn.predicted_low == turn.predicted_high:
        return f"{sign}{turn.predicted_high:,}"
    return f"{sign}{turn.predicted_low:,}..{turn.predicted_high:,}"


def _remark(turn: MeasuredTurn) -> Text:
    text = Text(turn.verdict, _STYLES[turn.verdict])
    if turn.explanation:
        text.append(f" {turn.explanation}", "bold")
    if turn.is_break:
        text.append(f"  break {turn.cause or ''}".rstrip(), "red")
        if turn.break_ms is not None:
            text.append(f" costs {_ms(turn.break_ms)}", "red")
    return text


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:,.2f} s" if value >= 1000 else f"{value:,.1f} ms"


def _verdict(trial: Trial) -> Text:
    of, exact, inside = len(trial.turns), trial.count("exact"), trial.count("inside")
    words = f"{exact} of {of} turns exactly as predicted"
    if inside:
        words += f", {inside} inside the interval"
    told = trial.accounted
    if told:
        words += f", {told} less by exactly what the cache's events had thrown out"
    rest = of - exact - inside - told
    style = "bold green" if not rest else "bold red"
    return Text(words + (f", {rest} otherwise" if rest else ""), style)


def _times(trial: Trial) -> Iterator[Text]:
    fit = trial.fit
    runs = f"{trial.repeat} run{'s' if trial.repeat > 1 else ''}"
    if fit is None:
        yield Text(f"No fit of the times: too few different prompts, or too much noise ({runs})")
    else:
        yield Text(
            f"First token after {_ms(fit.a)} + {fit.b:.3g} ms x n + {fit.c:.3g} ms x n^2 "
            f"({fit.points} prompts, {runs}, largest deviation {fit.off:.0%})"
        )
    breaks = [turn for turn in trial.turns if turn.is_break]
    if breaks:
        cost = trial.break_ms
        tokens = sum(turn.rebilled for turn in breaks)
        what = f"{len(breaks)} break{'s' if len(breaks) > 1 else ''} sent {tokens:,} tokens again"
        yield Text(what + (f": {_ms(cost)} on this machine" if cost is not None else ""))
