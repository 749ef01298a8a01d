"""What the reading commands share: names of logs and stored sessions in, exchanges and an analysis out.

A name is a file (an exchange log, or another record that the importers know),
or a recorded session: its id, the start of its id, or "last". A turn is named
by a number behind it: `last:3`.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
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
from prefixguard.gateway import compare_taps
from prefixguard.importers import open_source
from prefixguard.rendering.template import ChatTemplate
from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook, read_table
from prefixguard.store import LAST
from prefixguard.tokens.counter import FileTokenizer
from prefixguard.turn import Analysis, Session, Turn

_LONG_WORK = 200  # exchanges: fewer are analysed before a bar could be read


@dataclass(frozen=True, slots=True)
class Reading:
    """How a command reads and judges what it is given; its fields are the options of all such commands.

    store: the record. server: the cache rule. chat_template: of the server.
    tokenizer: a file, or the address of a running server that renders. config:
    in the place of the project's own. price_date: prices of that day.
    upstream_log: the same requests as seen behind a gateway.
    """

    store: str | None = None
    server: str | None = None
    chat_template: Path | None = None
    tokenizer: str | None = None
    config: Path | None = None
    price_date: datetime.datetime | None = None
    upstream_log: str | None = None

    def options(self, rulebook: Rulebook) -> Options:
        """The options of an analysis. Raises InputError."""
        counts = self.tokenizer and not _is_url(self.tokenizer)
        return replace(
            standing_options(rulebook, self.server, self.config),
            template=chat_template_of(self.chat_template),
            tokenizer=FileTokenizer(self.tokenizer) if self.tokenizer and counts else None,
            price_date=self.price_date.date() if self.price_date else None,
        )

    def exchanges(self, name: str) -> list[Exchange]:
        """The exchanges that a name stands for, rendered by a running server where one is named."""
        found = open_source(name, self.store, tell)
        if self.tokenizer and _is_url(self.tokenizer):
            from prefixguard.engines import render_exchanges

            return list(render_exchanges(found, self.tokenizer))
        return found

    def analysis(self, name: str, rulebook: Rulebook, options: Options) -> Analysis:
        """The analysis of one source, and of what a gateway made of it if that was recorded, too."""
        found = analyze(tracked(self.exchanges(name)), rulebook, options)
        if self.upstream_log is None:
            return found
        behind = analyze(open_source(self.upstream_log, self.store, tell), rulebook, options)
        return compare_taps(found, behind, rulebook.findings["PG705"])

    def one_log(self, names: Sequence[str]) -> None:
        """Raises InputError where a second tap is named for more than one log."""
        if self.upstream_log is not None and len(names) != 1:
            raise InputError("--upstream-log goes with exactly one log")


_READING = (
    click.option("--store", metavar="PATH|URL", help="The record to read (or PREFIXGUARD_STORE)."),
    click.option(
        "--server",
        metavar="NAME",
        shell_complete=completing.cache_rules,
        help="The cache rule to judge by, e.g. anthropic or vllm:block=16.",
    ),
    click.option(
        "--chat-template",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The server's Jinja chat template.",
    ),
    click.option(
        "--tokenizer",
        metavar="FILE|URL",
        help="A tokenizer.json, or the address of a running llama-server that renders and counts.",
    ),
    click.option("--price-date", type=click.DateTime(["%Y-%m-%d"]), help="Use the prices of this day."),
    click.option(
        "--config", type=click.Path(dir_okay=False, path_type=Path), help="A file with [tool.prefixguard]."
    ),
)
_GATEWAY = click.option("--upstream-log", metavar="FILE", help="The same requests as seen behind a gateway.")


def reading_options(*, gateway: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options of every command that analyses, handed over as one `Reading`.

    gateway: with the log of a second tap.
    """
    options = (*_READING, *([_GATEWAY] if gateway else []))

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def taking(*args: Any, **given: Any) -> Any:
            own = {field.name: given.pop(field.name, None) for field in fields(Reading)}
            return command(*args, reading=Reading(**own), **given)

        decorated: Callable[..., Any] = taking
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


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


def analysed(names: Sequence[str], reading: Reading, code: Sequence[Path] = ()) -> Analysis:
    """The analysis of each named source, one after the other; without names, of the last session.

    The project's configuration counts: its server, prices and decisions. code:
    source code to find the lines in that made the breaks.
    """
    rulebook = Rulebook()
    options = reading.options(rulebook)
    chosen = names or (LAST,)
    reading.one_log(chosen)
    results = [reading.analysis(name, rulebook, options) for name in chosen]
    sessions = tuple(session for result in results for session in result.sessions)
    whole = Analysis(results[0].version, results[0].prices, sessions)
    if not code:
        return whole
    from prefixguard.lint.index import source_index

    return with_sources(whole, source_index(code))


def standing_options(rulebook: Rulebook, server: str | None, config: Path | None = None) -> Options:
    """The options of an analysis as the project's configuration has them.

    server: goes before it. config: a file in the place of the project's own.
    """
    settings = configuration.read(config or configuration.find(Path.cwd()))
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


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


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
