"""LiteLLM's payloads: what was asked, what came back, and what its own cache or redaction hides."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixguard.analysis import analyze
from prefixguard.exchange import Capture
from prefixguard.importers.foreign import read_foreign
from prefixguard.importers.formats import named_format
from prefixguard.importers.in_process import InProcess
from prefixguard.importers.litellm import capture_of
from prefixguard.importers.told import Told
from prefixguard.proxy.understand import exchange_of
from prefixguard.store import Store

from .test_foreign import FIXTURES

RULE = named_format("litellm")


def payloads(name: str = "litellm-callback.jsonl.gz") -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress((FIXTURES / name).read_bytes()).splitlines()]


def taken(payload: dict[str, Any]) -> tuple[Capture | None, Told]:
    told = Told("log")
    return capture_of(payload, RULE, told), told


def changed(**changes: Any) -> dict[str, Any]:
    return {**payloads()[0], **changes}


def test_an_answer_from_litellms_own_cache_asked_no_model() -> None:
    for value in (True, "True"):
        capture, told = taken(changed(cache_hit=value))
        assert capture is None
        assert told.aside["answers from LiteLLM's own cache"] == 1
    for value in (None, False, "None", "False"):
        assert taken(changed(cache_hit=value))[0] is not None


def test_a_call_of_another_kind_is_passed_over() -> None:
    capture, told = taken(changed(call_type="aembedding"))
    assert capture is None
    assert told.aside["calls of type aembedding"] == 1


@pytest.mark.parametrize("messages", [[], None, "", [{"role": "user", "content": "redacted-by-litellm"}]])
def test_a_redacted_prompt_is_a_missing_prompt(messages: object) -> None:
    capture, told = taken(changed(messages=messages))
    assert capture is not None
    assert capture.headers["x-prefixguard-lost"] == "prompt"
    assert json.loads(capture.body) == {"model": "gpt-4.1"}
    assert told.lost["prompt"] == 1


def test_noughts_for_a_stream_without_usage_are_no_figures() -> None:
    response = {**payloads()[0]["response"], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    capture, _ = taken(changed(response=response, metadata={}, prompt_tokens=0))
    assert capture is not None
    assert "usage" not in json.loads(capture.response_body)


def test_bare_sums_leave_the_cache_unknown() -> None:
    capture, _ = taken(changed(response={}, metadata=None, prompt_tokens=2000, completion_tokens=5))
    assert capture is not None
    (session,) = analyze([exchange_of(capture)]).sessions
    assert session.turns[0].usage is not None
    assert (session.turns[0].usage.total, session.turns[0].usage.read) == (2000, None)


def test_keys_among_the_parameters_never_reach_a_capture() -> None:
    secret = "sk-" + "x" * 40
    parameters = {"api_key": secret, "aws_secret_access_key": secret, "temperature": 0,
                  "extra_headers": {"Authorization": f"Bearer {secret}", "x-kept": "yes"}}  # fmt: skip
    capture, _ = taken(changed(model_parameters=parameters))
    assert capture is not None
    assert secret not in repr(capture)
    assert capture.headers["x-kept"] == "yes"
    assert json.loads(capture.body)["temperature"] == 0


@pytest.mark.parametrize(
    ("ids", "session"),
    [
        ({"session_id": "a", "trace_id": "b"}, "a"),
        ({"session_id": "", "trace_id": "run-1"}, "run-1"),
        ({"session_id": None, "trace_id": "f1913a36-c8e0-4c1a-8a36-8f3d8a2b5c11"}, None),
        ({"session_id": None, "trace_id": None}, None),
    ],
)
def test_a_trace_id_that_litellm_made_up_names_no_session(ids: dict[str, Any], session: str | None) -> None:
    capture, _ = taken(changed(**ids))
    assert capture is not None
    assert capture.headers.get("x-prefixguard-session") == session


def test_a_model_is_called_as_the_provider_calls_it() -> None:
    for model, provider, called in (
        ("openai/gpt-4.1", "openai", "gpt-4.1"), ("gpt-4.1", "openai", "gpt-4.1"),
        ("openrouter/anthropic/claude-x", "openrouter", "anthropic/claude-x"), ("a/b", None, "a/b"),
    ):  # fmt: skip
        capture, _ = taken(changed(model=model, custom_llm_provider=provider))
        assert capture is not None
        assert json.loads(capture.body)["model"] == called


def test_failures_have_the_status_that_was_told() -> None:
    statuses = [
        capture.status for payload in payloads() if (capture := taken(payload)[0]) is not None
    ]  # fmt: skip
    assert sorted(str(status) for status in statuses) == ["200"] * 8 + ["500"]
    capture, _ = taken(changed(status="failure", error_information={"error_code": ""}))
    assert capture is not None
    assert capture.status is None


def test_a_stored_request_body_is_the_prompt_of_a_spend_row() -> None:
    row = payloads("litellm-spend.jsonl.gz")[0]
    asked = {"model": "alias", "messages": [{"role": "user", "content": "hello"}], "temperature": 1}
    for stored in (asked, json.dumps(asked)):
        capture, told = taken({**row, "proxy_server_request": stored})
        assert capture is not None
        body = json.loads(capture.body)
        assert body["messages"] == asked["messages"]
        assert body["model"] == row["model"]
        assert not told.lost["prompt"]


def test_one_odd_record_names_its_field(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(json.dumps(changed(startTime="now")) + "\n" + json.dumps(changed()))
    told = Told("log")
    assert len(list(read_foreign(path, RULE, told))) == 1
    assert told.problems == ["log: line 1: startTime is no moment: 'now'"]


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[InProcess]:
    made = InProcess(tmp_path / "store.sqlite", session="mine")
    yield made
    made.flush()


def test_calls_are_recorded_in_process_once_each(recording: InProcess, tmp_path: Path) -> None:
    for payload in [*payloads(), *payloads()]:
        recording.take(lambda payload=payload: taken(payload)[0])
    assert recording.flush(20)
    assert not recording.lost
    assert recording.recorded == len(payloads())
    with Store.open(tmp_path / "store.sqlite") as store:
        assert {row.id: row.exchanges for row in store.sessions()} == {"run-1": 4, "run-2": 4, "mine": 1}


def test_nothing_is_raised_into_the_program_that_calls(
    recording: InProcess, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        recording.take(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert recording.lost == {"ZeroDivisionError: division by zero": 3}
    assert [record.message for record in caplog.records] == [
        "prefixguard: a request was not recorded: ZeroDivisionError: division by zero"
    ]
    recording.take(lambda: None)
    assert recording.flush()


def test_a_store_that_cannot_be_opened_loses_requests_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "no.sqlite").write_text("this is no store at all" * 10)
    recording = InProcess(tmp_path / "no.sqlite")
    for payload in payloads()[:3]:
        recording.take(lambda payload=payload: taken(payload)[0])
    assert recording.flush(20)
    assert sum(recording.lost.values()) == 3
    assert recording.recorded == 0
    assert len(caplog.records) == 1


def test_litellms_own_base_class_takes_the_logger(tmp_path: Path) -> None:
    pytest.importorskip("litellm", reason="litellm is not installed; its payloads are tested without it")
    from prefixguard.importers.litellm_callback import PrefixGuardLogger

    logger = PrefixGuardLogger(tmp_path / "store.sqlite")
    logger.log_success_event({"standard_logging_object": payloads()[0]}, None, None, None)
    logger.log_success_event({}, None, None, None)
    logger.log_success_event(None, None, None, None)
    assert logger.flush(20)
    assert logger.recording.recorded == 1
