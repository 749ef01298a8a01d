"""The block cache on ids, against its rule worked out in the slow way."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.caches.blocks import Blocks
from prefixguard.rendering.ids import common_prefix

# Few different ids, so that prompts share prefixes, and the same block stands at several places.
IDS = st.lists(st.integers(0, 1), min_size=1, max_size=24).map(lambda ids: array("i", ids))


@given(st.integers(1, 6), st.lists(st.tuples(IDS, st.none() | IDS), max_size=8), IDS)
def test_a_hit_is_the_longest_shared_prefix_in_whole_blocks(
    block: int, earlier: list[tuple[array[int], array[int] | None]], prompt: array[int]
) -> None:
    cache = Blocks(block)
    for index, (asked, reply) in enumerate(earlier):
        cache.observe(index, asked, reply)
    kept = [asked + (reply or array("i")) for asked, reply in earlier]
    shared = max((common_prefix(ids, prompt) for ids in kept), default=0)
    expected = min(shared, len(prompt) - 1) // block * block
    cached, donor = cache.read(prompt)
    assert cached == expected
    assert (donor is None) == (cached == 0)
    if donor is not None:
        assert common_prefix(kept[donor], prompt) >= cached


def test_the_last_block_of_the_same_prompt_is_computed_again() -> None:
    cache = Blocks(32)
    prompt = array("i", range(64))
    cache.observe(0, prompt, None)
    assert cache.read(prompt) == (32, 0)
    assert cache.read(prompt + array("i", [9])) == (64, 0)
