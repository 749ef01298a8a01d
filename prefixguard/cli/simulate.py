"""`prefixguard simulate`: recorded sessions or a hash trace against a KV pool of a given size."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.progress import track

from prefixguard.analysis import Fold, Options
from prefixguard.cli import completing
from prefixguard.cli.kv import Exact, state_bytes
from prefixguard.cli.sources import tell
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import open_source
from prefixguard.importers.hash_trace import is_hash_trace, read_trace
from prefixguard.kv import GIB, Formats, FormatTable
from prefixguard.modelfiles import open_model
from prefixguard.reports.simulate import (
    Simulation,
    simulation_html,
    simulation_page,
    simulation_svg,
    simulation_to_json,
)
from prefixguard.reports.text import console
from prefixguard.rulebook import Rulebook
from prefixguard.simulate import Prefill, Recorded, Setting, Simulator, from_hashes, from_sessions
from prefixguard.simulate.sizes import HYBRID, pools_by_memory, pools_by_tokens


class Several(click.ParamType[tuple[Any, ...]]):
    """Values separated by commas."""

    def __init__(self, one: click.ParamType[Any]) -> None:
        self._one = one
        self.name = f"{one.name}[,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        if not words:
            self.fail("is empty", param, ctx)
        return tuple(dict.fromkeys(self._one.convert(word, param, ctx) for word in words))


_COUNTS = Several(click.IntRange(min=1))


@click.command()
@click.argument("source", shell_complete=completing.sources)
@click.option("--store", metavar="PATH|URL", help="The record to read (or PREFIXGUARD_STORE).")
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=completing.models,
    help="Whose tokens fill --memory: a name, config.json or GGUF file.",
)
@click.option("--memory", type=Several(Exact()), metavar="GiB[,...]", help="KV memory of each GPU.")
@click.option("--tokens", type=_COUNTS, metavar="N[,...]", help="In place of it: tokens that the pool holds.")
@click.option("--kv-dtype", type=Several(click.STRING), default="fp16", metavar="NAME[,...]", help="Formats.")
@click.option("--block-size", type=_COUNTS, default="16", metavar="N[,...]", help="Tokens per block.")
@click.option("--tp", type=click.IntRange(min=1), default=1, help="GPUs that share the model.")
@click.option("--sessions", type=_COUNTS, metavar="N[,...]", help="Sessions side by side (as recorded).")
@click.option("--in-flight", type=click.IntRange(min=1), default=1, help="Requests that run at once.")
@click.option("--capacity", is_flag=True, help="Find how many sessions each pool serves.")
@click.option(
    "--tolerate", type=click.FloatRange(0, 1), default=0.05, help="Share that eviction may cost there."
)
@click.option("--fit", metavar="A,B,C|FILE", help="Prefill milliseconds a + b n + c n^2, or a measurement.")
@click.option(
    "--server",
    default="vllm",
    shell_complete=completing.cache_rules,
    metavar="NAME",
    help="The cache rule by which turns are compared.",
)
@click.option("--tokenizer", metavar="URL", help="A llama-server that renders the prompts, for exact tokens.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture: .svg or .html."
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def command(
    *,
    source: str,
    store: str | None,
    model: str | None,
    memory: tuple[Fraction, ...] | None,
    tokens: tuple[int, ...] | None,
    kv_dtype: tuple[str, ...],
    block_size: tuple[int, ...],
    tp: int,
    sessions: tuple[int, ...] | None,
    in_flight: int,
    capacity: bool,
    tolerate: float,
    fit: str | None,
    server: str,
    tokenizer: str | None,
    plot: Path | None,
    format_: str,
) -> None:
    """Play recorded sessions, or a trace of hashed blocks, against a KV pool: hit rate, evictions, capacity.

    SOURCE is an exchange log, a recorded session, or a trace in Mooncake's format.

    \b
    Examples:
      prefixguard simulate log.jsonl --model llama-3.1-8b --memory 2,4,8 --kv-dtype fp16,fp8
      prefixguard simulate last --tokens 50000,200000 --sessions 1,4,16 --plot hits.html
      prefixguard simulate log.jsonl --model llama-3.1-8b --memory 40 --capacity
      prefixguard simulate trace.jsonl --tokens 1000000,10000000 --block-size 16,512
    """
    if plot is not None and plot.suffix not in (".svg", ".html"):
        raise InputError(f"--plot {plot}: the name must end in .svg or .html")
    rulebook = Rulebook()
    pools, name, notes = _pools(rulebook, model, memory, tokens, kv_dtype, block_size, tp)
    recorded = _workload(source, store, rulebook, server, tokenizer)
    if recorded.mended is recorded.sent and (sessions or capacity):
        raise InputError("a hash trace says nothing of sessions: leave --sessions and --capacity out")
    simulator = Simulator(recorded.sent, recorded.mended, in_flight=in_flight, prefill=_prefill(fit))
    numbers: tuple[int | None, ...] = sessions or (None,)
    work = [(pool, number) for pool in pools for number in numbers]
    runs = tuple(simulator.run(pool, number) for pool, number in _shown(work, "Simulating"))
    served = (
        tuple(simulator.capacity(pool, tolerate) for pool in _shown(pools, "Counting sessions"))
        if capacity
        else ()
    )
    result = Simulation(recorded.sent, runs, served, name, in_flight, tolerate, notes)
    if plot is not None:
        picture = simulation_svg(result) if plot.suffix == ".svg" else simulation_html(result)
        try:
            plot.write_text(picture, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{plot}: {error.strerror or error}") from error
    if format_ == "json":
        click.echo(simulation_to_json(result), nl=False)
    else:
        console().print(simulation_page(result))


def _pools(
    rulebook: Rulebook, model: str | None, memory: tuple[Fraction, ...] | None,
    tokens: tuple[int, ...] | None,
    kv_dtype: tuple[str, ...], blocks: tuple[int, ...], tp: int,
) -> tuple[list[Setting], str, tuple[str, ...]]:  # fmt: skip
    if (memory is None) == (tokens is None):
        raise InputError(
            "simulate: say how large the pool is, with --model and --memory GiB, or with --tokens"
        )
    if tokens is not None:
        return pools_by_tokens(tokens, blocks), "", ()
    assert memory is not None
    if model is None:
        raise InputError("simulate: --memory needs --model, whose keys and values fill it; or use --tokens")
    shape = open_model(model, rulebook)
    table = rulebook.table("kv-formats", FormatTable)
    formats = [Formats(table.find(name), table.find(name), state_bytes("fp32", None)) for name in kv_dtype]
    pools = pools_by_memory(shape, formats, [int(size * GIB) for size in memory], blocks, tp)
    return pools, shape.name, (HYBRID,) if shape.attention == "hybrid" else ()


def _workload(
    source: str, store: str | None, rulebook: Rulebook, server: str, tokenizer: str | None
) -> Recorded:
    path = Path(source)
    if is_hash_trace(path):
        rows = read_trace(path)
        trace = from_hashes(
            path.name,
            (
                (row.hash_ids + row.output_hash_ids, row.input_length, row.reply_length, row.output_length)
                for row in rows
            ),
            rows[0].block_size,
        )
        return Recorded(trace, trace)
    exchanges: Iterable[Exchange] = open_source(source, store, tell)
    if tokenizer is not None:
        from prefixguard.engines import render_exchanges

        exchanges = render_exchanges(list(exchanges), tokenizer)
    recorded = from_sessions(path.name, exchanges, Fold(rulebook, Options(server=server)))
    if not recorded.sent.requests:
        raise InputError(f"{source}: holds no request that a server would have cached")
    return recorded


def _prefill(fit: str | None) -> Prefill | None:
    if fit is None:
        return None
    words = fit.split(",")
    if len(words) == 3:
        try:
            a, b, c = (float(word) for word in words)
        except ValueError:
            raise InputError(f"--fit {fit}: not three numbers") from None
        return Prefill(a, b, c)
    try:
        measured = msgspec.json.decode(Path(fit).read_bytes())
        told = measured["fit"]
        return Prefill(float(told["a_ms"]), float(told["b_ms_per_token"]), float(told["c_ms_per_token2"]))
    except OSError as error:
        raise InputError(f"--fit {fit}: {error.strerror or error}") from error
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"--fit {fit}: holds no fit; `prefixguard measure --format json` writes one"
        ) from error


def _shown[T](work: list[T], what: str) -> Iterable[T]:
    """The same work, with a bar on the terminal while it lasts."""
    if len(work) < 2 or not sys.stderr.isatty():
        return work
    return track(work, what, console=console(sys.stderr), transient=True)
