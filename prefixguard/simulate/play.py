"""Plays a workload against a pool and counts what was read, recomputed and thrown out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from prefixguard.errors import InputError
from prefixguard.simulate.pool import Lease, Pool
from prefixguard.simulate.workload import Keys, Request, Workload


@dataclass(frozen=True, slots=True)
class Prefill:
    """Milliseconds to prefill n tokens: a + b n + c n^2, as `prefixguard measure` fits them."""

    a: float
    b: float
    c: float

    def seconds(self, tokens: int, cached: int) -> float:
        """Seconds for a prompt of which `cached` tokens are read: the rest still attends to them."""
        fresh = tokens - cached
        whole = self.b * fresh + self.c * (tokens * tokens - cached * cached)
        return (self.a + whole) / 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a workload, in tokens unless said otherwise.

    cached: read from the pool. possible: what a pool without end would have
    read. evictions: readable blocks that were given away. refused: requests
    that do not fit the whole pool. seconds: of prefill, None without a fit.
    cached_by_request: in the order of the requests.
    """

    requests: int
    prompt: int
    cached: int
    possible: int
    evictions: int
    refused: int
    seconds: float | None
    cached_by_request: tuple[int, ...]

    @property
    def recomputed(self) -> int:
        """Prompt tokens that were computed."""
        return self.prompt - self.cached

    @property
    def recomputed_after_eviction(self) -> int:
        """Of them, those that had been computed before and were thrown out."""
        return self.possible - self.cached

    @property
    def hit_rate(self) -> float | None:
        """Share of prompt tokens that were read."""
        return self.cached / self.prompt if self.prompt else None

    @property
    def possible_hit_rate(self) -> float | None:
        """The same with a pool without end."""
        return self.possible / self.prompt if self.prompt else None


def play(
    workload: Workload, blocks: int, keys: Keys, *, in_flight: int = 1, prefill: Prefill | None = None
) -> Outcome:
    """Sends the requests in order to a pool of `blocks` blocks.

    in_flight: requests that run at once: they end in the order in which they
    began, the oldest as soon as another needs its place, its blocks, or, in the
    same session, its reply. Raises InputError for a pool that holds nothing.
    """
    if blocks < 2:
        raise InputError("the pool holds no block of KV memory; give it more memory or smaller blocks")
    pool = Pool(blocks, keys.block)
    running: deque[tuple[Request, Lease]] = deque()
    seen: set[int] = set()
    cached: list[int] = []
    prompt = possible = refused = 0
    seconds = 0.0
    for request in workload.requests:
        names = keys(request)
        tokens = request.tokens
        while running and (
            len(running) >= in_flight or any(other.session == request.session for other, _ in running)
        ):
            pool.finish(running.popleft()[1])
        lease = pool.start(names, tokens, request.total)
        while lease is None and running:
            pool.finish(running.popleft()[1])
            lease = pool.start(names, tokens, request.total)
        prompt += tokens
        possible += _readable(names, tokens, keys.block, seen)
        seen.update(names)
        got = lease.cached if lease is not None else 0
        cached.append(got)
        if lease is None:
            refused += 1
        else:
            running.append((request, lease))
        if prefill is not None:
            seconds += prefill.seconds(tokens, got)
    return Outcome(
        len(cached), prompt, sum(cached), possible, pool.evictions, refused,
        seconds if prefill is not None else None, tuple(cached),
    )  # fmt: skip


def _readable(names: list[int], tokens: int, block: int, seen: set[int]) -> int:
    """What a pool without end would read."""
    most = max(tokens - 1, 0) // block
    for i, name in enumerate(names[:most]):
        if name not in seen:
            return i * block
    return min(most, len(names)) * block
