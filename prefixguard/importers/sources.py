"""Where a reading command takes its exchanges from: logs, standard input, or the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers.exchange_log import STDIN, read_log
from prefixguard.store import StoreError

if TYPE_CHECKING:
    from prefixguard.store import Store

_ENDINGS = (".jsonl", ".ndjson", ".har", ".flow", ".flows", ".traj.json")
SUFFIXES = tuple(f"{ending}{packed}" for packed in ("", ".gz", ".zst") for ending in _ENDINGS)
"""How the name of a record ends, by which a folder's records are told from its other files."""

type Tell = Callable[[Sequence[str]], None]


def _silent(_lines: Sequence[str]) -> None:
    pass


def open_source(name: str, store: Store | str | Path | None = None, tell: Tell = _silent) -> list[Exchange]:
    """The exchanges that `name` stands for.

    name: a log, or a file of another tool; a folder of them (read in the order
    of their names), "-" for a log from standard input, or a session of the
    record: its id, the start of it, or "last". store: the record, or where it
    lies; None for the usual place. tell: takes what has to be said of another
    tool's file, what it does not hold above all. A file is taken before a
    session of the same name. Raises InputError.
    """
    return list(iterate_source(name, store, tell))


def iterate_source(
    name: str, store: Store | str | Path | None = None, tell: Tell = _silent
) -> Iterator[Exchange]:
    """The exchanges that `open_source` gives, one after the other."""
    path = Path(name)
    if name == STDIN or path.is_fifo():
        yield from read_log(name)
    elif path.is_file():
        yield from _file(path, name, tell)
    elif path.is_dir():
        yield from _folder(path, tell)
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
    """The line of each exchange in a log, from 1; [] for another tool's file, or a compressed one."""
    from prefixguard.importers.foreign import OWN, format_of

    try:
        rule = format_of(log)
    except InputError:
        return []
    if rule is not None and rule.name != OWN:
        return []
    try:
        with log.open("rb") as stream:
            if stream.peek(1)[:1] not in (b"{", b" ", b"\t", b"\r", b"\n", b"\xef"):
                return []
            return [number for number, line in enumerate(stream, 1) if line.strip(b" \t\r\n\x00\xef\xbb\xbf")]
    except OSError:
        return []


def _folder(path: Path, tell: Tell) -> Iterator[Exchange]:
    for log in logs_in(path):
        yield from _file(log, str(log), tell)


def _file(path: Path, name: str, tell: Tell) -> Iterator[Exchange]:
    """A file's exchanges: of a log as they stand there, of anything else that is known as it can be told."""
    from prefixguard.importers.foreign import OWN, format_of, read_foreign

    rule = format_of(path)
    if rule is None or rule.name == OWN:
        yield from read_log(name)
        return
    from prefixguard.importers.told import Told
    from prefixguard.proxy.understand import exchange_of

    told = Told(name, rule.title)
    for capture in read_foreign(path, rule, told):
        yield exchange_of(capture)
    if not told.requests:
        raise InputError("; ".join(told.lines()))
    tell(told.lines())


def _session(name: str, store: Store) -> Iterator[Exchange]:
    try:
        session = store.resolve(name)
    except InputError as error:
        if Path(name).suffix or "/" in name:
            raise InputError(f"{name}: no such file") from error
        raise
    yield from store.exchanges(session)
