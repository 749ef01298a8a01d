"""What vLLM reserves: pages, groups, blocks, and how many requests of full length it admits.

Held against vLLM 0.32's own functions on 120 models (`tests/oracle`): layers of
one kind form groups of equal numbers of layers, all groups take blocks from one
pool, and a windowed group is admitted with its window and one batch of prefill
on top.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from prefixguard.kv.formats import Formats
from prefixguard.kv.shape import Cache, CacheKind, Model
from prefixguard.kv.sizing import per_token, state_bytes

_FULL_LENGTH = ("full", "mla", "index")


@dataclass(frozen=True, slots=True)
class Spec:
    """One layer's cache as vLLM specifies it. block: tokens. page: bytes of a block."""

    cache: Cache
    block: int
    page: int


@dataclass(frozen=True, slots=True)
class Share:
    """Layers that have one block table. layers: of this group. blocks: that one request needs."""

    kind: CacheKind
    layers: int
    block: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Admission:
    """block_bytes: of one block of the pool, on each GPU. num_blocks: None without a memory size.

    concurrency: as vLLM logs it. sequences: whole requests that fit beside the
    null block. by_layout: pages differ in size, and vLLM packs them this way
    only in a layout with layers outermost.
    """

    block_bytes: int
    shares: tuple[Share, ...]
    num_blocks: int | None
    by_layout: bool = False

    @property
    def blocks_per_request(self) -> int:
        """Blocks that admit one request of full length."""
        return sum(share.blocks for share in self.shares)

    @property
    def bytes_per_request(self) -> int:
        """The same in bytes, on each GPU."""
        return self.blocks_per_request * self.block_bytes

    @property
    def concurrency(self) -> float | None:
        """vLLM's "maximum concurrency": the pool over one request, the null block counted."""
        return None if self.num_blocks is None else self.num_blocks / self.blocks_per_request

    @property
    def sequences(self) -> int | None:
        """Requests of full length at once; one block of the pool is never used."""
        return None if self.num_blocks is None else max(0, self.num_blocks - 1) // self.blocks_per_request


def admit(
    model: Model, formats: Formats, *, length: int, block: int, tp: int = 1, batched: int = 8192,
    memory: int | None = None,
) -> Admission:  # fmt: skip
    """What vLLM reserves for requests of `length` tokens with blocks of `block`.

    batched: `--max-num-batched-tokens`. memory: bytes for KV on each GPU.
    """
    specs = _specs(model, formats, block, tp)
    uniform = len({_type(spec.cache) for spec in specs}) == 1
    if uniform:
        # One block table serves layers of different widths when all need the same tokens.
        block_bytes = sum(spec.page for spec in specs)
        shares = [Share(specs[0].cache.kind, len(specs), block, _blocks(specs[0], length, batched))]
        return Admission(block_bytes, tuple(shares), _num_blocks(memory, block_bytes))
    widths = {spec.page for spec in specs}
    page = max(widths)
    alike: dict[Hashable, list[Spec]] = {}
    for spec in (_unified(spec, page) for spec in specs):
        alike.setdefault(spec, []).append(spec)
    shares = _groups(list(alike.values()), lambda spec: _blocks(spec, length, batched))
    block_bytes = page * max(share.layers for share in shares)
    return Admission(block_bytes, tuple(shares), _num_blocks(memory, block_bytes), by_layout=len(widths) > 1)


def _num_blocks(memory: int | None, block_bytes: int) -> int | None:
    return None if memory is None else max(memory, 0) // block_bytes


def _type(cache: Cache) -> tuple[str, int | None]:
    """Layers of one type need the same number of tokens."""
    return ("full", None) if cache.kind in _FULL_LENGTH else (cache.kind, cache.window)


def _specs(model: Model, formats: Formats, block: int, tp: int) -> list[Spec]:
    caches = model.caches
    states = [state_bytes(c, formats, tp) for c in caches if c.kind == "linear"]
    entries = [per_token(c, formats, tp) for c in caches if c.kind != "linear"]
    if states and entries:
        # Attention blocks are made long enough to hold a state in one page.
        step = max(block, 128) if any(c.kind == "mla" for c in caches) else block
        block = step * -(-max(states) // int(step * max(entries)))
    page = int(block * max(entries)) if entries else max(states, default=0)
    return [
        Spec(c, block, page if c.kind == "linear" else int(block * per_token(c, formats, tp))) for c in caches
    ]


def _unified(spec: Spec, page: int) -> Spec:
    """The same layer with pages of the common size: more tokens in a block, or padding."""
    if page % spec.page:
        return replace(spec, page=page)
    return Spec(spec.cache, spec.block * (page // spec.page), page)


def _groups(alike: Sequence[list[Spec]], blocks: Callable[[Spec], int]) -> list[Share]:
    """Groups of equal numbers of layers, the last of each kind padded."""
    least, most = min(map(len, alike)), max(map(len, alike))
    width = most if most < least * 1.5 else least
    shares = []
    for specs in alike:
        groups = -(-len(specs) // width)
        for i in range(groups):
            layers = len(specs[i::groups])
            shares.append(Share(specs[0].cache.kind, layers, specs[0].block, blocks(specs[0])))
    return shares


def _blocks(spec: Spec, length: int, batched: int) -> int:
    cache = spec.cache
    if cache.kind == "linear":
        return 2  # the state itself, and the one at the last checkpoint
    if cache.window is None or cache.kind in _FULL_LENGTH:
        return -(-length // spec.block)
    if cache.kind == "chunked":
        return -(-min(cache.window + batched, length) // spec.block)
    # A window need not begin at the start of a block, so one more.
    return -(-min(cache.window - 1 + batched, length) // spec.block) + 1
