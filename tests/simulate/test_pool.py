"""The pool of blocks against vLLM's own manager, and what must hold for every sequence of requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.simulate import Keys, Piece, Pool, Request
from tests.oracle.agent_requests import SEEDS, Asked, case

GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures/vllm/manager.json").read_text())


def request(asked: Asked) -> Request:
    """A request of token ids, each a piece of its own."""
    prompt, reply = (tuple(Piece(token, 0, 1) for token in tokens) for tokens in (asked.prompt, asked.reply))
    return Request(0, prompt, reply, len(asked.reply), asked.salt)


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_cached_tokens_are_those_of_vllm(first: int) -> None:
    for seed in range(first, first + 20):
        asked = case(seed)
        pool, keys = Pool(asked.blocks, asked.block), Keys(asked.block)
        cached = []
        for one in map(request, asked.requests):
            lease = pool.start(keys(one), one.tokens, one.total)
            assert lease is not None
            cached.append(lease.cached)
            pool.finish(lease)
        assert cached == GOLDEN["seeds"][seed], seed


def test_the_traces_are_worth_replaying() -> None:
    answers = [cached for seed in GOLDEN["seeds"] for cached in seed]
    assert len(answers) == 8000
    assert sum(1 for cached in answers if cached) > 3000


def chain(*tokens: int) -> Request:
    return Request(0, tuple(Piece(token, 0, 1) for token in tokens))


def asked(pool: Pool, keys: Keys, one: Request) -> int:
    lease = pool.start(keys(one), one.tokens, one.total)
    assert lease is not None
    pool.finish(lease)
    return lease.cached


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    pool, keys = Pool(10, 4), Keys(4)
    assert asked(pool, keys, chain(*range(8))) == 0
    assert asked(pool, keys, chain(*range(8))) == 4
    assert asked(pool, keys, chain(*range(9))) == 8


def test_pressure_takes_a_prompts_end_first() -> None:
    pool, keys = Pool(6, 4), Keys(4)
    asked(pool, keys, chain(*range(16)))  # four of five blocks
    asked(pool, keys, chain(100, 101, 102, 103, 104, 105, 106, 107))  # one free block, one of its end
    assert pool.evictions == 1
    assert asked(pool, keys, chain(*range(16))) == 12


def test_running_requests_keep_their_blocks() -> None:
    pool, keys = Pool(5, 4), Keys(4)
    one, other = chain(*range(12)), chain(*range(50, 58))
    lease = pool.start(keys(one), 12, 12)
    assert lease is not None
    assert pool.start(keys(other), 8, 8) is None
    assert pool.free == 1
    same = pool.start(keys(one), 12, 12)
    assert same is not None
    assert same.cached == 8  # readable as soon as it was scheduled
    pool.finish(lease)
    pool.finish(same)
    assert pool.free == 4


TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=40)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(TOKENS, st.integers(0, 12)), max_size=25),
    st.integers(2, 16),
    st.sampled_from([1, 2, 4]),
)
def test_blocks_are_never_lost_nor_invented(
    asks: list[tuple[list[int], int]], blocks: int, block: int
) -> None:
    pool, keys = Pool(blocks, block), Keys(block)
    running = []
    for tokens, output in asks:
        one = Request(
            0, tuple(Piece(t, 0, 1) for t in tokens), (Piece("r", 0, output),) if output else (), output
        )
        lease = pool.start(keys(one), one.tokens, one.total)
        if lease is None:
            if running:
                pool.finish(running.pop(0))
            continue
        assert lease.cached <= len(tokens) - 1
        assert lease.cached % block == 0
        running.append(lease)
        used = {number for held in running for number in held.blocks}
        assert pool.free + len(used) == pool.usable
    for lease in running:
        pool.finish(lease)
    assert pool.free == pool.usable
