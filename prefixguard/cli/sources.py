"""What the reading commands share: names of logs and stored sessions in, exchanges and an analysis out.

A name is a file (an exchange log, or another record that the importers know),
or a recorded session: its id, the start of its id, or "last". A turn is named
by a number behind it: `last:3`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.progress import track

from prefixguard import configuration
from prefixguard.analysis import Options, analyze
from prefixguard.blame import with_sources
from prefixguard.cli import completing
from prefixguard.costs import ListPricer, PriceTable
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import open_source
from prefixguard.rendering.template import ChatTemplate
from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook, read_table
from prefixguard.store import LAST
from prefixguard.turn import Analysis, Session, Turn

_LONG_WORK = 200  # exchanges: fewer are analysed before a bar could be read


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that analyses: which record, which server's rule."""
    command = click.option(
        "--server",
        metavar="NAME",
        shell_complete=completing.cache_rules,
        help="The cache rule to judge by, e.g. anthropic or vllm:block=16.",
    )(command)
    return click.option("--store", metavar="PATH|URL", help="The record to read (or PREFIXGUARD_STORE).")(
        command
    )


def code_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option of commands that can point at the line of code behind a break."""
    return click.option(
        "--code",
        "code",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="The agent's source code: each break is pointed at the line that made it.",
    )(command)


def analysed(
    names: Sequence[str], store: str | None, server: str | None, code: Sequence[Path] = ()
) -> Analysis:
    """The analysis of each named source, one after the other; without names, of the last session.

    The project's configuration counts: its server, prices and decisions. code:
    source code to find the lines in that made the breaks.
    """
    rulebook = Rulebook()
    options = standing_options(rulebook, server)
    results = [
        analyze(tracked(open_source(name, store, tell)), rulebook, options) for name in names or (LAST,)
    ]
    sessions = tuple(session for result in results for session in result.sessions)
    whole = Analysis(results[0].version, results[0].prices, sessions)
    if not code:
        return whole
    from prefixguard.lint.index import source_index

    return with_sources(whole, source_index(code))


def standing_options(rulebook: Rulebook, server: str | None) -> Options:
    """The options of an analysis as the project's configuration has them. server: goes before it."""
    settings = configuration.read(configuration.find(Path.cwd()))
    contract = read_table(Path(settings.prices), PriceTable) if settings.prices else None
    return Options(
        server=server or settings.server,
        deliberate=frozenset(settings.deliberate),
        pricer=ListPricer(rulebook.tables("prices", PriceTable), contract),
    )


def chat_template_of(path: Path | None) -> ChatTemplate | None:
    """The chat template in a file; None for None. Raises InputError."""
    if path is None:
        return None
    try:
        return ChatTemplate(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def tell(lines: Sequence[str]) -> None:
    """Prints what has to be said of another tool's file, on standard error."""
    for line in lines:
        click.echo(line, err=True)


def tracked(exchanges: list[Exchange]) -> Iterator[Exchange] | list[Exchange]:
    """The same exchanges, with a bar on the terminal while many of them are worked through."""
    if len(exchanges) < _LONG_WORK or not sys.stderr.isatty():
        return exchanges
    return iter(track(exchanges, "Analysing", console=console(sys.stderr), transient=True))


@dataclass(frozen=True, slots=True)
class Place:
    """A source, and maybe a turn in it."""

    source: str
    turn: int | None


def place(name: str) -> Place:
    """What a command line names: `run-7`, `log.jsonl`, `run-7:3`."""
    source, colon, number = name.rpartition(":")
    if colon and source and number.isdecimal() and not Path(name).is_file():
        return Place(source, int(number))
    return Place(name, None)


def find_turn(analysis: Analysis, source: str, index: int) -> tuple[Session, Turn]:
    """The turn with that position in the log. Raises InputError."""
    for session in analysis.sessions:
        for turn in session.turns:
            if turn.index == index:
                return session, turn
    last = max((turn.index for session in analysis.sessions for turn in session.turns), default=None)
    have = "it holds no turns" if last is None else f"its turns are 0 to {last}"
    raise InputError(f"{source}: there is no turn {index}; {have}")
