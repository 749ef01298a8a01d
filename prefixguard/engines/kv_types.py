"""Tries llama.cpp's formats of keys and values on one model: memory, greedy replies, distributions.

Every pair of formats gets a server of its own. The reference (16 bits) answers
each prompt greedily; the others answer the same prompts, and are then asked at
every position of the *reference's* reply what may follow: over the same text,
so that one early difference does not spoil all that comes behind it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import msgspec

from prefixguard.engines.binaries import Candidate, candidates
from prefixguard.engines.client import JsonClient
from prefixguard.engines.local import LaunchedServer, launch
from prefixguard.errors import InputError, ServerError
from prefixguard.exchange import Exchange
from prefixguard.kv import Formats, FormatTable, Model
from prefixguard.kv.drift import Distribution, Drift, FormatTrial, Kept, drift, first_difference
from prefixguard.kv.llamacpp import buffers
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook

REFERENCE = "f16"
TYPES = ("bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
"""What llama.cpp keeps keys and values in, beside f16 and f32; which of it runs depends on the build."""
_CACHE = re.compile(
    r"llama_kv_cache: size =.*?\(\s*(\d+) cells,\s*(\d+) layers.*?"
    r"K \(\w+\):\s+([\d.]+) MiB, V \(\w+\):\s+([\d.]+) MiB"
)
_CONTEXT = "llama_context: flash_attn"
_SECONDS_FOR_A_PROMPT = 600.0
_MOST_PROMPTS = 8


def pairs(asked: Sequence[str]) -> list[tuple[str, str]]:
    """What to try: `q8_0` stands for keys alone, values alone and both; `q8_0/q4_0` for itself.

    Raises InputError for a name that is no format of llama.cpp.
    """
    known = (REFERENCE, "f32", *TYPES)
    found: list[tuple[str, str]] = []
    for name in asked:
        key, slash, value = name.strip().lower().partition("/")
        for part in (key, value) if slash else (key,):
            if part not in known:
                raise InputError(f"llama.cpp keeps no keys or values in {part!r}; it has {', '.join(known)}")
        found += [(key, value)] if slash else [(key, REFERENCE), (REFERENCE, key), (key, key)]
    return [pair for pair in dict.fromkeys(found) if pair != (REFERENCE, REFERENCE)]


def try_types(
    model: str | Path,
    tried: Sequence[tuple[str, str]],
    prompts: Sequence[Exchange],
    *,
    binary: str | Path | None = None,
    template: str | Path | None = None,
    context: int = 2048,
    threads: int | None = None,
    reply_tokens: int = 48,
    named: int = 4096,
    rulebook: Rulebook | None = None,
    on_progress: Callable[[int, int, str], None] = lambda *_: None,
) -> FormatTrial:
    """Tries every pair (keys, values) of formats against 16 bits.

    Raises ServerError when the reference does not run, InputError when no prompt can be asked.
    prompts: requests whose prompts are answered; at most 8 of them, evenly
    taken. reply_tokens: of each reply. named: how many of the likeliest tokens
    the server names at each position; 0 for all of its vocabulary.
    """
    rules = rulebook or Rulebook()
    chosen = list(prompts[:: -(-len(prompts) // _MOST_PROMPTS)]) if prompts else []
    shape = _shape(str(model), rules)
    notes: list[str] = []
    total = 2 + len(tried)

    def started(
        program: Candidate | None, key: str, value: str, flash: Literal["on", "off"] = "on"
    ) -> LaunchedServer:
        return launch(
            model, binary=program, template=template, context=context, threads=threads,
            options=("-ctk", key, "-ctv", value, "-fa", flash, "-lv", "4"),
        )  # fmt: skip

    def asked_of(server: LaunchedServer) -> tuple[tuple[int | None, ...], Drift]:
        asking = _Asking(server, named)
        again = [asking.answered(ids, reply_tokens, reply) for ids, reply, _ in heard]
        parted = tuple(
            first_difference(reply, mine) for (_, reply, _), (mine, _) in zip(heard, again, strict=True)
        )
        return parted, drift(before, [one for _, follows in again for one in follows])

    on_progress(0, total, f"{REFERENCE}: the reference")
    program, skipped = _program(started, list(candidates(binary)), tried)
    with started(program, REFERENCE, REFERENCE) as server:
        asking = _Asking(server, named)
        asked = _rendered(server, chosen, context - reply_tokens, notes)
        heard = [(ids, *asking.answered(ids, reply_tokens)) for ids in asked]
        heard = [one for one in heard if one[1]]
        if not heard:
            raise InputError("the model says nothing to any of the prompts: there is nothing to compare")
        reference = logged_memory(_log(server), shape, REFERENCE, REFERENCE, context, rules)
        engine = server.engine.name
    before = [one for _, _, follows in heard for one in follows]
    on_progress(1, total, f"{REFERENCE} with another kernel")
    rounding = None
    with suppress(ServerError), started(program, REFERENCE, REFERENCE, "off") as server:
        _, rounding = asked_of(server)
    found = []
    for place, (key, value) in enumerate(tried, start=2):
        on_progress(place, total, f"K {key}, V {value}")
        try:
            with started(program, key, value) as server:
                parted, moved = asked_of(server)
                kept = logged_memory(_log(server), shape, key, value, context, rules)
        except ServerError as error:
            found.append(Kept(key, value, problem=_short(str(error))))
            continue
        found.append(replace(kept, parted=parted, drift=moved))
    return FormatTrial(
        engine=engine, model=Path(model).name, program=_versioned(server.program), context=context,
        reference=reference, tried=tuple(found), tokens=tuple(len(ids) for ids, _, _ in heard),
        replies=tuple(len(reply) for _, reply, _ in heard), named=len(before[0].ids), rounding=rounding,
        notes=(*(f"passed over {reason}" for reason in skipped), *notes),
    )  # fmt: skip


def _program(
    start: Callable[[Candidate | None, str, str], LaunchedServer],
    programs: Sequence[Candidate],
    tried: Sequence[tuple[str, str]],
) -> tuple[Candidate | None, list[str]]:
    """The first program that keeps keys in 16 bits and in fewer, and why those before it do not.

    One build must do them all, or the figures could not be compared. A build
    that runs the one may die of an instruction that the other needs.
    """
    fewer = [pair for pair in tried if pair[0].startswith(("q", "iq"))][:1]
    skipped: list[str] = []
    some: Candidate | None = None
    for program in programs:
        try:
            for key, value in [(REFERENCE, REFERENCE), *fewer]:
                start(program, key, value).close()
                some = some or program
        except ServerError as error:
            skipped.append(_short(str(error)))
        else:
            return program, skipped
    return some, [] if some is not None else skipped


# The server's side ----------------------------------------------------------------------------------


class _Probability(msgspec.Struct):
    id: int
    logprob: float | None = None


class _Position(msgspec.Struct):
    top_logprobs: list[_Probability]


class _Told(msgspec.Struct):
    completion_probabilities: list[_Position]


class _Asking:
    """Asks one server for replies and for what may follow. named: tokens per position, 0 for all."""

    def __init__(self, server: LaunchedServer, named: int) -> None:
        self._client = JsonClient(server.url, timeout=_SECONDS_FOR_A_PROMPT)
        self._named = named or _vocabulary(self._client)

    def answered(
        self, prompt: array[int], tokens: int, over: Sequence[int] | None = None
    ) -> tuple[list[int], list[Distribution]]:
        """The greedy reply of at most `tokens` ids, and what may follow at every position of `over`.

        over: the reply of the reference; None for the greedy one itself.
        """
        reply = self._reply(prompt, tokens)
        # Asked at once, while the slot still holds the prompt.
        return reply, list(self._follows(prompt, reply if over is None else over))

    def _reply(self, prompt: array[int], tokens: int) -> list[int]:
        """The ids of the greedy reply, at most `tokens` of them."""
        answer = self._client.post(
            "/completion",
            {"prompt": prompt.tolist(), "n_predict": tokens, "temperature": 0, "return_tokens": True},
        )
        ids = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(ids, list):
            raise ServerError("the server does not give the ids of its reply: this build is too old")
        return ids

    def _follows(self, prompt: array[int], reply: Sequence[int]) -> Iterator[Distribution]:
        """What may follow at every position of a reply. The cache makes each question cost one token."""
        ids = prompt.tolist()
        for place in range(len(reply)):
            body: dict[str, Any] = {
                "prompt": [*ids, *reply[:place]], "n_predict": 1, "temperature": 0, "n_probs": self._named,
            }  # fmt: skip
            answer = self._client.timed("/completion", msgspec.json.encode(body)).body
            try:
                (position,) = msgspec.json.decode(answer, type=_Told).completion_probabilities
            except (msgspec.DecodeError, ValueError) as error:
                raise ServerError("the server names no probabilities: this build is too old") from error
            # A token that cannot follow has no logarithm.
            rows = [row for row in position.top_logprobs if row.logprob is not None]
            yield Distribution(array("i", (r.id for r in rows)), array("d", (r.logprob or 0.0 for r in rows)))


def _vocabulary(client: JsonClient) -> int:
    try:
        size = client.get("/v1/models")["data"][0]["meta"]["n_vocab"]
    except (LookupError, TypeError):
        size = None
    if not isinstance(size, int):
        raise ServerError("the server does not say how large its vocabulary is; give a number of tokens")
    return size


def _rendered(
    server: LaunchedServer, prompts: Sequence[Exchange], longest: int, notes: list[str]
) -> list[array[int]]:
    """The ids of each prompt that fits."""
    found = []
    for exchange in prompts:
        rendered = server.engine.render(replace(exchange, response=None, usage=None))
        if rendered is None:
            notes.append(f"a prompt was left out: {server.engine.problem}")
        elif len(rendered.prompt) > longest:
            notes.append(f"a prompt of {len(rendered.prompt):,} tokens was left out: raise --context")
        else:
            found.append(rendered.prompt)
    if not found:
        raise InputError("; ".join(dict.fromkeys(notes)) or "there is no prompt to ask")
    return found


def logged_memory(log: str, shape: Model | None, key: str, value: str, context: int, rules: Rulebook) -> Kept:
    """What llama.cpp's log says of the caches of its last context, beside what `kv` computes for it.

    shape: None where the model's layers are not known. context: cells in all.
    """
    rows = set(_CACHE.findall(log[max(0, log.rfind(_CONTEXT)) :]))
    sizes = [sum(float(row[part]) for row in rows) for part in (2, 3)] if rows else (None, None)
    computed = None
    if shape is not None:
        table = rules.table("kv-formats", FormatTable)
        formats = Formats(table.find(key), table.find(value), {"convolution": 4, "recurrence": 4})
        computed = sum(b.bytes for b in buffers(shape, formats, context=context) if b.kind != "linear")
    return Kept(key, value, sizes[0], sizes[1], computed)


def _log(server: LaunchedServer) -> str:
    return server.log.read_text("utf-8", "replace")


def _shape(model: str, rules: Rulebook) -> Model | None:
    try:
        return open_model(model, rules)
    except InputError:
        return None


def _versioned(program: str) -> str:
    """With its version, where a package brought the program."""
    try:
        return f"{program} {metadata.version(program)}"
    except metadata.PackageNotFoundError:
        return program


def _short(error: str) -> str:
    return error.removeprefix("no llama.cpp server could be started: ")
