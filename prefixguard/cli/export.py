"""`prefixguard export`: recorded sessions, or a file, in a format that other tools read."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import click
import zstandard

from prefixguard.cli import completing
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import iterate_source, write_log


@click.command()
@click.argument("sessions", nargs=-1, shell_complete=completing.sessions, metavar="[SESSION|FILE]...")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["log", "otel", "otel-metrics", "hash-trace"]),
    default="log",
    show_default=True,
    help="An exchange log, OTLP JSON (spans or metrics), or a trace of hashed blocks.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE instead of standard output; .gz and .zst compress."
)
@click.option(
    "--store",
    "target",
    metavar="PATH|URL",
    help="The record. Default: PREFIXGUARD_STORE, or your data directory.",
)
@click.option(
    "--block-size",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="hash-trace: tokens that an id stands for; 512 is what Mooncake's own traces have.",
)
@click.option(
    "--salt",
    metavar="TEXT",
    help="hash-trace: exports with the same salt have ids in common. Default: one that nobody knows.",
)
def command(
    *,
    sessions: tuple[str, ...],
    format_: str,
    output: str | None,
    target: str | None,
    block_size: int,
    salt: str | None,
) -> None:
    """Write recorded sessions in a format that other tools read; by default as an exchange log.

    SESSION is an id, the start of one, or "last"; without any, everything is
    written. A file that `prefixguard import` knows may stand in its place. Of
    these formats only the exchange log holds prompts.

    \b
    Examples:
      prefixguard export last -o session.jsonl
      prefixguard export | jq -r .path | sort | uniq -c
      prefixguard export last --format otel | curl -d @- -H content-type:application/json $URL/v1/traces
      prefixguard export --format hash-trace -o trace.jsonl
    """
    with ExitStack() as stack:
        exchanges = _exchanges(sessions, target, stack)
        with _opened(output) as stream:
            count = _write(exchanges, stream, format_, block_size, salt)
    if output is not None:
        click.echo(f"{output}: {count} exchange{'s' if count != 1 else ''}", err=True)


def _write(
    exchanges: Iterator[Exchange], stream: IO[bytes], format_: str, block: int, salt: str | None
) -> int:
    if format_ == "log":
        return write_log(exchanges, stream)
    from prefixguard.analysis import Fold, Options
    from prefixguard.cli.sources import standing_options
    from prefixguard.exporters import write
    from prefixguard.rulebook import Rulebook

    rulebook = Rulebook()
    if format_ == "hash-trace":
        known = os.urandom(32) if salt is None else salt.encode()
        fold = Fold(rulebook, Options(server="vllm"))
        return write.write_trace(exchanges, fold, stream, block=block, salt=known)
    fold = Fold(rulebook, standing_options(rulebook, None))
    if format_ == "otel":
        return write.write_spans(exchanges, fold, stream)
    return write.write_metrics(exchanges, fold, stream)


def _exchanges(names: tuple[str, ...], target: str | None, stack: ExitStack) -> Iterator[Exchange]:
    """The exchanges of files and sessions, in the order named. Every session is looked up at once."""
    from prefixguard.store import Store

    store = None
    found: dict[str, Iterator[Exchange]] = {}
    for name in names:
        if Path(name).is_file():
            from prefixguard.cli.sources import tell

            found[f"file {name}"] = iterate_source(name, tell=tell)
            continue
        store = store or stack.enter_context(Store.open(target, create=False))
        session = store.resolve(name)
        found[session] = store.exchanges(session)
    if not names:
        found[""] = stack.enter_context(Store.open(target, create=False)).exchanges()
    return chain.from_iterable(found.values())


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
