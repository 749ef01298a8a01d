"""Our tree against SGLang's own: cached tokens of 16,000 random agent requests, as it answered them."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import pytest

from prefixguard.caches.blocks import Blocks
from prefixguard.caches.radix import Radix
from tests.oracle.agent_requests import SEEDS, case

TOLD = json.loads((Path(__file__).parents[2] / "fixtures/sglang/radix.json").read_text())


@pytest.mark.parametrize("page", [1, 16])
def test_every_request_reads_what_sglang_read(page: int) -> None:
    asked = 0
    for seed in range(SEEDS):
        caches: dict[str | None, Radix | Blocks] = {}
        for number, (one, theirs) in enumerate(
            zip(case(seed).requests, TOLD["pages"][str(page)][seed], strict=True)
        ):
            cache = caches.setdefault(one.salt, Radix() if page == 1 else Blocks(page))
            prompt, reply = array("i", one.prompt), array("i", one.reply[:-1])
            assert cache.read(prompt)[0] == theirs, f"seed {seed}, request {number}"
            cache.observe(number, prompt, reply)
            asked += 1
    assert asked == 8000


def test_it_says_who_left_the_most() -> None:
    tree = Radix()
    assert tree.read(array("i", [1, 2])) == (0, None)
    tree.observe(0, array("i", [1, 2, 3]), array("i", [4]))
    tree.observe(1, array("i", [1, 9]), None)
    tree.observe(2, array("i", [1, 2]), None)  # adds nothing
    assert tree.read(array("i", [1, 2, 3, 4, 5])) == (4, 0)
    assert tree.read(array("i", [1, 9, 9])) == (2, 1)
    assert tree.read(array("i", [1, 2, 3, 4])) == (3, 0)  # the last token is always computed
    assert tree.read(array("i", [])) == (0, None)
