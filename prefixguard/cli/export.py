"""`prefixguard export`: recorded sessions as an exchange log."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click
import zstandard

from prefixguard.cli import completing
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import write_log

if TYPE_CHECKING:
    from prefixguard.store import Store


@click.command()
@click.argument("sessions", nargs=-1, shell_complete=completing.sessions, metavar="[SESSION]...")
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE instead of standard output; .gz and .zst compress."
)
@click.option(
    "--store",
    "target",
    metavar="PATH|URL",
    help="The record. Default: PREFIXGUARD_STORE, or your data directory.",
)
def command(sessions: tuple[str, ...], output: str | None, target: str | None) -> None:
    """Write recorded sessions as an exchange log: JSON Lines, one exchange a line.

    SESSION is an id, the start of one, or "last"; without any, everything is written.

    \b
    Example:
      prefixguard export last -o session.jsonl
      prefixguard export | jq -r .path | sort | uniq -c
    """
    from prefixguard.store import Store

    with Store.open(target, create=False) as store:
        # Every name is looked up before anything is written.
        names = list(dict.fromkeys(store.resolve(session) for session in sessions))
        with _opened(output) as stream:
            count = write_log(_exchanges(store, names), stream)
    if output is not None:
        click.echo(f"{output}: {count} exchange{'s' if count != 1 else ''}", err=True)


def _exchanges(store: Store, names: list[str]) -> Iterator[Exchange]:
    if not names:
        yield from store.exchanges()
    for name in names:
        yield from store.exchanges(name)


@contextmanager
def _opened(output: str | None) -> Iterator[IO[bytes]]:
    """The stream to write to. A file appears under its name only when it is complete."""
    if output is None or output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device is written to, never replaced.
            with path.open("wb") as stream:
                yield stream
            return
        path = path.resolve()
        handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as plain, _compressed(path, plain) as stream:
                yield stream
            Path(made).replace(path)
        finally:
            Path(made).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _compressed(path: Path, plain: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.name.endswith(".gz"):
        with gzip.GzipFile(fileobj=plain, mode="wb", filename="") as packed:
            yield packed  # type: ignore[misc]
    elif path.name.endswith(".zst"):
        with zstandard.ZstdCompressor(level=9).stream_writer(plain, closefd=False) as writer:
            yield writer
    else:
        yield plain
