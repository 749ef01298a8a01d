"""`prefixguard sessions`: the recorded sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from prefixguard.cli import completing
from prefixguard.reports.json import encode
from prefixguard.reports.stored import stored_session, stored_table, stored_to_list
from prefixguard.reports.text import console

if TYPE_CHECKING:
    from prefixguard.store import Store


@click.command()
@click.option("--store", metavar="PATH|URL", help="The record to read (or PREFIXGUARD_STORE).")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, the newest."
)
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option(
    "--delete",
    multiple=True,
    shell_complete=completing.sessions,
    metavar="SESSION",
    help="Delete a session instead; may be repeated.",
)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to print it."
)
def command(
    *,
    store: str | None,
    limit: int,
    everything: bool,
    delete: tuple[str, ...],
    yes: bool,
    format_: Literal["text", "json"],
) -> None:
    """List the recorded sessions, the newest last.

    \b
    Examples:
      prefixguard sessions
      prefixguard sessions --all --format json
      prefixguard sessions --delete 7f3a
    """
    from prefixguard.store import Store

    with Store.open(store, create=False) as record:
        if delete:
            _delete(record, delete, ask=not yes)
            return
        rows = record.sessions()
        chosen = rows if everything else rows[-limit:]
        found = [stored_session(row, (turn for _, turn in record.turns(row.id))) for row in chosen]
        name = record.name
    if format_ == "json":
        click.echo(encode(stored_to_list(found), indent=2))
        return
    paper = console()
    if not found:
        paper.print(f"Nothing is recorded in {name}; start with `prefixguard run -- COMMAND`.")
        return
    paper.print(stored_table(found))
    if len(rows) > len(found):
        paper.print(f"{len(rows) - len(found):,} older ones are not shown: --all shows them.", style="dim")


def _delete(record: Store, names: tuple[str, ...], *, ask: bool) -> None:
    """Deletes sessions named by the start of their id; asks first where somebody can answer."""
    ids = list(dict.fromkeys(record.resolve(name) for name in names))
    if ask:
        click.confirm(f"Delete {', '.join(ids)} from {record.name}?", abort=True, err=True)
    for session in ids:
        count = record.delete(session)
        click.echo(f"deleted {session}: {count} requests", err=True)
