"""`prefixguard measure-kv`: what fewer bits for keys and values do to memory and to a model's answers."""

from __future__ import annotations

from pathlib import Path

import click

from prefixguard.cli import completing
from prefixguard.cli.progress import progress_bar
from prefixguard.cli.sources import tell
from prefixguard.errors import InputError
from prefixguard.importers import open_source
from prefixguard.reports.kv_types import FORMATS, formats_page, formats_to_json, formats_to_markdown
from prefixguard.reports.text import console

_COUNT = click.IntRange(min=1)


@click.command()
@click.argument(
    "model", metavar="[FILE.gguf]", required=False, type=click.Path(dir_okay=False, path_type=Path)
)
@click.option(
    "--types",
    metavar="TYPE,K/V,...",
    help="Formats, each on keys, on values and on both; or a pair such as q8_0/q4_0. Default: all.",
)
@click.option(
    "--prompts",
    metavar="LOG|SESSION",
    shell_complete=completing.sources,
    help="Recorded requests to ask, in the place of our own six.",
)
@click.option("--reply-tokens", type=_COUNT, default=48, help="Tokens of each reply that are compared.")
@click.option(
    "--probabilities", type=click.IntRange(min=0), default=4096, metavar="N",
    help="The N likeliest tokens of each position are compared one by one; 0 for all. Default: 4096.",
)  # fmt: skip
@click.option("--context", type=click.IntRange(min=256), default=2048, help="Context of the servers.")
@click.option("--threads", type=_COUNT, help="Their threads (default: all processors).")
@click.option(
    "--chat-template", type=click.Path(dir_okay=False, path_type=Path), help="In the place of the model's."
)
@click.option("--program", metavar="PROGRAM", help="The llama-server to use; by default one is found.")
@click.option("--store", metavar="PATH|URL", help="The record that --prompts reads (or PREFIXGUARD_STORE).")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text")
def command(
    *,
    model: Path | None,
    types: str | None,
    prompts: str | None,
    reply_tokens: int,
    probabilities: int,
    context: int,
    threads: int | None,
    chat_template: Path | None,
    program: str | None,
    store: str | None,
    format_: str,
) -> None:
    """Measure what fewer bits for keys and values do: memory, greedy replies, distributions.

    Starts a llama.cpp server for each pair of formats and asks all of them the
    same. Without FILE.gguf the small model of the extra `demo` is asked.

    \b
    Examples:
      prefixguard measure-kv model.gguf --types q8_0,q4_0
      prefixguard measure-kv model.gguf --types q8_0/q4_0,q4_0/q8_0 --prompts last
      prefixguard measure-kv --format markdown
    """
    from prefixguard.engines.binaries import packaged_model
    from prefixguard.engines.kv_prompts import built_in
    from prefixguard.engines.kv_types import TYPES, pairs, try_types

    chosen = model or packaged_model()
    if chosen is None:
        raise InputError(
            "measure-kv: name a GGUF file, or install prefixguard[demo], which brings a small one"
        )
    tried = pairs(types.split(",") if types else TYPES)
    asked = open_source(prompts, store, tell) if prompts else built_in()
    with progress_bar() as show:
        trial = try_types(
            chosen, tried, asked, binary=program, template=chat_template, context=context, threads=threads,
            reply_tokens=reply_tokens, named=probabilities, on_progress=show,
        )  # fmt: skip
    if format_ == "json":
        click.echo(formats_to_json(trial), nl=False)
    elif format_ == "markdown":
        click.echo(formats_to_markdown(trial), nl=False)
    else:
        console().print(formats_page(trial))
