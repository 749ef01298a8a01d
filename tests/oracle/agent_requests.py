"""Random agent requests, the same wherever they are made: appends, edits, truncations, salts, retries.

Needs only the standard library and Python 3.10, so that vLLM's environment can
use it. Random numbers are drawn with `random()` alone, whose sequence Python
promises to keep.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

SEEDS = 200
PER_SEED = 40


class Asked(NamedTuple):
    """One request: prompt and reply as token ids."""

    prompt: list[int]
    reply: list[int]
    salt: str | None


class Case(NamedTuple):
    """One pool and what is asked of it. blocks: the null block included."""

    seed: int
    block: int
    blocks: int
    requests: list[Asked]


def case(seed: int) -> Case:
    """The requests of one seed; each fits the empty pool."""
    draw = random.Random(seed).random

    def pick(low: int, high: int) -> int:
        return low + int(draw() * (high - low + 1))

    block = (2, 4, 16)[pick(0, 2)]
    blocks = pick(9, 129)
    room = (blocks - 1) * block
    told: list[Asked] = []
    while len(told) < PER_SEED:
        salt = "tenant" if draw() < 0.2 else None
        prompt = _prompt(told, draw, pick, block)
        reply = [pick(0, 2) for _ in range(pick(1, 2 * block))]
        if len(prompt) + len(reply) - 1 <= room:
            told.append(Asked(prompt, reply, salt))
    return Case(seed, block, blocks, told)


def _prompt(
    told: list[Asked], draw: Callable[[], float], pick: Callable[[int, int], int], block: int
) -> list[int]:
    """A prompt that begins anew or does to an earlier one what agents do. Few ids: chance repeats them."""
    if not told or draw() < 0.2:
        return [pick(0, 2) for _ in range(pick(1, 6 * block))]
    earlier = told[pick(0, len(told) - 1)]
    tokens = earlier.prompt + earlier.reply
    act = draw()
    if act < 0.6:
        return tokens + [pick(0, 2) for _ in range(pick(1, 3 * block))]
    if act < 0.75:
        at = pick(0, len(tokens) - 1)
        return [*tokens[:at], 7, *tokens[at + 1 :]]
    if act < 0.9:
        return tokens[: pick(1, len(tokens))]
    return list(earlier.prompt)
