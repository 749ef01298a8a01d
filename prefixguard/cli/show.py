"""`prefixguard show`: one turn explained."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from prefixguard.cli import completing
from prefixguard.cli.sources import Reading, analysed, code_option, find_turn, place, reading_options
from prefixguard.errors import InputError
from prefixguard.reports.json import encode, turn_to_dict
from prefixguard.reports.ranking import worst_turn
from prefixguard.reports.text import console, explain_turn
from prefixguard.rulebook import Rulebook
from prefixguard.store import LAST
from prefixguard.turn import Analysis, Session, Turn


@click.command()
@click.argument("name", default=LAST, shell_complete=completing.sources, metavar="[SESSION|LOG]")
@click.argument("turn", type=click.IntRange(min=0), required=False)
@reading_options()
@code_option
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print it."
)
def command(
    *,
    name: str,
    turn: int | None,
    reading: Reading,
    code: tuple[Path, ...],
    format_: Literal["text", "json"],
) -> None:
    """Explain one turn: where it parted, why, what was re-billed, what to do.

    Without TURN, the worst one: the break that cost most.

    \b
    Examples:
      prefixguard show                    the worst turn of the last session
      prefixguard show 7f3a 12
      prefixguard show requests.jsonl:12
      prefixguard show --code src/        and the line of code that made the break
    """
    where = place(name)
    if turn is None:
        turn = where.turn
    elif where.turn is not None:
        raise InputError(f"show: two turns are named, {where.turn} and {turn}; give one")
    analysis = analysed([where.source], reading, code)
    if turn is not None:
        session, found = find_turn(analysis, where.source, turn)
    else:
        worst = _worst(analysis)
        if worst is None:
            _say_nothing_is_wrong(analysis, where.source, format_)
            return
        session, found = worst
    if format_ == "json":
        document = {"session": session.id, "turn": turn_to_dict(found)}
        click.echo(encode(document, indent=2))
    else:
        console().print(explain_turn(found, Rulebook().findings, session))


def _worst(analysis: Analysis) -> tuple[Session, Turn] | None:
    found = [(session, turn) for session in analysis.sessions if (turn := worst_turn(session)) is not None]
    return max(
        found,
        key=lambda one: (
            one[1].is_fault,
            one[1].is_break,
            one[1].cost.avoidable or 0.0,
            one[1].tokens.rebilled,
        ),
        default=None,
    )


def _say_nothing_is_wrong(analysis: Analysis, source: str, format_: Literal["text", "json"]) -> None:
    turns = sum(len(session.turns) for session in analysis.sessions)
    if format_ == "json":
        click.echo("null")
    else:
        console().print(
            f"Nothing to explain in {source}: {turns} turns, no break and no finding. Name a turn to see it."
        )
