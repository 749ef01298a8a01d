"""`prefixguard analyze`: exchange logs in, explained turns out."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from prefixguard import configuration
from prefixguard.analysis import Options, analyze
from prefixguard.cli import completing
from prefixguard.cli.sources import chat_template_of, tell
from prefixguard.costs import ListPricer, PriceTable
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.gateway import compare_taps
from prefixguard.importers import open_source
from prefixguard.reports.json import to_json
from prefixguard.reports.text import console, render_report
from prefixguard.rulebook import Rulebook, read_table
from prefixguard.tokens.counter import FileTokenizer
from prefixguard.turn import Analysis


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--server",
    metavar="NAME",
    shell_complete=completing.cache_rules,
    help="The cache rule to judge by, e.g. anthropic or vllm:block=16.",
)
@click.option(
    "--chat-template",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The server's Jinja chat template.",
)
@click.option(
    "--tokenizer", metavar="FILE|URL",
    help="A tokenizer.json, or the address of a running llama-server that renders and counts.",
)  # fmt: skip
@click.option("--upstream-log", metavar="FILE", help="The same requests as seen behind a gateway.")
@click.option("--price-date", type=click.DateTime(["%Y-%m-%d"]), help="Use the prices of this day.")
@click.option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), help="A file with [tool.prefixguard]."
)
@click.option("--every-turn", is_flag=True, help="Show the quiet turns of long sessions, too.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def command(
    *,
    logs: tuple[str, ...],
    server: str | None,
    chat_template: Path | None,
    tokenizer: str | None,
    upstream_log: str | None,
    price_date: datetime.datetime | None,
    config: Path | None,
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
    rulebook = Rulebook()
    settings = configuration.read(config or configuration.find(Path.cwd()))
    contract = read_table(Path(settings.prices), PriceTable) if settings.prices else None
    options = Options(
        server=server or settings.server,
        template=chat_template_of(chat_template),
        tokenizer=FileTokenizer(tokenizer) if tokenizer and not _is_url(tokenizer) else None,
        deliberate=frozenset(settings.deliberate),
        pricer=ListPricer(rulebook.tables("prices", PriceTable), contract),
        price_date=price_date.date() if price_date else None,
    )
    results = [analyze(_read(log, tokenizer), rulebook, options) for log in logs]
    if upstream_log is not None:
        if len(logs) != 1:
            raise InputError("--upstream-log goes with exactly one log")
        behind = analyze(_read(upstream_log, None), rulebook, options)
        results = [compare_taps(results[0], behind, rulebook.findings["PG705"])]
    first = results[0]
    whole = Analysis(first.version, first.prices, tuple(s for result in results for s in result.sessions))
    if format_ == "json":
        click.echo(to_json(whole))
    else:
        console().print(render_report(whole, rulebook.findings, every_turn=every_turn))


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def _read(log: str, tokenizer: str | None) -> list[Exchange]:
    exchanges = open_source(log, tell=tell)
    if tokenizer and _is_url(tokenizer):
        from prefixguard.engines import render_exchanges

        return list(render_exchanges(exchanges, tokenizer))
    return exchanges
