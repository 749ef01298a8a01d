"""What a server's events say of a prompt, held against what that server then read; and witnesses of slots."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from prefixguard.trial import Shown, Slot, Witness
from prefixguard.trial.ledger import Cleared, Ledger, Removed, Standing, Stored, read_batch

TAPE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "fixtures/vllm/tape.json").read_text())


def stored(*hashes: int, parent: int | None = None, tokens: list[int], **more: Any) -> Stored:
    keys = more.pop("keys", (None,) * len(hashes))
    return Stored(hashes, parent, tuple(tokens), 2, keys, **more)


@pytest.mark.parametrize("name", list(TAPE["sessions"]))
def test_a_recorded_server_read_what_its_events_had_left(name: str) -> None:
    ledger, turns = Ledger(), 0
    # The ids were asked for behind the run, in its order.
    ids = iter(
        [msgspec.json.decode(r["body"])["tokens"] for r in TAPE["sessions"][name] if r["path"] == "/tokenize"]
    )
    for row in TAPE["sessions"][name]:
        if not row["path"].startswith("/v1/chat"):
            continue
        usage = next(
            msgspec.json.decode(line.removeprefix("data: "))["usage"]
            for line in row["body"].splitlines()
            if '"usage":{' in line
        )
        standing = ledger.stands(next(ids), row["salt"])
        assert (standing.left if standing else 0) == usage["prompt_tokens_details"]["cached_tokens"]
        for payload in row["events"]:
            ledger.take(read_batch(b64decode(payload)))
        turns += 1
    assert turns > 3
    assert bool(ledger.removed) == ("small cache" in name)


def test_blocks_of_equal_content_are_counted() -> None:
    ledger = Ledger()
    ledger.take([stored(1, 2, tokens=[10, 11, 12, 13]), stored(1, tokens=[10, 11])])
    assert ledger.stands([10, 11, 12, 13, 14]) == Standing(4, 4)
    ledger.take([Removed((1,))])
    assert ledger.stands([10, 11, 12, 13, 14]) == Standing(4, 4)
    ledger.take([Removed((1,))])
    assert ledger.stands([10, 11, 12, 13, 14]) == Standing(4, 0)
    assert ledger.stands([10, 11, 12, 13]) == Standing(2, 0)  # the last token is evaluated in any case
    assert ledger.stands([9, 9, 9]) == Standing(0, 0)


def test_salts_do_not_mix() -> None:
    ledger = Ledger()
    ledger.take([stored(1, 2, tokens=[10, 11, 12, 13], keys=(("mine",), None))])
    prompt = [10, 11, 12, 13, 14]
    assert ledger.stands(prompt, "mine") == Standing(4, 4)
    assert ledger.stands(prompt, "other") == ledger.stands(prompt) == Standing(0, 0)


def test_of_groups_the_ones_that_keep_everything_count() -> None:
    ledger = Ledger()
    ledger.take(
        [
            stored(1, 2, tokens=[10, 11, 12, 13], kind="full_attention"),
            stored(5, tokens=[10, 11], group=1, kind="sliding_window"),
            Removed((5,), group=1),
        ]
    )
    assert ledger.stands([10, 11, 12, 13, 14]) == Standing(4, 4)
    assert Ledger().stands([1, 2, 3]) is None


def test_older_versions_send_arrays() -> None:
    payload = msgspec.msgpack.encode(
        [
            1.5,
            [["BlockStored", [7], None, [1, 2], 2, None, "GPU"], ["BlockRemoved", [7]], ["AllBlocksCleared"]],
            0,
        ]
    )
    assert read_batch(payload) == (Stored((7,), None, (1, 2), 2, (None,)), Removed((7,)), Cleared())
    for bad in (b"\xc1", msgspec.msgpack.encode({"a": 1}), msgspec.msgpack.encode([1.0, 2])):
        with pytest.raises(ValueError, match="no batch"):
            read_batch(bad)


def test_an_emptied_cache_is_told_with_the_next_batch() -> None:
    """vLLM publishes a reset together with what the first prompt behind it stores."""
    witness = Witness()
    witness.turn([10, 11, 12], Shown((stored(1, tokens=[10, 11]),)))
    found = witness.turn([10, 11, 12], Shown((Cleared(), stored(1, tokens=[10, 11]))))
    assert (found.stored, found.left, found.cleared, found.evicted) == (2, 0, True, 2)
    again = witness.turn([10, 11, 12], Shown())
    assert (again.left, again.cleared) == (2, False)


def test_slots_say_who_was_there_before() -> None:
    witness = Witness()
    witness.see(Shown(slots={0: Slot(3, 1), 1: Slot(0, 0)}))
    states = [{0: Slot(9, 5), 1: Slot(0, 0)}, {0: Slot(9, 5), 1: Slot(4, 9)}, {0: Slot(7, 12), 1: Slot(4, 9)}]
    found = [witness.turn(None, Shown(slots=slots)) for slots in states]
    assert [(e.slot, e.held, e.last) for e in found] == [(0, 3, None), (1, 0, None), (0, 9, 0)]
    unclear = witness.turn(None, Shown(slots={0: Slot(1, 20), 1: Slot(1, 21)}))
    assert (unclear.slot, unclear.last) == (None, None)
    assert witness.turn(None, Shown()).slot is None
