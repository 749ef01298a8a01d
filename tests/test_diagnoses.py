"""Servers' own diagnoses: read, compared with ours, reported."""

from __future__ import annotations

import msgspec
import pytest

from prefixguard.analysis import analyze
from prefixguard.causes.diagnoses import ReasonTable, read_diagnosis
from prefixguard.exchange import Exchange
from prefixguard.reports.json import turn_to_dict
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Diagnosis, Turn

_RULES = "Follow the house rules of the Larkspur build farm and answer briefly. " * 120


def _exchange(t: float, clock: str, question: str, response: dict[str, object]) -> Exchange:
    request = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "cache_control": {"type": "ephemeral"},
        "system": [{"type": "text", "text": f"It is {clock}. {_RULES}"}],
        "messages": [
            {"role": "user", "content": "Which shard drains the ledger first, and why does it do so?"},
            {"role": "assistant", "content": "The third shard drains it, because its queue is the shortest."},
            {"role": "user", "content": question},
        ],
    }
    usage = {"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 1700}
    answer = {"id": "msg_1", "type": "message", "content": [{"type": "text", "text": "ok"}], "usage": usage}
    return Exchange(
        t, "/v1/messages", msgspec.json.encode(request), {"x-session-id": "s"},
        msgspec.json.encode({**answer, **response}), upstream="https://api.anthropic.com",
    )  # fmt: skip


def _second_turn(reason: dict[str, object] | None) -> Turn:
    diagnosis = {"diagnostics": {"cache_miss_reason": reason}}
    log = [
        _exchange(0, "10:00:01", "Go on.", {}),
        _exchange(9, "10:00:11", "And then, what happens to the second ledger?", diagnosis),
    ]
    return analyze(log).sessions[0].turns[1]


@pytest.mark.parametrize(
    ("reason", "agrees"),
    [("system_changed", True), ("tools_changed", False), ("previous_message_not_found", None)],
)
def test_a_diagnosis_is_held_against_the_findings(reason: str, agrees: bool | None) -> None:
    turn = _second_turn({"type": reason, "cache_missed_input_tokens": 1650})
    assert [f.code for f in turn.findings if f.primary] == ["PG101"]
    assert turn.diagnosis == Diagnosis("anthropic", reason, 1650, agrees)
    assert turn_to_dict(turn)["diagnosis"]["agrees"] is agrees


def test_a_pending_diagnosis_says_nothing() -> None:
    turn = _second_turn(None)
    assert turn.diagnosis is None
    assert "diagnosis" not in turn_to_dict(turn)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            {
                "prompt_cache_diagnostics": {
                    "type": "cache_miss",
                    "reason": "tools_changed",
                    "cache_missed_tokens": 9,
                }
            },
            Diagnosis("openai", "tools_changed", 9),
        ),
        ({"prompt_cache_diagnostics": {"type": "cache_hit"}}, Diagnosis("openai", "cache_hit")),
        ({"diagnostics": {"cache_miss_reason": {"type": 3}}}, None),
        ({"diagnostics": "odd", "prompt_cache_diagnostics": []}, None),
        ({}, None),
    ],
)
def test_both_vendors_forms_are_read(response: dict[str, object], expected: Diagnosis | None) -> None:
    assert read_diagnosis(response) == expected


def test_every_reason_names_codes_of_the_catalogue() -> None:
    book = Rulebook()
    table = book.table("diagnoses", ReasonTable)
    assert {code for row in table.reason for code in row.codes} <= set(book.findings)
