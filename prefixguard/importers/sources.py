"""Where a reading command takes its exchanges from: logs, standard input, or the record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers.exchange_log import STDIN, read_log
from prefixguard.store import StoreError

if TYPE_CHECKING:
    from prefixguard.store import Store

SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst")
"""How the name of a log ends, by which a folder's logs are told from its other files."""


def open_source(name: str, store: Store | str | Path | None = None) -> list[Exchange]:
    """The exchanges that `name` stands for.

    name: a log, a folder of logs (read in the order of their names), "-" for
    standard input, or a session of the record: its id, the start of it, or
    "last". store: the record, or where it lies; None for the usual place. A
    file is taken before a session of the same name. Raises InputError.
    """
    return list(iterate_source(name, store))


def iterate_source(name: str, store: Store | str | Path | None = None) -> Iterator[Exchange]:
    """The exchanges that `open_source` gives, one after the other."""
    path = Path(name)
    if name == STDIN or path.is_file() or path.is_fifo():
        yield from read_log(name)
    elif path.is_dir():
        yield from _folder(path)
    elif store is not None and not isinstance(store, str | Path):
        yield from _session(name, store)
    else:
        from prefixguard.store import Store

        try:
            opened = Store.open(store, create=False)
        except StoreError as error:
            if path.suffix or "/" in name:
                raise InputError(f"{name}: no such file") from error
            raise InputError(f"{name}: no such file, and no recorded session either: {error}") from error
        with opened:
            yield from _session(name, opened)


def logs_in(path: Path) -> list[Path]:
    """The exchange logs in and below a folder, in the order of their names. Raises InputError for none."""
    logs = sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())
    if not logs:
        raise InputError(
            f"{path}: no exchange log in this folder (files ending in {', '.join(SUFFIXES[:2])})"
        )
    return logs


def line_numbers(log: Path) -> list[int]:
    """The line of each exchange in a log, from 1; [] for a compressed one, whose lines nobody opens."""
    try:
        with log.open("rb") as stream:
            if stream.peek(1)[:1] not in (b"{", b" ", b"\t", b"\r", b"\n", b"\xef"):
                return []
            return [number for number, line in enumerate(stream, 1) if line.strip(b" \t\r\n\x00\xef\xbb\xbf")]
    except OSError:
        return []


def _folder(path: Path) -> Iterator[Exchange]:
    for log in logs_in(path):
        yield from read_log(log)


def _session(name: str, store: Store) -> Iterator[Exchange]:
    try:
        session = store.resolve(name)
    except InputError as error:
        if Path(name).suffix or "/" in name:
            raise InputError(f"{name}: no such file") from error
        raise
    yield from store.exchanges(session)
