"""`prefixguard analyze`: exchange logs in, explained turns out."""

from __future__ import annotations

import click

from prefixguard.cli.sources import Reading, analysed, reading_options
from prefixguard.reports.json import to_json
from prefixguard.reports.text import console, render_report
from prefixguard.rulebook import Rulebook


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@reading_options()
@click.option("--every-turn", is_flag=True, help="Show the quiet turns of long sessions, too.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def command(
    *,
    logs: tuple[str, ...],
    reading: Reading,
    every_turn: bool,
    format_: str,
) -> None:
    """Analyse exchange logs (JSON Lines): where each turn parts, why, and what it cost.

    \b
    Examples:
      prefixguard analyze requests.jsonl
      prefixguard analyze requests.jsonl --server vllm:block=16 --format json
      prefixguard analyze requests.jsonl --chat-template template.jinja
    """
    whole = analysed(logs, reading)
    if format_ == "json":
        click.echo(to_json(whole))
    else:
        console().print(render_report(whole, Rulebook().findings, every_turn=every_turn))
