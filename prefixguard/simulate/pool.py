"""A pool of KV blocks as vLLM keeps it: a prefix cache in the free list.

The rules, each held against vLLM's own manager (`tests/oracle`):

- a block is known by its tokens and all before it; a hit is the longest chain
  of known blocks that leaves at least the prompt's last token to compute;
- a block that nobody uses stays readable in the free list until it is handed
  out again, the least recently freed first;
- a request that ends frees its blocks tail first, so pressure trims prompts
  from their ends; blocks without a full content go to the front;
- equal blocks computed twice are both kept;
- one block of the pool, the null block, is never handed out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lease:
    """The blocks of a running request. cached: tokens of its prompt that were read."""

    cached: int
    blocks: list[int] = field(repr=False)
    keys: Sequence[int] = field(repr=False)
    named: int = 0
    """Of its blocks, how many can be found by their content so far."""


class Pool:
    """One GPU's blocks. Block numbers are internal; keys come from `Workload.keys`."""

    def __init__(self, blocks: int, block: int) -> None:
        """blocks: of the whole pool, the null block included. block: tokens per block."""
        self.block = block
        self.usable = max(blocks - 1, 0)
        self.evictions = 0
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(self.usable))
        self._users = [0] * self.usable
        self._key: list[int | None] = [None] * self.usable
        self._known: dict[int, dict[int, None]] = {}

    @property
    def free(self) -> int:
        """Blocks that no running request uses, readable or not."""
        return len(self._free)

    def reachable(self, keys: Sequence[int], prompt: int) -> list[int]:
        """The blocks that a prompt of so many tokens can read."""
        found = []
        for key in keys[: max(prompt - 1, 0) // self.block]:
            blocks = self._known.get(key)
            if not blocks:
                break
            found.append(next(iter(blocks)))
        return found

    def start(self, keys: Sequence[int], prompt: int, total: int) -> Lease | None:
        """Takes the blocks of a request, or nothing when they are not to be had now.

        keys: of every full block of its `total` tokens. total: tokens that get
        keys and values: the prompt and the reply without its last token.
        """
        hit = self.reachable(keys, prompt)
        fresh = -(-total // self.block) - len(hit)
        if fresh + sum(1 for block in hit if not self._users[block]) > len(self._free):
            return None
        for block in hit:
            if not self._users[block]:
                del self._free[block]
            self._users[block] += 1
        blocks = hit + [self._take() for _ in range(fresh)]
        lease = Lease(len(hit) * self.block, blocks, keys, len(hit))
        # Blocks of the prompt can be read as soon as they are scheduled, those of the reply when it is there.
        self._name(lease, prompt // self.block)
        return lease

    def finish(self, lease: Lease) -> None:
        """Ends a request: its reply becomes readable, its blocks free, tail first."""
        self._name(lease, min(len(lease.keys), len(lease.blocks)))
        front = []
        for block in reversed(lease.blocks):
            self._users[block] -= 1
            if self._users[block]:
                continue
            self._free[block] = None
            if self._key[block] is None:
                front.append(block)
        for block in reversed(front):
            self._free.move_to_end(block, last=False)

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        key = self._key[block]
        if key is not None:
            self.evictions += 1
            copies = self._known[key]
            del copies[block]
            if not copies:
                del self._known[key]
            self._key[block] = None
        self._users[block] = 1
        return block

    def _name(self, lease: Lease, count: int) -> None:
        for i in range(lease.named, count):
            block, key = lease.blocks[i], lease.keys[i]
            self._key[block] = key
            self._known.setdefault(key, {})[block] = None
        lease.named = max(lease.named, count)
