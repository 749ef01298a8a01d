"""The measurements of `bench.gpu`: sessions replayed on a server, its memory beside what is computed."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from prefixguard.engines import Engine, launch
from prefixguard.engines.binaries import packaged_model
from prefixguard.engines.kv_types import logged_memory
from prefixguard.engines.local_vllm import launch_vllm
from prefixguard.engines.replay import bench_for, measure
from prefixguard.engines.vllm import Vllm
from prefixguard.exchange import Exchange
from prefixguard.importers import open_source
from prefixguard.kv import Formats, FormatTable
from prefixguard.kv.vllm import admit
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook
from prefixguard.trial import MeasuredTurn, Trial
from tests.oracle import tiny_model

_ROOT = Path(__file__).parents[2]
_RECORDINGS = _ROOT / "fixtures/sample-agent/recordings"
_TEMPLATE = _ROOT / "prefixguard/engines/templates/chatml-tools.jinja"
_CONTEXT = 32768
_AVAILABLE = re.compile(r"Available KV cache memory: ([\d.]+) GiB")
_BUFFER = re.compile(r"llama_kv_cache:\s+(\S+) KV buffer size =\s+([\d.]+) MiB")
_WORDS = "the agent reads one more file and writes down what it has found in it "

SHAPES: dict[str, dict[str, int]] = {
    "tiny": {},
    # Llama 3.1 8B, but for its vocabulary: 6.98e9 parameters.
    "8b": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Memory:
    """What a server has for keys and values, in its own words, beside what is computed from the model."""

    what: str
    computed: str
    server: str
    same: bool


@dataclass(frozen=True)
class Timed:
    """Milliseconds to the first token: nothing cached, an appended turn, the clock changed."""

    tokens: int
    cold: float
    warm: float
    broken: float


@dataclass(frozen=True)
class Served:
    """One server measured. trials: by the name of their session."""

    engine: str
    model: str
    flags: str
    trials: dict[str, Trial]
    timed: tuple[Timed, ...]
    memory: tuple[Memory, ...]


def on_vllm(folder: Path, program: str, shape: str, lengths: Sequence[int], repeat: int, gpu: bool) -> Served:
    """vLLM with a model of that shape and random weights. Raises ServerError."""
    model = tiny_model.write(folder / f"llama-{shape}")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **SHAPES[shape]}))
    longest = min(_CONTEXT, {**config, **SHAPES[shape]}["max_position_embeddings"])
    options = [
        "--served-model-name", f"llama-{shape}", "--load-format", "dummy", "--max-model-len", str(longest),
        *([] if gpu else ["--enforce-eager", "--block-size", "32"]),
    ]  # fmt: skip
    with launch_vllm(model, program=program, options=options) as server:
        return Served(
            server.engine.name, f"llama-{shape}, random weights", " ".join(options[4:]),
            *_played(server.engine, str(model), (), lengths, repeat),
            _vllm_memory(server.engine, model, longest, server.log.read_text("utf-8", "replace")),
        )  # fmt: skip


def on_llamacpp(folder: Path, gguf: Path | None, lengths: Sequence[int], repeat: int, gpu: bool) -> Served:
    """llama.cpp with a GGUF file, all layers on the GPU if there is one. Raises ServerError."""
    model = gguf or (packaged_model() if gpu else None)
    if model is None:
        from tests.real.tiny_model import write_tiny_llama

        model = write_tiny_llama(folder / "tiny.gguf", "{{ messages[0].content }}")
    shape = open_model(str(model), Rulebook())
    context = min(_CONTEXT if gpu else 8192, shape.context or _CONTEXT)
    options = ["--metrics", "-lv", "4", *(["-ngl", "99"] if gpu else [])]
    with launch(model, template=_TEMPLATE, context=context, options=options) as server:
        log = server.log.read_text("utf-8", "replace")
        logged = logged_memory(log, shape, "f16", "f16", context, Rulebook())
        memory = Memory(
            f"KV buffers of {context:,} cells, f16", f"{(logged.computed or 0) / (1 << 20):,.2f} MiB",
            "-" if logged.mib is None else f"{logged.mib:,.2f} MiB", bool(logged.as_computed),
        )  # fmt: skip
        return Served(
            f"{server.engine.name} ({server.program}), {where(log)}", model.name, " ".join(options),
            *_played(server.engine, str(model), tuple(options), lengths, repeat), (memory,),
        )  # fmt: skip


def where(log: str) -> str:
    """Where llama.cpp keeps keys and values: a build without the card's library leaves them on the processor.

    Its line of offloaded layers says "all" even where there is no device.
    """
    places = {name for name, size in _BUFFER.findall(log) if float(size)}
    return f"keys and values on {' and '.join(sorted(places))}" if places else "nobody knows on which device"


def _played(
    engine: Engine, model: str, flags: tuple[str, ...], lengths: Sequence[int], repeat: int
) -> tuple[dict[str, Trial], tuple[Timed, ...]]:
    def trial(session: list[Exchange]) -> Trial:
        return measure(session, bench_for(engine, model=model, flags=flags), repeat=repeat, warm_up=1)

    trials = {
        folder.name: trial(open_source(str(path)))
        for folder in sorted(_RECORDINGS.iterdir())
        for path in sorted(folder.glob("*.jsonl"))
    }
    timed = []
    for length in lengths:
        turns = trial(_three_turns(length)).turns
        if len(turns) == 3 and all(turn.first_token_ms is not None for turn in turns):
            cold, warm, broken = (turn.first_token_ms or 0.0 for turn in turns)
            timed.append(Timed(turns[0].prompt_tokens, cold, warm, broken))
    return trials, tuple(timed)


def _three_turns(tokens: int) -> list[Exchange]:
    """A long first turn, an appended one, and the appended one again with another clock at the begin."""
    rules = _WORDS * max(1, tokens // 15)
    asked = [{"role": "user", "content": "What has it found so far?"}]
    more = [*asked, {"role": "assistant", "content": "Nothing yet."}, {"role": "user", "content": "And now?"}]
    turns = [("12:00:00", asked), ("12:00:00", more), ("12:00:07", more)]
    return [
        Exchange(
            float(place), "/v1/chat/completions",
            json.dumps(
                {"messages": [{"role": "system", "content": f"It is {clock}. {rules}"}, *messages]}
            ).encode(),
        )
        for place, (clock, messages) in enumerate(turns)
    ]  # fmt: skip


def _vllm_memory(engine: Vllm, model: Path, longest: int, log: str) -> tuple[Memory, ...]:
    """The number of blocks that the server has, beside that which its bytes give.

    Its figures name the bytes where they were set; else its log does, to a hundredth of a GiB.
    """
    bytes_, blocks = engine.cache.get("kv_cache_memory_bytes", ""), engine.cache.get("num_gpu_blocks", "")
    logged = _AVAILABLE.findall(log)
    if not blocks.isdecimal() or not (bytes_.isdecimal() or logged):
        return ()
    table = Rulebook().table("kv-formats", FormatTable)
    half = table.find("bf16")
    formats = Formats(half, half, {"convolution": 2, "recurrence": 4})
    shape = open_model(str(model), Rulebook())

    def computed(memory: float) -> int:
        admission = admit(shape, formats, length=longest, block=engine.block, memory=int(memory))
        return admission.num_blocks or 0

    what, have = f"blocks of {engine.block}, bf16", int(blocks)
    if bytes_.isdecimal():
        ours = computed(int(bytes_))
        return (Memory(f"{what}, in {int(bytes_):,} bytes", f"{ours:,}", f"{have:,}", ours == have),)
    gib = float(logged[-1])
    low, high = (computed((gib + by) * (1 << 30)) for by in (-0.005, 0.005))
    return (
        Memory(f"{what}, in {gib} GiB as logged", f"{low:,} to {high:,}", f"{have:,}", low <= have <= high),
    )


# -- tables --------------------------------------------------------------------------------------


def tables(served: Sequence[Served], machine: str, day: datetime.date) -> str:
    """Everything as Markdown."""
    return "\n".join(_lines(served, machine, day)) + "\n"


def _lines(served: Sequence[Served], machine: str, day: datetime.date) -> Iterator[str]:
    yield f"# {machine}, {day.isoformat()}"
    for one in served:
        yield f"\n## {one.engine}, {one.model}\n\nStarted with `{one.flags}`."
        if one.timed:
            yield "\n| prompt | cold | warm (appended) | broken (clock) | broken / warm |"
            yield "| --: | --: | --: | --: | --: |"
            for row in one.timed:
                yield (
                    f"| {row.tokens:,} | {row.cold:,.1f} ms | {row.warm:,.1f} ms | {row.broken:,.1f} ms "
                    f"| {row.broken / row.warm:,.1f} |"
                )
        yield "\n| session | turns | as predicted | cold | warm | broken | fit of the first token |"
        yield "| --- | --: | --: | --: | --: | --: | --- |"
        for name, trial in one.trials.items():
            yield _session(name, trial)
        if one.memory:
            yield "\n| KV memory | computed | the server says | same |"
            yield "| --- | --: | --: | --- |"
            for memory in one.memory:
                same = "yes" if memory.same else "**no**"
                yield f"| {memory.what} | {memory.computed} | {memory.server} | {same} |"


def _session(name: str, trial: Trial) -> str:
    cold = [turn for turn in trial.turns if turn.shape == "first"]
    broken = [turn for turn in trial.turns if turn.is_break]
    warm = [turn for turn in trial.turns if turn not in cold and turn not in broken]
    fit = trial.fit
    curve = f"{fit.a:.1f} ms + {fit.b:.3g} n + {fit.c:.2g} n²" if fit is not None else "-"
    return (
        f"| {name} | {len(trial.turns)} | {trial.count('exact')} of {len(trial.turns)} "
        f"| {_first(cold)} | {_first(warm)} | {_first(broken)} | {curve} |"
    )


def _first(turns: Sequence[MeasuredTurn]) -> str:
    known = [turn.first_token_ms for turn in turns if turn.first_token_ms is not None]
    return f"{median(known):,.1f} ms" if known else "-"
