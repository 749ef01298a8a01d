"""SGLang's radix tree, on exact token ids: a hit is the longest prefix shared with anything that was left.

Rule, held against SGLang 0.5.23's own tree on 16,000 requests
(`tests/oracle/radix.py`): cached tokens are min(L, P - 1) for a prompt of P
tokens and L tokens shared with anything cached, rounded down to whole pages.
No eviction here. Pages of more than one token behave as `Blocks`.
"""

from __future__ import annotations

from array import array

from prefixguard.rendering.ids import common_prefix


class Radix:
    """One cache domain: its longest sequences. What is a prefix of another one adds nothing."""

    def __init__(self) -> None:
        self._left: list[tuple[array[int], int]] = []

    def read(self, prompt: array[int]) -> tuple[int, int | None]:
        """(cached tokens, the exchange that left most of them) for the next prompt."""
        best, donor = 0, None
        for ids, index in self._left:
            shared = common_prefix(ids, prompt)
            if shared > best:
                best, donor = shared, index
        return min(best, max(len(prompt) - 1, 0)), donor

    def observe(self, index: int, prompt: array[int], reply: array[int] | None) -> None:
        """Keeps a prompt and its reply, the last sampled token left out of `reply`."""
        ids = prompt if not reply else prompt + reply
        left = []
        for other, whose in self._left:
            shared = common_prefix(other, ids)
            if shared == len(ids) and len(other) > len(ids):
                return
            if shared < len(other):
                left.append((other, whose))
        self._left = [*left, (ids, index)]
