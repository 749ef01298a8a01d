"""The blocks of a prefix cache as the server's own events tell them: what was stored, what is still there.

Pure: payloads of vLLM's publisher in, tokens out. `engines.kv_events` listens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

type Hash = int | bytes
type Key = tuple[Any, ...] | None
"""What goes into a block's hash beside its tokens: salt, adapter, media; None for nothing."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks were written, one behind the other. parent: the block before the first, None at the begin."""

    hashes: tuple[Hash, ...]
    parent: Hash | None
    tokens: tuple[int, ...]
    block: int
    keys: tuple[Key, ...]
    group: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks were handed out for something else."""

    hashes: tuple[Hash, ...]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Cleared:
    """Everything was thrown away."""


type Event = Stored | Removed | Cleared

# The order of the fields where an event is an array, as older versions send it, its name first.
_STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
           "extra_keys", "group_idx", "kv_cache_spec_kind")  # fmt: skip
_REMOVED = ("block_hashes", "medium", "group_idx")


def read_batch(payload: bytes) -> tuple[Event, ...]:
    """The events of one message; kinds that are not known are passed over. Raises ValueError."""
    try:
        batch = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"no batch of events: {error}") from error
    if not isinstance(batch, list) or len(batch) < 2 or not isinstance(batch[1], list):
        raise ValueError("no batch of events: expected a time and a list")
    return tuple(event for told in batch[1] if (event := _event(told)) is not None)


def _event(told: Any) -> Event | None:
    if isinstance(told, list) and told and isinstance(told[0], str):
        names = _STORED if told[0] == "BlockStored" else _REMOVED
        told = {"type": told[0], **dict(zip(names, told[1:], strict=False))}
    if not isinstance(told, dict):
        return None
    match told.get("type"):
        case "AllBlocksCleared":
            return Cleared()
        case "BlockRemoved":
            return Removed(tuple(told.get("block_hashes") or ()), told.get("group_idx") or 0)
        case "BlockStored":
            hashes = tuple(told.get("block_hashes") or ())
            keys = told.get("extra_keys") or [None] * len(hashes)
            return Stored(
                hashes, told.get("parent_block_hash"), tuple(told.get("token_ids") or ()),
                told.get("block_size") or 0, tuple(_key(key) for key in keys), told.get("group_idx") or 0,
                told.get("kv_cache_spec_kind") or "",
            )  # fmt: skip
    return None


def _key(key: Any) -> Key:
    return tuple(key) if isinstance(key, list) and key else None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a prompt stands to the cache, in tokens from its begin.

    stored: what the server has stored of it at some time. left: what of that is
    still there without a gap.
    """

    stored: int
    left: int


class Ledger:
    """Follows a cache event by event. Blocks of equal content may be there several times."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Hash | None, Key, tuple[int, ...]], Hash] = {}
        self._there: Counter[tuple[int, Hash]] = Counter()
        self._block: dict[int, int] = {}
        self._kinds: dict[int, str] = {}
        self.stored = self.removed = self.cleared = 0

    def take(self, events: Iterable[Event]) -> None:
        """Follows what happened. `stored`, `removed` and `cleared` count blocks, blocks and times."""
        for event in events:
            match event:
                case Stored():
                    self._store(event)
                case Removed():
                    self.removed += len(event.hashes)
                    self._there.subtract((event.group, one) for one in event.hashes)
                case Cleared():
                    self.cleared += 1
                    self._there.clear()

    def _store(self, event: Stored) -> None:
        size, parent = event.block, event.parent
        if not size or len(event.tokens) < size * len(event.hashes):
            return
        self._block[event.group] = size
        self._kinds[event.group] = event.kind
        self.stored += len(event.hashes)
        for place, (one, key) in enumerate(zip(event.hashes, event.keys, strict=False)):
            ids = event.tokens[place * size : (place + 1) * size]
            self._known[event.group, parent, key, ids] = one
            self._there[event.group, one] += 1
            parent = one

    def stands(self, prompt: Sequence[int], salt: str | None = None) -> Standing | None:
        """How a prompt stands, its last token left out, as it is always evaluated. None before any block.

        Of several groups of layers those that keep everything count, if they
        are named: windows keep less by design.
        """
        whole = [group for group, kind in self._kinds.items() if kind == "full_attention"]
        found = [self._stands(group, prompt, salt) for group in whole or self._kinds]
        if not found:
            return None
        return Standing(min(one.stored for one in found), min(one.left for one in found))

    def _stands(self, group: int, prompt: Sequence[int], salt: str | None) -> Standing:
        stored, left = 0, None
        for one in self._chain(group, prompt, salt):
            if left is None and self._there[group, one] <= 0:
                left = stored
            stored += self._block[group]
        return Standing(stored, stored if left is None else left)

    def _chain(self, group: int, prompt: Sequence[int], salt: str | None) -> Iterator[Hash]:
        size = self._block[group]
        parent: Hash | None = None
        for start in range(0, (len(prompt) - 1) // size * size, size):
            ids = tuple(prompt[start : start + size])
            key: Key = (salt,) if salt and not start else None
            one = self._known.get((group, parent, key, ids))
            if one is None and key is not None:
                one = self._known.get((group, parent, None, ids))  # versions that do not show the salt
            if one is None:
                return
            yield one
            parent = one
