"""`prefixguard measure`: a recorded session asked again of a real server, predicted against measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prefixguard.cli import completing
from prefixguard.cli.progress import progress_bar
from prefixguard.cli.sources import tell
from prefixguard.errors import InputError
from prefixguard.importers import open_source
from prefixguard.reports.measure import measure_page, measure_to_json
from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook

if TYPE_CHECKING:
    from prefixguard.trial import Trial


@click.command()
@click.argument("source", shell_complete=completing.sources)
@click.argument("server_options", nargs=-1, type=click.UNPROCESSED)
@click.option("--server", metavar="URL", help="A running llama.cpp, vLLM or SGLang server.")
@click.option(
    "--launch", type=click.Choice(["llama.cpp", "vllm"]), help="Start a server for the measurement."
)
@click.option("--model", metavar="PATH|NAME", help="The model to launch; or whose layers a server has.")
@click.option("--store", metavar="PATH|URL", help="The record to read (or PREFIXGUARD_STORE).")
@click.option("--key", envvar="PREFIXGUARD_SERVER_KEY", metavar="KEY", help="The server's API key.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Runs; times are their medians.")
@click.option("--warm-up", type=click.IntRange(min=0), default=0, help="Runs before, that do not count.")
@click.option("--reply-tokens", type=click.IntRange(min=1), default=1, help="Tokens of each reply.")
@click.option("--context", type=click.IntRange(min=16), default=8192, help="Context of a launched server.")
@click.option("--slots", type=click.IntRange(min=1), default=1, help="Slots of the launched server.")
@click.option("--threads", type=click.IntRange(min=1), help="Its threads (default: all processors).")
@click.option(
    "--chat-template", type=click.Path(dir_okay=False, path_type=Path), help="A template for --launch."
)
@click.option(
    "--program", metavar="PROGRAM", help="The llama-server or vllm to launch; by default one is found."
)
@click.option(
    "--kv-events", metavar="ENDPOINT",
    help="Where vLLM publishes its cache's events, if it does not say so itself, e.g. tcp://*:5557.",
)  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def command(
    *,
    source: str,
    server_options: tuple[str, ...],
    server: str | None,
    launch: str | None,
    model: str | None,
    store: str | None,
    key: str | None,
    repeat: int,
    warm_up: int,
    reply_tokens: int,
    context: int,
    slots: int,
    threads: int | None,
    chat_template: Path | None,
    program: str | None,
    kv_events: str | None,
    format_: str,
) -> None:
    """Ask a recorded session again of a real server: predicted against measured, turn by turn.

    SOURCE is an exchange log or a recorded session. Each run starts fresh: a
    llama.cpp server loses what its slots hold; on vLLM each run has a cache
    salt of its own. Options behind `--` go to a launched server.

    \b
    Examples:
      prefixguard measure last --launch llama.cpp --model model.gguf --repeat 3
      prefixguard measure log.jsonl --server http://127.0.0.1:8080 --format json
      prefixguard measure last --launch llama.cpp --model model.gguf -- --swa-full
    """
    if (server is None) == (launch is None):
        raise InputError("measure: name a running server with --server URL, or start one with --launch")
    if launch is not None and model is None:
        raise InputError(f"measure: --launch {launch} needs --model PATH, the model to serve")
    if server is not None and server_options:
        raise InputError("measure: options behind -- go to a launched server; --server has its own")
    if kv_events is not None and launch == "llama.cpp":
        raise InputError("measure: --kv-events is for vLLM; llama.cpp publishes no events of its cache")
    exchanges = open_source(source, store, tell)
    rulebook = Rulebook()

    from prefixguard.engines import attach
    from prefixguard.engines.local import launch as start
    from prefixguard.engines.local_vllm import launch_vllm
    from prefixguard.engines.replay import Bench, bench_for, measure

    def trial_of(bench: Bench) -> Trial:
        with progress_bar() as show:
            return measure(
                exchanges, bench, rulebook=rulebook, repeat=repeat, warm_up=warm_up,
                reply_tokens=reply_tokens, on_progress=lambda at: show(at.done, at.total, at.doing),
            )  # fmt: skip

    if server is not None:
        trial = trial_of(
            bench_for(attach(server, key=key), key=key, model=model, kv_events=kv_events, rulebook=rulebook)
        )
    elif launch == "vllm":
        assert model is not None
        with launch_vllm(model, program=program, template=chat_template, options=server_options) as served:
            trial = trial_of(
                bench_for(
                    served.engine, model=None, flags=server_options, kv_events=kv_events, rulebook=rulebook
                )
            )
    else:
        assert model is not None
        with start(
            model, binary=program, template=chat_template, context=context, slots=slots, threads=threads,
            options=("--metrics", *server_options),
        ) as started:  # fmt: skip
            flags = ("-c", str(context), "-np", str(slots), "--cache-ram", "0", *server_options)
            trial = trial_of(bench_for(started.engine, model=model, flags=flags, rulebook=rulebook))
        passed = tuple(f"passed over {reason}" for reason in started.skipped)
        trial = replace(trial, notes=(*passed, *trial.notes))
    if format_ == "json":
        click.echo(measure_to_json(trial), nl=False)
    else:
        console().print(measure_page(trial))
