"""`prefixguard demo`: see it work, on this machine, without a key."""

from __future__ import annotations

from pathlib import Path

import click

from prefixguard.cli.progress import progress_bar
from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook


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

    with progress_bar() as tell:
        demo = play(store, model=model, binary=binary, on_stage=lambda at: tell(at.done, at.total, at.doing))
    console().print(sheet(demo, Rulebook()))
