"""The JSON report: exactly the contract, for whatever the analysis says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from any_values import analyses, turns
from hypothesis import given, settings
from report_values import APPEND, BREAK, CLOCK, analysis, session, turn

from prefixguard.errors import InputError
from prefixguard.reports.json import to_json, turn_from_json, turn_to_json
from prefixguard.turn import Analysis, Cost, Turn, Usage

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "analysis-1.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@settings(max_examples=60, deadline=None)
@given(analyses)
def test_every_analysis_fits_the_schema(value: Analysis) -> None:
    VALIDATOR.validate(json.loads(to_json(value)))


@settings(max_examples=60, deadline=None)
@given(turns)
def test_a_kept_turn_comes_back_equal(value: Turn) -> None:
    kept = turn_to_json(value)
    back = turn_from_json(kept)
    assert turn_to_json(back) == kept
    if "\\ud" not in repr(value):  # halves of surrogate pairs come back as replacement characters
        assert back == value


def test_field_names_are_those_of_the_contract() -> None:
    document = json.loads(to_json(analysis(session([APPEND, BREAK]))))
    assert document["schema"] == "prefixguard-analysis/1"
    told = document["sessions"][0]["turns"][1]
    assert told["break"] is True
    assert told["divergence"]["in"] == "turn"
    assert told["divergence"]["pointer"] == "/messages/0/content"
    assert told["findings"][0]["code"] == "PG101"
    assert "within" not in told["divergence"]
    assert "is_break" not in told


def test_unknown_is_null_and_never_zero() -> None:
    silent = turn(APPEND, usage=Usage(2000, None), cost=Cost())
    told = json.loads(to_json(analysis(session([silent]))))["sessions"][0]
    assert told["turns"][0]["usage"]["read"] is None
    assert told["turns"][0]["cost"]["actual"] is None
    assert told["totals"]["hit_rate"] is None


def test_estimates_notes_and_aborts_are_said_only_where_they_are() -> None:
    plain = json.loads(to_json(analysis(session([APPEND]))))["sessions"][0]["turns"][0]
    assert not {"aborted", "note"} & set(plain)
    assert "estimated" not in plain["cost"]
    odd = turn(BREAK, aborted=True, note="the body is not JSON")
    told = json.loads(to_json(analysis(session([odd]))))["sessions"][0]["turns"][0]
    assert told["aborted"] is True
    assert told["note"] == "the body is not JSON"
    assert told["cost"]["estimated"] is True


def test_indented_is_the_same_document() -> None:
    value = analysis(session([APPEND, BREAK]))
    assert json.loads(to_json(value, indent=2)) == json.loads(to_json(value))
    assert to_json(value).count(b"\n") == 1


def test_half_an_emoji_does_not_stop_the_report() -> None:
    cut = turn(BREAK, findings=(CLOCK.but(evidence="smile \ud83d"),))
    told = json.loads(to_json(analysis(session([cut]))))
    assert told["sessions"][0]["turns"][0]["findings"][0]["evidence"] == "smile \N{REPLACEMENT CHARACTER}"
    assert turn_from_json(turn_to_json(cut)).findings[0].evidence == "smile \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\xff", b'{"index": "x"}'])
def test_a_kept_turn_of_another_form_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(InputError, match="analyse the session again"):
        turn_from_json(data)
