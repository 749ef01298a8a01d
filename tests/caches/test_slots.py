"""llama.cpp's slots on ids: the rule for one slot, the choice among several, and replies nobody knows."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.caches.slots import Slots
from prefixguard.rendering.ids import common_prefix

IDS = st.lists(st.integers(0, 2), min_size=1, max_size=24).map(lambda ids: array("i", ids))


@given(IDS, IDS, IDS)
def test_one_slot_keeps_the_last_prompt_and_its_reply(
    first: array[int], reply: array[int], prompt: array[int]
) -> None:
    slots = Slots(1)
    slots.observe(0, first, reply)
    expected = min(common_prefix(first + reply, prompt), len(prompt) - 1)
    assert slots.read(prompt) == (expected, 0)
    assert slots.possible(prompt) == expected


def test_an_unknown_reply_widens_only_a_whole_append() -> None:
    slots = Slots(1)
    slots.observe(0, array("i", range(10)), None, generated=6)
    appended = array("i", [*range(10), 90, 91, 92, 93, 94, 95, 96])
    assert slots.read(appended) == (10, 0)
    assert slots.possible(appended) == 15  # the last sampled token is never decoded
    edited = array("i", [*range(9), 77, 90, 91])
    assert slots.possible(edited) == slots.read(edited)[0] == 9


def test_of_several_slots_the_most_alike_is_taken_else_the_least_used() -> None:
    slots = Slots(2)
    one, other = array("i", range(100)), array("i", range(500, 600))
    slots.observe(0, one, None)
    slots.observe(1, other, None)
    assert slots.read(one + array("i", [7])) == (100, 0)
    assert slots.read(other + array("i", [7])) == (100, 1)
    assert slots.read(array("i", range(900, 1000))) == (0, 0)
