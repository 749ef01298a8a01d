"""What a llama.cpp server's `/props`, `/slots` and `/metrics` say about its prompt cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prefixguard.checkup.remark import Remark, hit_rate
from prefixguard.kv import Formats, Model
from prefixguard.kv.llamacpp import buffers

_FULL = 0.9
_HOST = "--cache-ram, -sps and --cache-reuse are shown nowhere"


@dataclass(frozen=True, slots=True)
class LlamaCppState:
    """What the server said. None is what it did not say.

    context: tokens of one slot. trained: of the model. held: tokens in each
    slot, None where `/slots` is off. evaluated, cached: prompt tokens since the
    start. deferred: requests that wait now. busy: slots in use per step, on
    average. longest: tokens of the longest sequence so far. speed: prompt tokens
    per second. shape: the model's layers, where its file lies here. tools:
    whether its template takes tools. kept: cached tokens of a prompt asked twice,
    with its length, where we were allowed to ask. restored: the same after
    another prompt had taken the slot.
    """

    slots: int
    context: int
    trained: int | None = None
    held: tuple[int, ...] | None = None
    evaluated: float | None = None
    cached: float | None = None
    deferred: float | None = None
    busy: float | None = None
    longest: float | None = None
    speed: float | None = None
    shape: Model | None = None
    formats: Formats | None = None
    tools: bool | None = None
    metrics: bool = True
    kept: tuple[int, int] | None = None
    restored: tuple[int, int] | None = None


def examine_llamacpp(state: LlamaCppState) -> tuple[Remark, ...]:
    """All remarks, in the order in which they matter."""
    return tuple(
        remark
        for part in (_reuse, _slots, _host_cache, _windows, _lengths, _template, _rates)
        for remark in part(state)
    )


def _reuse(state: LlamaCppState) -> Iterator[Remark]:
    if state.kept is None:
        yield Remark(
            "unknown", "reuse", "whether prompts are reused at all is not known", "/props does not say",
            "allow it with --probe: two short prompts, which take a slot",
        )  # fmt: skip
        return
    read, size = state.kept
    figure = f"a prompt of {size} tokens, asked twice, read {read}"
    if read >= size - 1:
        yield Remark("ok", "reuse", "a prompt that is asked again is read from its slot", figure)
    else:
        yield Remark(
            "problem", "reuse", "a prompt that is asked again is not read from its slot", figure,
            "look for --no-cache-prompt among the server's options, or for another client meanwhile",
        )  # fmt: skip


def _slots(state: LlamaCppState) -> Iterator[Remark]:
    figure = f"total_slots = {state.slots}"
    if state.slots == 1:
        yield Remark(
            "advice", "slots", "all sessions share one slot: each change of session replaces what it holds",
            figure,
            "with more than one agent at a time start with -np N, and a context N times as large",
        )  # fmt: skip
    else:
        yield Remark(
            "advice", "slot-choice",
            "sessions that share their system prompt end up in one slot while others stay empty, because "
            "a tenth of a prompt in common is enough (-sps 0.10)",
            f"{figure}; -sps is shown nowhere",
            "start with -sps 0.75, or send id_slot with each session's requests",
        )  # fmt: skip
    if state.deferred:
        yield Remark(
            "problem", "slots-waiting", f"{state.deferred:,.0f} requests wait for a slot",
            f"llamacpp:requests_deferred = {state.deferred:g}, {figure}", "start with a higher -np",
        )  # fmt: skip
    if state.busy is not None and state.slots > 1 and state.busy < 1.05:
        yield Remark(
            "advice", "slots-idle", "the slots are hardly ever used side by side",
            f"llamacpp:n_busy_slots_per_decode = {state.busy:g}, {figure}",
            "that is no loss of speed; it says that sessions come one after the other",
        )  # fmt: skip


def _host_cache(state: LlamaCppState) -> Iterator[Remark]:
    if state.restored is None:
        yield Remark(
            "unknown", "host-cache", "whether replaced prompts are kept in host memory is not known", _HOST,
            "allow it with --probe; it is on by default (--cache-ram 8192)",
        )  # fmt: skip
        return
    read, size = state.restored
    figure = f"a prompt of {size} tokens read {read} after another one had taken its slot"
    if read >= size - 1:
        yield Remark("ok", "host-cache", "replaced prompts are kept in host memory and come back", figure)
    else:
        yield Remark(
            "problem" if state.slots == 1 else "advice", "host-cache",
            "a prompt that another one replaced is evaluated again: the host cache is off or full", figure,
            "start with --cache-ram 8192 (MiB)",
        )  # fmt: skip


def _windows(state: LlamaCppState) -> Iterator[Remark]:
    if state.shape is None:
        yield Remark(
            "unknown", "windows", "the model's layers are not known: its file does not lie on this machine",
            "no file behind model_path", "name it: --model FILE.gguf",
        )  # fmt: skip
        return
    caches = state.shape.caches
    windows = sorted({cache.window for cache in caches if cache.window is not None})
    states = sum(cache.kind == "linear" for cache in caches)
    if not windows and not states:
        yield Remark(
            "ok", "windows", "every layer keeps the whole prompt: reuse at any place",
            f"{len(caches)} layers, {state.shape.attention}",
        )  # fmt: skip
        return
    windowed = sum(cache.window is not None for cache in caches)
    figure = f"{windowed + states} of {len(caches)} layers keep " + (
        f"a window of {windows[0]:,} tokens" if windows else "a state"
    )
    more = ""
    if windows and state.formats is not None and state.context:
        cells = state.context * state.slots
        now = sum(b.bytes for b in buffers(state.shape, state.formats, context=cells, slots=state.slots))
        full = sum(b.bytes for b in buffers(state.shape, state.formats, context=cells, whole_windows=True))
        more = f"; in f16 {now / (1 << 20):,.1f} MiB, with --swa-full {full / (1 << 20):,.1f} MiB"
    yield Remark(
        "advice", "windows", "a change in the middle of a prompt costs the whole prompt, not the rest of it",
        figure + more,
        "start with --swa-full if the memory is there; else keep sessions append-only"
        if windows
        else "keep sessions append-only, and keep --ctx-checkpoints at its default or above",
    )  # fmt: skip


def _lengths(state: LlamaCppState) -> Iterator[Remark]:
    if state.trained and state.context and state.context < state.trained:
        bytes_ = _bytes_per_token(state)
        memory = f"; {bytes_:,} bytes a token in f16" if bytes_ else ""
        yield Remark(
            "advice", "context", f"a slot holds {state.context:,} tokens, the model takes {state.trained:,}",
            f"n_ctx = {state.context}, n_ctx_train = {state.trained}{memory}",
            "an agent whose history outgrows the slot is cut off or refused: raise -c if sessions get longer",
        )  # fmt: skip
    fullest = max(state.held or (), default=0)
    fullest = max(fullest, int(state.longest or 0))
    if state.context and fullest > _FULL * state.context:
        yield Remark(
            "problem", "context-full", f"a session came within {1 - _FULL:.0%} of what a slot holds",
            f"{fullest:,} of n_ctx = {state.context:,} tokens", "raise -c, or divide it over fewer slots",
        )  # fmt: skip


def _bytes_per_token(state: LlamaCppState) -> int | None:
    if state.shape is None or state.formats is None:
        return None
    cells = 256
    whole = buffers(state.shape, state.formats, context=cells, whole_windows=True)
    return sum(b.bytes for b in whole if b.kind != "linear") // cells


def _template(state: LlamaCppState) -> Iterator[Remark]:
    if state.tools is False:
        yield Remark(
            "advice", "template", "the chat template leaves tools out of the prompt",
            "chat_template_caps: supports_tools = false",
            "for agents start with --jinja --chat-template-file FILE, with a template that knows tools",
        )  # fmt: skip


def _rates(state: LlamaCppState) -> Iterator[Remark]:
    if not state.metrics:
        yield Remark(
            "advice", "metrics", "the server counts nothing for others to see", "/metrics is switched off",
            "start with --metrics",
        )  # fmt: skip
        return
    total = (
        state.evaluated + state.cached if state.evaluated is not None and state.cached is not None else None
    )
    yield hit_rate(state.cached, total, "llamacpp:prompt_tokens_cached_total")
    if state.speed and state.evaluated:
        yield Remark(
            "ok", "speed", f"prompts are evaluated at {state.speed:,.0f} tokens a second",
            f"llamacpp:prompt_tokens_seconds = {state.speed:g}",
        )  # fmt: skip
