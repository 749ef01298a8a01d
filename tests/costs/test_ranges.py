"""Where a server does not say what it read, the bill is a range, on a turn and in sums."""

from __future__ import annotations

import msgspec
import pytest

from prefixguard.analysis import analyze
from prefixguard.exchange import Exchange
from prefixguard.reports import figures
from prefixguard.reports.json import turn_to_dict
from prefixguard.turn import Cost, Session

_RULES = "Follow the house rules of the Larkspur build farm and answer briefly. " * 160


def _session(usage: dict[str, object] | None) -> Session:
    messages: list[dict[str, str]] = [{"role": "system", "content": _RULES}]
    log = []
    for turn in range(3):
        question = f"What does shard number {turn} do when the ledger is full?"
        messages.append({"role": "user", "content": question})
        answer = {"role": "assistant", "content": f"Shard {turn} drains the ledger into the replica."}
        response: dict[str, object] = {"choices": [{"index": 0, "message": answer}]}
        if usage is not None:
            response["usage"] = usage
        body = msgspec.json.encode({"model": "gpt-4.1", "messages": messages})
        log.append(
            Exchange(
                1_790_000_000 + 20 * turn, "/v1/chat/completions", body, {"x-session-id": "s"},
                msgspec.json.encode(response), upstream="https://api.openai.com",
            )
        )  # fmt: skip
        messages.append(answer)
    return analyze(log).sessions[0]


def test_an_unknown_read_gives_a_range() -> None:
    session = _session({"prompt_tokens": 2300, "completion_tokens": 20, "prompt_tokens_details": None})
    first, second, _ = session.turns
    assert first.cost.least is None  # nothing was there to read
    assert second.cache is not None
    assert second.cost.least is not None
    assert second.cost.most is not None
    # gpt-4.1: $2.00 in, $0.50 cached, $8.00 out per million tokens.
    read = second.cache.read_high
    assert second.cost.most == pytest.approx((2300 * 2 + 20 * 8) / 1e6)
    assert second.cost.least == pytest.approx(((2300 - read) * 2 + read * 0.5 + 20 * 8) / 1e6)
    total = session.totals.cost
    assert total.least is not None
    assert total.most is not None
    assert total.least < total.most
    assert total.most == pytest.approx(3 * (2300 * 2 + 20 * 8) / 1e6)
    assert " to " in figures.bill(total)
    assert turn_to_dict(second)["cost"]["least"] == second.cost.least


def test_no_usage_at_all_is_an_estimated_range() -> None:
    session = _session(None)
    second = session.turns[1]
    assert second.usage is None
    assert second.cost.estimated
    assert second.cost.least is not None
    assert second.cost.most is not None
    assert 0 < second.cost.least < second.cost.most


def test_a_reported_read_gives_one_amount() -> None:
    details = {"cached_tokens": 2176}
    session = _session({"prompt_tokens": 2300, "completion_tokens": 20, "prompt_tokens_details": details})
    assert session.totals.cost.least is None
    assert " to " not in figures.bill(session.totals.cost)


def test_a_range_too_narrow_to_print_is_one_amount() -> None:
    assert figures.bill(Cost(actual=1.002, least=1.001, most=1.002)) == "$1.00"
