"""From a model, formats and a workload to bytes: exact integers, per group of layers that keep alike.

One sequence of `context` tokens takes, in each layer, as many entries as the
layer's kind keeps: all tokens, the window, the state. Blocks round the tokens
up; a prefix that all sequences share is kept once, in whole blocks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from prefixguard.errors import InputError
from prefixguard.kv.formats import Formats, entry_bytes
from prefixguard.kv.shape import Cache, CacheKind, Model


@dataclass(frozen=True, slots=True)
class Workload:
    """What is kept at once: `batch` sequences of `context` tokens each.

    shared: tokens of a prefix that all sequences have in common. block: tokens
    per block, 1 where the engine keeps single tokens.
    """

    context: int
    batch: int = 1
    shared: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        if min(self.context, self.batch, self.block) < 1 or self.shared < 0:
            raise InputError("context, batch and block size must be at least 1, a shared prefix at least 0")
        if self.shared > self.context:
            raise InputError(
                f"a shared prefix of {self.shared} tokens does not fit a context of {self.context}"
            )


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that keep alike.

    tokens: what one sequence keeps in each of them, before rounding.
    bytes_per_token: of all its layers together; 0 for a state, which does not
    grow. bytes: of the whole workload, rounding included, on one full copy.
    """

    kind: CacheKind
    layers: int
    heads: int
    key: int
    value: int
    window: int | None
    stride: int
    tokens: int
    bytes_per_token: Fraction
    bytes: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bytes of a workload.

    bytes_per_token: one token in every layer that keeps entries, windows taken
    for full. growing: the same without the layers whose window is full.
    total: the whole workload on one copy of the model. per_gpu: on each GPU of
    `tp`. sequence, private, common: on each GPU, one sequence by itself, its
    part that nobody shares, and the shared part. rounding: bytes of `total`
    that whole blocks add. unshared: what `total` would be without sharing.
    """

    groups: tuple[Group, ...]
    bytes_per_token: Fraction
    growing: Fraction
    total: int
    per_gpu: int
    per_gpu_bytes_per_token: Fraction
    sequence: int
    private: int
    common: int
    rounding: int
    unshared: int


def size(model: Model, formats: Formats, work: Workload, tp: int = 1) -> Sizes:
    """Sizes of a workload. Raises InputError for formats or splits that the model cannot have."""
    counts = Counter(model.caches)
    groups = tuple(_group(cache, layers, formats, work) for cache, layers in counts.items())
    tokens = [g.bytes_per_token for g in groups]
    growing = [g.bytes_per_token for g in groups if g.window is None or g.window >= work.context]
    exact = Workload(work.context, work.batch, work.shared)
    plain = _workload_bytes(counts, formats, exact, 1)
    common, private = _parts(counts, formats, work, tp)
    total = sum(g.bytes for g in groups)
    alone = Workload(work.context, work.batch, 0, work.block)
    return Sizes(
        groups=groups,
        bytes_per_token=sum(tokens, Fraction()),
        growing=sum(growing, Fraction()),
        total=total,
        per_gpu=common + private * work.batch,
        per_gpu_bytes_per_token=sum((n * per_token(c, formats, tp) for c, n in counts.items()), Fraction()),
        sequence=common + private,
        private=private,
        common=common,
        rounding=total - plain,
        unshared=_workload_bytes(counts, formats, alone, 1),
    )


def heads_on_gpu(heads: int, tp: int) -> int:
    """Key-value heads on each of `tp` GPUs: divided, or replicated where there are fewer heads than GPUs.

    Raises InputError where the heads cannot be divided evenly, as engines do.
    """
    if heads % tp and tp % heads:
        raise InputError(f"{heads} key-value heads cannot be divided among {tp} GPUs")
    return max(1, heads // tp)


def per_token(cache: Cache, formats: Formats, tp: int) -> Fraction:
    """Bytes that one token adds to a cache on one GPU; 0 for a state."""
    if cache.kind == "linear":
        return Fraction()
    heads = heads_on_gpu(cache.heads, tp) if cache.splits else cache.heads
    return Fraction(entry_bytes(cache, formats, heads), cache.stride)


def state_bytes(cache: Cache, formats: Formats, tp: int) -> int:
    """Bytes of the state of one sequence on one GPU."""
    total = 0
    for part in cache.state:
        if part.splits and part.values % tp:
            raise InputError(f"a recurrent state of {part.values} values cannot be divided among {tp} GPUs")
        total += part.values // (tp if part.splits else 1) * formats.state_bytes[part.role]
    return total


def _group(cache: Cache, layers: int, formats: Formats, work: Workload) -> Group:
    common, private = _parts(Counter({cache: layers}), formats, work, 1)
    return Group(
        cache.kind, layers, cache.heads, cache.key, cache.value, cache.window, cache.stride,
        tokens=0 if cache.kind == "linear" else min(cache.window or work.context, work.context),
        bytes_per_token=layers * per_token(cache, formats, 1), bytes=common + private * work.batch,
    )  # fmt: skip


def _workload_bytes(counts: Counter[Cache], formats: Formats, work: Workload, tp: int) -> int:
    common, private = _parts(counts, formats, work, tp)
    return common + private * work.batch


def _parts(counts: Counter[Cache], formats: Formats, work: Workload, tp: int) -> tuple[int, int]:
    """(bytes that all sequences share, bytes of each sequence of its own), on one GPU."""
    common = private = 0
    for cache, layers in counts.items():
        if cache.kind == "linear":
            private += layers * state_bytes(cache, formats, tp)
            continue
        held, shared = kept_tokens(cache, work)
        one = per_token(cache, formats, tp) * cache.stride
        common += layers * int(one * -(-shared // cache.stride))
        private += layers * int(one * (-(-held // cache.stride) - -(-shared // cache.stride)))
    return common, private


def kept_tokens(cache: Cache, work: Workload) -> tuple[int, int]:
    """(tokens that a sequence keeps in a cache, of them shared with all others), in whole blocks."""
    block = work.block
    held = min(cache.window or work.context, work.context)
    first = work.context - held  # tokens before the window are dropped
    # The last token of a prompt is computed in every sequence, so its block is never shared.
    common = min(work.shared, work.context - 1) // block * block
    shared = max(0, common - -(-first // block) * block)
    return -(-held // block) * block, min(shared, held // block * block)
