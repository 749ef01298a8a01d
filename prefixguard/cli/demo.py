"""`prefixguard demo`: see it work, on this machine, without a key."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook

if TYPE_CHECKING:
    from prefixguard.engines.demo import Stage


@click.command(name="demo")
@click.option("--store", metavar="PATH|URL", help="Keep the record there; by default it is thrown away.")
@click.option(
    "--model",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A GGUF file in the place of the packaged SmolLM2-135M-Instruct.",
)
@click.option(
    "--llama-server", "binary", metavar="PROGRAM", help="The llama-server to use; by default one is found."
)
def command(store: str | None, model: Path | None, binary: str | None) -> None:
    """See it work: a real small model, an agent with a clock in its prompt, and the same agent mended.

    Starts a llama.cpp server on the CPU, lets a small agent talk to it through
    the recording proxy twice, and prints both runs side by side. Needs no key,
    no GPU and no network.

    \b
    Examples:
      prefixguard demo
      prefixguard demo --store demo.db
    """
    from prefixguard.engines.demo import play, sheet

    with _progress() as on_stage:
        demo = play(store, model=model, binary=binary, on_stage=on_stage)
    console().print(sheet(demo, Rulebook()))


@contextmanager
def _progress() -> Iterator[Callable[[Stage], None]]:
    """A bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(stage: Stage) -> None:
            bar.update(task, completed=stage.done, total=stage.total, description=stage.doing)

        yield show
