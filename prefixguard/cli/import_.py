"""`prefixguard import`: other tools' records into the store."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from rich.progress import track

from prefixguard.cli import completing
from prefixguard.errors import InputError
from prefixguard.exchange import Capture
from prefixguard.importers.foreign import read_foreign, which_format
from prefixguard.importers.formats import FormatRule, packaged_formats
from prefixguard.importers.sources import logs_in
from prefixguard.importers.storing import Storing
from prefixguard.importers.told import Told, told_together
from prefixguard.reports.text import console
from prefixguard.store import Store


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--from",
    "kind",
    metavar="FORMAT",
    shell_complete=completing.record_formats,
    help="The format, where the content does not show it.",
)
@click.option("--session", metavar="NAME", help="Take everything as one run of this name.")
@click.option("--store", metavar="PATH|URL", help="The record to write to (or PREFIXGUARD_STORE).")
def command(*, files: tuple[str, ...], kind: str | None, session: str | None, store: str | None) -> None:
    """Read what other tools recorded into the store: HAR, mitmproxy flows, transcripts, logs, spans.

    The format is told by a file's content. A folder stands for the records in it.
    What a format does not keep is said, and shown in every report. Exit code 1
    when some entries could not be read, 2 when a whole file could not.

    \b
    Examples:
      prefixguard import session.har
      prefixguard import ~/.claude/projects/-home-me-app
      prefixguard import spans.jsonl --from otel --session nightly
    """
    wanted, accounts = _chosen(files, kind)
    seen: set[str] = set()
    with Store.open(store) as record:
        storing = Storing(record)
        for path, rule in wanted:
            told = Told(str(path), rule.title)
            told.seen = seen
            accounts.append(told)
            storing.add(_tracked(read_foreign(path, rule, told, session), path), told)
        for line in told_together(accounts):
            click.echo(line, err=True)
        _sum(storing, accounts, record.name)
    if not any(told.requests or told.known for told in accounts) and any(t.problems for t in accounts):
        sys.exit(2)
    if any(told.troubled for told in accounts):
        sys.exit(1)


def _chosen(files: Sequence[str], kind: str | None) -> tuple[list[tuple[Path, FormatRule]], list[Told]]:
    """The files with their formats, and what has to be said of a folder's files that are of none.

    Raises InputError for a file that was named and is of no format that is known.
    """
    found: list[tuple[Path, FormatRule]] = []
    strange = []
    for name in files:
        folder = Path(name)
        if not folder.exists():
            formats = ", ".join(packaged_formats())
            raise InputError(f"{name}: no such file; `prefixguard import` reads {formats}")
        if not folder.is_dir():
            found.append((folder, which_format(folder, kind)))
            continue
        for path in logs_in(folder):
            try:
                found.append((path, which_format(path, kind)))
            except InputError as error:
                told = Told(str(path), "unknown")
                told.problem("as a whole", str(error).removeprefix(f"{path}: "))
                strange.append(told)
    return found, strange


def _sum(storing: Storing, accounts: Sequence[Told], name: str) -> None:
    added, known = sum(storing.sessions.values()), sum(told.known for told in accounts)
    sessions = list(storing.sessions)
    text = f"{name}: {added:,} request{'s' * (added != 1)} added"
    if known:
        text += f", {known:,} were there already"
    if sessions:
        some = ", ".join(sessions[:4]) + (f" and {len(sessions) - 4:,} more" if len(sessions) > 4 else "")
        text += f"; session{'s' * (len(sessions) != 1)} {some}"
    click.echo(text)


def _tracked(captures: Iterable[Capture], path: Path) -> Iterator[Capture]:
    """The same captures, counted on the terminal while they come."""
    if not sys.stderr.isatty():
        return iter(captures)
    return iter(track(captures, path.name[:40], total=None, console=console(sys.stderr), transient=True))
