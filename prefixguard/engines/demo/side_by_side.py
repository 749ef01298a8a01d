"""The demo's findings on one sheet: both runs side by side, the cause, the line, the fix."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixguard.engines.demo.runs import Demo
from prefixguard.reports import figures
from prefixguard.reports.ranking import ranked
from prefixguard.reports.text.line import predicted
from prefixguard.reports.text.mending import first_to_mend
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Session, Turn


def sheet(demo: Demo, rulebook: Rulebook) -> RenderableType:
    """Everything that the demo prints."""
    return Group(*_parts(demo, rulebook))


def _parts(demo: Demo, rulebook: Rulebook) -> Iterator[RenderableType]:
    yield Text.assemble(
        ("One agent, twice: ", "bold"),
        f"{demo.model} on {demo.program} ({demo.server}), on this machine's CPU",
    )
    for reason in demo.skipped:
        yield Text(f"Passed over {reason}", "dim")
    yield Text()
    yield _SideBySide(
        _table("with a clock in the system prompt", "red", demo.clock),
        _table("the same agent, mended", "green", demo.mended),
    )
    yield Text()
    yield _outcome(demo)
    yield Text()
    causes = [entry for entry in ranked([demo.clock]) if entry.severity != "info"][:1]
    yield from first_to_mend(causes, rulebook.findings)
    yield Text()
    yield Text.assemble(("The line: ", "bold"), (f"{_shown(demo.fault.filename)}:{demo.fault.row}", "cyan"))
    yield Padding(Text(linecache.getline(demo.fault.filename, demo.fault.row).strip()), (0, 0, 0, 2))
    yield Text()
    yield _where_to_go(demo)


class _SideBySide:
    """Both tables: beside each other where there is room, else one above the other."""

    def __init__(self, left: Table, right: Table) -> None:
        self._tables = left, right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [Measurement.get(console, options, table).maximum for table in self._tables]
        if sum(widths) + 6 <= options.max_width:
            grid = Table.grid(padding=(0, 6, 0, 0))
            grid.add_row(*self._tables)
            yield grid
        else:
            left, right = self._tables
            yield Group(left, Text(), right)


def _table(title: str, style: str, session: Session) -> Table:
    table = Table(
        title=Text(title, f"bold {style}"), title_justify="left",
        box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False,
    )  # fmt: skip
    for name in ("turn", "prompt", "predicted", "cached", "first token"):
        table.add_column(name, justify="right", no_wrap=True)
    for turn in session.turns:
        table.add_row(*_cells(turn))
    table.add_section()
    table.add_row(*_sums(session))
    return table


def _cells(turn: Turn) -> list[Text]:
    read = turn.usage.read if turn.usage else None
    guess = predicted(turn.cache.read_low, turn.cache.read_high) if turn.cache else figures.UNKNOWN
    return [
        Text(str(turn.index), "dim"),
        Text(figures.exact_tokens(turn.tokens.prompt)),
        Text(guess, "" if _is_exact(turn) else "yellow"),
        Text(figures.exact_tokens(read)),
        Text(figures.seconds(turn.timing.first_token_ms)),
    ]


def _is_exact(turn: Turn) -> bool:
    if turn.cache is None or turn.usage is None:
        return False
    return turn.cache.read_low == turn.cache.read_high == turn.usage.read


def _sums(session: Session) -> list[Text]:
    cached = sum(turn.usage.read or 0 for turn in session.turns if turn.usage)
    return [
        Text("all", "bold"),
        Text(figures.exact_tokens(sum(turn.tokens.prompt for turn in session.turns)), "bold"),
        Text(),
        Text(figures.exact_tokens(cached), "bold"),
        Text(figures.seconds(_waited(session)), "bold"),
    ]


def _waited(session: Session) -> float:
    return sum(turn.timing.first_token_ms or 0.0 for turn in session.turns)


def _outcome(demo: Demo) -> Text:
    turns = [*demo.clock.turns, *demo.mended.turns]
    exact = sum(map(_is_exact, turns))
    text = Text()
    text.append(f"With the clock the server computed {figures.exact_tokens(_computed(demo.clock))} prompt ")
    text.append(f"tokens, without it {figures.exact_tokens(_computed(demo.mended))}; the user waited ")
    text.append(f"{figures.seconds(_waited(demo.clock))} for first tokens, and ")
    text.append(f"{figures.seconds(_waited(demo.mended))}.\n")
    right = exact == len(turns)
    text.append(f"Predicted and measured cached tokens are equal on {exact} of {len(turns)} requests.")
    text.stylize("green" if right else "yellow", text.plain.index("Predicted"))
    return text


def _computed(session: Session) -> int:
    return sum(turn.usage.uncached for turn in session.turns if turn.usage)


def _shown(filename: str) -> str:
    try:
        nearer = os.path.relpath(filename)
    except ValueError:  # another drive
        return filename
    return filename if nearer.startswith("..") else nearer


def _where_to_go(demo: Demo) -> Text:
    text = Text(f"It took {figures.duration(demo.seconds)}. ", "dim")
    if demo.store is not None:
        text.append(f"The record is in {demo.store}: prefixguard show --store {demo.store}\n", "not dim")
    text.append("With your own agent: ", "bold not dim")
    text.append("prefixguard run -- COMMAND", "cyan not dim")
    text.append("; your own code: ", "bold not dim")
    text.append("prefixguard lint PATH", "cyan not dim")
    return text
