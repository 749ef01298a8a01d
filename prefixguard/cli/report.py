"""`prefixguard report`: recorded sessions, or logs, reported in one of several formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from prefixguard.cli import completing
from prefixguard.cli.sources import Reading, analysed, code_option, reading_options
from prefixguard.errors import InputError
from prefixguard.reports.text import console, render_report
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Analysis

type _Format = Literal["text", "json", "html", "markdown", "csv", "ticket"]


@click.command()
@click.argument("names", nargs=-1, shell_complete=completing.sources, metavar="[SESSION|LOG]...")
@reading_options()
@code_option
@click.option("--all", "everything", is_flag=True, help="Every recorded session.")
@click.option("--every-turn", is_flag=True, help="Show the quiet turns of long sessions, too.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "html", "markdown", "csv", "ticket"]),
    default="text",
    help="How to print it; `html` is one page that needs nothing else, `ticket` one line per session.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file instead."
)
def command(
    *,
    names: tuple[str, ...],
    reading: Reading,
    code: tuple[Path, ...],
    everything: bool,
    every_turn: bool,
    format_: _Format,
    output: Path | None,
) -> None:
    """Report on recorded sessions or exchange logs; by default on the last session.

    \b
    Examples:
      prefixguard report
      prefixguard report 7f3a --every-turn
      prefixguard report requests.jsonl --format markdown >> "$GITHUB_STEP_SUMMARY"
      prefixguard report --all --format json -o report.json
      prefixguard report --format html -o report.html
    """
    if everything:
        if names:
            raise InputError("report: name sessions, or use --all, not both")
        from prefixguard.store import Store

        with Store.open(reading.store, create=False) as record:
            names = tuple(row.id for row in record.sessions())
    if format_ == "html":
        if output is None and sys.stdout.isatty():
            raise InputError("report: a page is for a browser: name a file with -o, or pipe it")
        from prefixguard.cli.page import html_report_of

        content = html_report_of(names, reading, code)
    else:
        analysis = analysed(names, reading, code)
        if format_ == "text" and output is None:
            console().print(render_report(analysis, Rulebook().findings, every_turn=every_turn))
            return
        content = _written(analysis, format_, every_turn=every_turn)
    if output is None:
        click.echo(content, nl=False)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror or error}") from error


def _written(
    analysis: Analysis, format_: Literal["text", "json", "markdown", "csv", "ticket"], *, every_turn: bool
) -> bytes:
    match format_:
        case "json":
            from prefixguard.reports.json import to_json

            return to_json(analysis, indent=2)
        case "markdown":
            from prefixguard.reports.markdown import to_markdown

            return to_markdown(analysis, Rulebook().findings).encode()
        case "csv":
            from prefixguard.reports.csv import to_csv

            return to_csv(analysis).encode()
        case "ticket":
            from prefixguard.reports.ticket import ticket_line

            return "".join(f"{ticket_line(s, analysis.prices)}\n" for s in analysis.sessions).encode()
        case "text":
            import io

            page = io.StringIO()
            console(page).print(render_report(analysis, Rulebook().findings, every_turn=every_turn))
            return page.getvalue().encode()
