"""Simulations for readers and for programs: `prefixguard-simulate/1`, tables, and one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prefixguard.reports import figures
from prefixguard.reports.kv import size_words
from prefixguard.reports.plot import Line, plot_svg
from prefixguard.simulate import Capacity, Outcome, Run, Setting, Workload


@dataclass(frozen=True, slots=True)
class Simulation:
    """What was simulated. model: whose bytes a token takes, "" when pools were given in tokens."""

    workload: Workload
    runs: tuple[Run, ...]
    capacities: tuple[Capacity, ...] = ()
    model: str = ""
    in_flight: int = 1
    tolerated: float = 0.05
    notes: tuple[str, ...] = ()

    @property
    def mended(self) -> bool:
        """Whether the workload has breaks, and was also played without them."""
        return any(run.mended is not None for run in self.runs)


# -- for programs ------------------------------------------------------------------------------


def simulation_to_json(simulation: Simulation) -> bytes:
    """`prefixguard-simulate/1`. Counts are tokens, memory is bytes on each GPU, unknown is null."""
    work = simulation.workload
    fields = {
        "schema": "prefixguard-simulate/1",
        "workload": {
            "source": work.source,
            "requests": len(work.requests),
            "sessions": work.sessions,
            "breaks": work.breaks,
            "exact": work.exact,
        },
        "model": simulation.model or None,
        "in_flight": simulation.in_flight,
        "runs": [_run(run) for run in simulation.runs],
        "capacity": [_capacity(found) for found in simulation.capacities],
        "tolerated_loss": simulation.tolerated,
        "notes": list(simulation.notes),
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def _setting(setting: Setting) -> dict[str, Any]:
    return {
        "memory_bytes": setting.memory,
        "kv_dtype": setting.format or None,
        "block_size": setting.block,
        "blocks": setting.blocks,
        "tokens": setting.tokens,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        **_setting(run.setting),
        "sessions": run.sessions,
        **_outcome(run.outcome),
        "mended": None if run.mended is None else _outcome(run.mended),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "requests": outcome.requests,
        "prompt_tokens": outcome.prompt,
        "cached_tokens": outcome.cached,
        "hit_rate": outcome.hit_rate,
        "possible_hit_rate": outcome.possible_hit_rate,
        "recomputed_tokens": outcome.recomputed,
        "recomputed_after_eviction_tokens": outcome.recomputed_after_eviction,
        "evictions": outcome.evictions,
        "refused": outcome.refused,
        "prefill_seconds": outcome.seconds,
    }


def _capacity(found: Capacity) -> dict[str, Any]:
    return {
        **_setting(found.setting),
        "sessions": found.sessions,
        "at_least": found.at_least,
        "computed_tokens_per_request": round(found.computed, 1),
        "mended_sessions": found.mended,
        "mended_at_least": found.mended_at_least,
        "mended_computed_tokens_per_request": None
        if found.mended_computed is None
        else round(found.mended_computed, 1),
    }


# -- for readers -------------------------------------------------------------------------------


def simulation_page(simulation: Simulation) -> RenderableType:
    """A simulation as a page of text."""
    parts: list[RenderableType] = [_heading(simulation), Text(), _table(simulation)]
    if simulation.capacities:
        parts += [Text(), _capacity_table(simulation)]
    parts += [Text(), *(Text(f"Note: {note}.", "dim") for note in _notes(simulation))]
    return Group(*parts)


def _heading(simulation: Simulation) -> Text:
    work = simulation.workload
    heading = Text(work.source, "bold")
    facts = [figures.plural(len(work.requests), "request")]
    if 1 < work.sessions < len(work.requests) or work.sessions == 1:
        facts.append(figures.plural(work.sessions, "session"))
    if work.breaks:
        facts.append(figures.plural(work.breaks, "break"))
    if simulation.model:
        facts.append(simulation.model)
    heading.append(": " + ", ".join(facts), "not bold")
    return heading


def _notes(simulation: Simulation) -> list[str]:
    notes = []
    if not simulation.workload.exact:
        notes.append("estimate: positions are counted segment by segment, not by the server's own tokens")
    if simulation.mended:
        notes.append(
            "mended means the same content without its breaks, appended to the turn that it continues"
        )
    if simulation.capacities:
        whose = "mended sessions" if simulation.mended else "sessions"
        notes.append(
            "sessions served: copies of the recorded ones with other histories, a turn of each in turn. "
            f"So many {whose} that eviction takes at most {simulation.tolerated:.0%} of what could be read"
            + ("; as sent, so many that cost the same prefill work" if simulation.mended else "")
        )
    return [*notes, *simulation.notes]


def _table(simulation: Simulation) -> Table:
    columns, rows = _rows(simulation)
    return _grid(columns, rows)


def _capacity_table(simulation: Simulation) -> Table:
    columns, rows = _capacity_rows(simulation)
    return _grid(columns, rows)


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _pool(setting: Setting) -> list[str]:
    memory = [size_words(setting.memory), setting.format] if setting.memory is not None else []
    return [*memory, figures.tokens(setting.tokens), str(setting.block)]


def _pool_columns(simulation: Simulation) -> list[str]:
    first = simulation.runs[0].setting if simulation.runs else simulation.capacities[0].setting
    return [*(["memory", "format"] if first.memory is not None else []), "holds", "block"]


def _rows(simulation: Simulation) -> tuple[list[str], list[list[str]]]:
    sessions = any(run.sessions is not None for run in simulation.runs)
    timed = any(run.outcome.seconds is not None for run in simulation.runs)
    columns = [*_pool_columns(simulation), *(["sessions"] if sessions else [])]
    columns += ["hit rate", "possible", "computed", "of it evicted", "evictions"]
    columns += ["prefill s"] if timed else []
    columns += ["mended hit rate", "mended computed"] if simulation.mended else []
    rows = []
    for run in simulation.runs:
        outcome, mended = run.outcome, run.mended
        row = [
            *_pool(run.setting),
            *([figures.UNKNOWN if run.sessions is None else str(run.sessions)] if sessions else []),
        ]
        row += [
            figures.percent(outcome.hit_rate),
            figures.percent(outcome.possible_hit_rate),
            figures.tokens(outcome.recomputed),
            figures.tokens(outcome.recomputed_after_eviction),
            f"{outcome.evictions:,}" + (f" ({outcome.refused} refused)" if outcome.refused else ""),
        ]
        row += (
            [f"{outcome.seconds:,.1f}" if outcome.seconds is not None else figures.UNKNOWN] if timed else []
        )
        if simulation.mended:
            row += [
                figures.percent(mended.hit_rate if mended else None),
                figures.tokens(mended.recomputed if mended else None),
            ]
        rows.append(row)
    return columns, rows


def _capacity_rows(simulation: Simulation) -> tuple[list[str], list[list[str]]]:
    mended = any(found.mended is not None for found in simulation.capacities)
    columns = [*_pool_columns(simulation), "sessions served", "computed a request"]
    columns += ["served when mended", "computed a request"] if mended else []
    rows = []
    for found in simulation.capacities:
        row = [*_pool(found.setting), _number(found.sessions, found.at_least), f"{found.computed:,.0f}"]
        if mended:
            row += [_number(found.mended, found.mended_at_least)]
            row += [figures.UNKNOWN if found.mended_computed is None else f"{found.mended_computed:,.0f}"]
        rows.append(row)
    return columns, rows


def _number(count: int | None, at_least: bool) -> str:
    if count is None:
        return figures.UNKNOWN
    return f"{count} or more" if at_least else str(count)


# -- a picture ---------------------------------------------------------------------------------


def simulation_svg(simulation: Simulation) -> str:
    """Hit rate over the size of the pool, a line for each format, block size and number of sessions."""
    lines: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    by_memory = bool(simulation.runs) and simulation.runs[0].setting.memory is not None
    for run in simulation.runs:
        size = run.setting.memory if by_memory else run.setting.tokens
        name = _line_name(simulation, run)
        for outcome, mended in ((run.outcome, False), (run.mended, True)):
            if outcome is not None and outcome.hit_rate is not None and size:
                lines.setdefault((name, mended), []).append((float(size), outcome.hit_rate))
    drawn = [
        Line(
            f"{name}{' mended' if mended else ''}".strip() or "as sent", tuple(sorted(points)), dashed=mended
        )
        for (name, mended), points in lines.items()
    ]
    label = "KV memory on each GPU" if by_memory else "tokens that the pool holds"
    return plot_svg(drawn, title=f"Hit rate: {simulation.workload.source}", x_label=label, memory=by_memory)


def _line_name(simulation: Simulation, run: Run) -> str:
    words = []
    if len({r.setting.format for r in simulation.runs}) > 1:
        words.append(run.setting.format)
    if len({r.setting.block for r in simulation.runs}) > 1:
        words.append(f"block {run.setting.block}")
    if run.sessions is not None and len({r.sessions for r in simulation.runs}) > 1:
        words.append(figures.plural(run.sessions, "session"))
    return " ".join(words)


def simulation_html(simulation: Simulation) -> str:
    """One page without anything from outside: the picture and the tables."""
    tables = [_html_table(*_rows(simulation))]
    if simulation.capacities:
        tables.append(_html_table(*_capacity_rows(simulation)))
    notes = "".join(f"<p class=note>{escape(note)}.</p>" for note in _notes(simulation))
    title = escape(_heading(simulation).plain)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>"
        f"{simulation_svg(simulation)}{''.join(tables)}{notes}</html>\n"
    )


_STYLE = (
    "body{font:15px system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c2430}"
    "h1{font-size:1.2rem}svg{width:100%;height:auto}table{border-collapse:collapse;margin:1.5rem 0}"
    "th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #d8dde5;white-space:nowrap}"
    ".note{color:#5b6675}"
)


def _html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{head}{body}</table>"
