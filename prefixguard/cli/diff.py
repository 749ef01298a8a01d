"""`prefixguard diff`: two sessions compared by their figures, or two turns segment by segment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import click

from prefixguard.caches.choose import cache_rules
from prefixguard.cli import completing
from prefixguard.cli.sources import Place, Reading, analysed, place, reading_options
from prefixguard.errors import InputError
from prefixguard.partial import PROMPT, unseen
from prefixguard.prompt import Prompt
from prefixguard.reports.comparison import comparison_to_dict, merged
from prefixguard.reports.json import encode
from prefixguard.reports.prompts import changed_parameters, compare_prompts, steps_to_json
from prefixguard.reports.text import console
from prefixguard.reports.text.difference import sessions_difference, turns_difference
from prefixguard.rulebook import Rulebook
from prefixguard.tokens.choose import Counters, TokenizerTable
from prefixguard.turn import Session
from prefixguard.wire.decoder import Decoder, UnreadableError


@click.command()
@click.argument("before", metavar="A", shell_complete=completing.sources)
@click.argument("after", metavar="B", shell_complete=completing.sources)
@reading_options(gateway=False)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print it."
)
def command(*, before: str, after: str, reading: Reading, format_: Literal["text", "json"]) -> None:
    """Compare two sessions (before and after a fix, say), or two turns (SESSION:TURN).

    \b
    Examples:
      prefixguard diff 7f3a last
      prefixguard diff before.jsonl after.jsonl
      prefixguard diff last:3 last:4
    """
    one, other = place(before), place(after)
    if (one.turn is None) != (other.turn is None):
        raise InputError("diff: name two sessions, or two turns (SESSION:TURN), not one of each")
    if one.turn is None:
        a, b = (_session(where, reading) for where in (one, other))
        if a.id == b.id:  # two logs of one agent: their names tell them apart
            a, b = replace(a, id=one.source), replace(b, id=other.source)
        if format_ == "json":
            _print_json(comparison_to_dict(a, b))
        else:
            console().print(sessions_difference(a, b))
        return
    _compare_turns(one, other, reading, format_)


def _session(where: Place, reading: Reading) -> Session:
    sessions = analysed([where.source], reading).sessions
    if not sessions:
        raise InputError(f"{where.source}: holds no request to a model")
    return merged(where.source, sessions)


def _compare_turns(one: Place, other: Place, reading: Reading, format_: Literal["text", "json"]) -> None:
    rulebook = Rulebook()
    a, b = _prompt(one, reading, rulebook), _prompt(other, reading, rulebook)
    counters = Counters(rulebook.table("tokenizers", TokenizerTable), reading.options(rulebook).tokenizer)
    counter = counters.counter(b.model)
    steps = compare_prompts(a, b, counter.segment)
    parameters = changed_parameters(a, b)
    if format_ == "json":
        _print_json(
            {
                "schema": "prefixguard-diff/1",
                "kind": "turns",
                "before": f"{one.source}:{one.turn}",
                "after": f"{other.source}:{other.turn}",
                "parameters": [{"name": name, "before": was, "after": now} for name, was, now in parameters],
                "steps": steps_to_json(steps),
            }
        )
    else:
        console().print(turns_difference(steps, parameters, estimated=not counter.exact))


def _prompt(where: Place, reading: Reading, rulebook: Rulebook) -> Prompt:
    """The prompt of a turn. Raises InputError where there is no such turn, or none that can be read."""
    exchanges = reading.exchanges(where.source)
    number = where.turn or 0
    if number >= len(exchanges):
        have = f"its turns are 0 to {len(exchanges) - 1}" if exchanges else "it holds no turns"
        raise InputError(f"{where.source}: there is no turn {number}; {have}")
    if PROMPT in unseen(exchanges[number].headers):
        raise InputError(
            f"{where.source}: turn {number} cannot be compared: the record holds no prompt of it"
        )
    keyed = {name for rule in cache_rules(rulebook) for names in rule.levels.values() for name in names}
    try:
        return Decoder({"*": tuple(sorted(keyed))}).prompt(exchanges[number])
    except UnreadableError as error:
        raise InputError(f"{where.source}: turn {number} cannot be compared: {error}") from error


def _print_json(document: dict[str, Any]) -> None:
    click.echo(encode(document, indent=2))
