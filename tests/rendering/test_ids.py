"""Where two runs of token ids part."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.rendering.ids import common_prefix

IDS = st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 3), max_size=40)


def naive(a: array[int], b: array[int]) -> int:
    same = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        same += 1
    return same


@given(IDS, IDS, IDS)
def test_it_is_what_a_loop_finds(start: list[int], left: list[int], right: list[int]) -> None:
    a, b = array("i", start + left), array("i", start + right)
    assert common_prefix(a, b) == common_prefix(b, a) == naive(a, b)


@given(st.integers(0, 70_000), st.integers(0, 3))
def test_it_looks_behind_the_first_block(at: int, byte: int) -> None:
    a = array("i", range(70_000))
    b = array("i", a)
    if at < len(b):
        b[at] ^= 1 << (8 * byte)
    assert common_prefix(a, b) == at


def test_one_is_the_start_of_the_other() -> None:
    a = array("i", range(70_000))
    assert common_prefix(a, a[:40_000]) == 40_000
    assert common_prefix(a, array("i")) == 0
