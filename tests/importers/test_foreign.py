"""Files that other tools wrote: told by content, judged alike, and honest about what they lack."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from prefixguard.analysis import analyze
from prefixguard.exchange import Capture
from prefixguard.importers import open_source
from prefixguard.importers.foreign import format_of, read_foreign, which_format
from prefixguard.importers.told import Told
from prefixguard.proxy.understand import exchange_of
from prefixguard.turn import Analysis, Turn

FIXTURES = Path(__file__).parent.parent.parent / "fixtures" / "imports"
KINDS = {
    "chromium.har.gz": "har",
    "mitmproxy.har.gz": "har",
    "mitmproxy.flow.gz": "mitmproxy",
    "litellm-callback.jsonl.gz": "litellm",
    "litellm-spend.jsonl.gz": "litellm",
    "openai-v2.json": "otel",
    "openai-v2-without-content.json": "otel",
    "openinference-openai.json.gz": "otel",
    "openinference-anthropic.json.gz": "otel",
    "otlp-pydantic-ai.jsonl.gz": "otel",
    "otlp-openllmetry.jsonl": "otel",
    "otlp-javascript.json.gz": "otel",
    "phoenix-spans.json.gz": "otel",
    "phoenix-otlp.json.gz": "otel",
    "phoenix-table.jsonl.gz": "otel",
    "langfuse-spans.json": "otel",
    "langfuse-blob.jsonl": "langfuse",
    "langfuse-api.json": "langfuse",
    "claude-code.jsonl.gz": "claude-code",
    "claude-code-sub-agent.jsonl": "claude-code",
    "codex-rollout.jsonl": "codex",
    "mini-swe-agent.traj.json": "mini-swe-agent",
}


def read(name: str) -> tuple[list[Capture], Told]:
    path = FIXTURES / name
    rule = which_format(path, None)
    told = Told(name, rule.title)
    return list(read_foreign(path, rule, told)), told


@cache
def analysed(name: str) -> Analysis:
    return analyze(open_source(str(FIXTURES / name)))


def first_session(name: str) -> tuple[Turn, ...]:
    return analysed(name).sessions[0].turns


def test_every_sample_has_its_test() -> None:
    samples = {path.name for path in FIXTURES.iterdir()} - {"README.md"}
    assert samples == set(KINDS)


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_a_format_is_told_by_content(name: str, kind: str, tmp_path: Path) -> None:
    rule = format_of(FIXTURES / name)
    assert rule is not None
    assert rule.name == kind
    # The name says nothing.
    other = tmp_path / "something"
    other.write_bytes((FIXTURES / name).read_bytes())
    assert format_of(other) == rule


AGENT = [
    "chromium.har.gz", "mitmproxy.har.gz", "mitmproxy.flow.gz", "litellm-callback.jsonl.gz", "openai-v2.json",
    "openinference-openai.json.gz", "openinference-anthropic.json.gz", "otlp-pydantic-ai.jsonl.gz",
    "otlp-openllmetry.jsonl", "otlp-javascript.json.gz", "phoenix-spans.json.gz", "phoenix-otlp.json.gz",
    "phoenix-table.jsonl.gz", "langfuse-spans.json", "langfuse-blob.jsonl",
    "langfuse-api.json",
]  # fmt: skip


@pytest.mark.parametrize("name", AGENT)
def test_the_same_run_parts_at_the_same_place_whoever_recorded_it(name: str) -> None:
    turns = first_session(name)
    assert [turn.shape for turn in turns] == ["first", "append", "append", "changed"]
    assert [turn.is_break for turn in turns] == [False, False, False, True]
    (cause,) = [finding for finding in turns[3].findings if finding.primary]
    assert cause.code == "PG102"
    divergence = turns[3].divergence
    assert divergence is not None
    assert (divergence.against, "Monday" in divergence.before) == (2, True)
    # A call that was told by two spans, or logged twice, is one request.
    assert [turn.t for turn in turns] == sorted({turn.t for turn in turns})


REPORTED = [
    "mitmproxy.flow.gz", "mitmproxy.har.gz", "litellm-callback.jsonl.gz", "openinference-openai.json.gz",
    "otlp-openllmetry.jsonl", "langfuse-spans.json", "langfuse-api.json",
]  # fmt: skip


@pytest.mark.parametrize("name", REPORTED)
def test_figures_are_those_that_the_server_reported(name: str) -> None:
    usages = [turn.usage for turn in first_session(name) if turn.usage is not None]
    assert [usage.read for usage in usages] == [0, 1280, 1280, 0]
    assert usages[0].total == 1293
    # Four characters of the body are a token to the scripted server; the turns add little.
    assert all(0 < b.total - a.total < 40 for a, b in pairwise(usages))


def test_what_was_not_told_stays_unknown() -> None:
    # This instrumentation leaves the cached tokens out; pydantic-ai leaves out noughts.
    assert [turn.usage and turn.usage.read for turn in first_session("openai-v2.json")] == [None] * 4
    assert [turn.usage and turn.usage.read for turn in first_session("otlp-pydantic-ai.jsonl.gz")] == [
        None, 1280, 1280, None,
    ]  # fmt: skip
    # Chromium's page did not ask for the usage of its streams.
    assert [turn.usage is None for turn in first_session("chromium.har.gz")] == [False, True, False, True]


LOST = {
    "chromium.har.gz": (),
    "mitmproxy.flow.gz": (),
    "litellm-callback.jsonl.gz": ("order", "bytes", "headers"),
    "litellm-spend.jsonl.gz": ("prompt",),
    "openai-v2.json": ("tools", "parameters", "order", "bytes", "headers"),
    "openai-v2-without-content.json": ("prompt",),
    "openinference-openai.json.gz": ("bytes", "headers"),
    "otlp-openllmetry.jsonl": ("parameters", "order", "bytes", "headers"),
    "claude-code.jsonl.gz": ("prompt",),
    "codex-rollout.jsonl": ("prompt",),
    "mini-swe-agent.traj.json": ("tools", "parameters", "order", "bytes", "headers"),
}


@pytest.mark.parametrize(("name", "lost"), LOST.items())
def test_what_a_format_lost_is_said_once_and_shown_in_every_turn(name: str, lost: tuple[str, ...]) -> None:
    captures, told = read(name)
    assert set(told.lost) == set(lost)
    assert all(count == told.requests == len(captures) for count in told.lost.values())
    assert sum("not in the file" in line for line in told.lines()) == bool(lost)
    turns = [turn for session in analysed(name).sessions for turn in session.turns]
    assert {turn.unseen for turn in turns} == {lost}


@pytest.mark.parametrize("name", ["openai-v2.json", "mini-swe-agent.traj.json"])
def test_nothing_is_predicted_from_half_a_prompt(name: str) -> None:
    for turn in first_session(name):
        assert not turn.tokens.exact
        assert turn.usage is not None
        assert turn.tokens.prompt == turn.usage.total
        assert turn.cache is None or turn.cache.verdict != "more"


def test_without_prompts_no_break_is_seen_and_no_money_is_called_avoidable() -> None:
    for name, lost in LOST.items():
        if lost == ("prompt",):
            for session in analysed(name).sessions:
                assert session.totals.breaks == 0
                assert (session.totals.cost.ideal, session.totals.cost.avoidable) == (None, None)
                assert not any(turn.divergence for turn in session.turns)


@pytest.mark.parametrize("name", KINDS)
def test_secrets_are_masked(name: str) -> None:
    captures, _ = read(name)
    for capture in captures:
        assert "not-a-key" not in json.dumps([dict(capture.headers), dict(capture.response_headers)])
        assert capture.headers.get("authorization", "Bearer ***") in ("Bearer ***", "***")


@pytest.mark.parametrize("name", KINDS)
def test_a_request_has_one_identity(name: str) -> None:
    once, again = read(name)[0], read(name)[0]
    assert [capture.id for capture in once] == [capture.id for capture in again]
    assert len({capture.id for capture in once}) == len(once)


def test_times_are_seconds_and_timings_milliseconds() -> None:
    for name in ("chromium.har.gz", "mitmproxy.flow.gz", "openai-v2.json", "litellm-callback.jsonl.gz"):
        for capture in read(name)[0]:
            assert 1_796_000_000 < capture.t < 1_797_000_000
            total = capture.timing.total_ms
            assert total is not None
            assert 0 < total < 20_000


def test_a_websocket_holds_requests_of_its_own() -> None:
    for name, count in (("mitmproxy.flow.gz", 3), ("mitmproxy.har.gz", 3), ("chromium.har.gz", 1)):
        inside = [capture for capture in read(name)[0] if capture.transport == "websocket"]
        assert len(inside) == count
        for capture in inside:
            exchange = exchange_of(capture)
            assert exchange.response is not None
            assert json.loads(exchange.response)["usage"]["output_tokens"] == 8


def test_flows_and_archive_of_one_run_hold_the_same_bodies() -> None:
    flows, archive = read("mitmproxy.flow.gz")[0], read("mitmproxy.har.gz")[0]
    assert [capture.body for capture in flows] == [capture.body for capture in archive]
    assert [exchange_of(c).response for c in flows] == [exchange_of(c).response for c in archive]


def test_a_call_that_two_spans_tell_is_one() -> None:
    captures, told = read("openinference-anthropic.json.gz")
    assert len(captures) == 4
    assert told.aside["spans that tell a call a second time"] == 4
    assert all(capture.path == "/v1/messages" for capture in captures)
    # The outer span has the prompt, with the breakpoint that the agent set.
    assert all(b"cache_control" in capture.body for capture in captures)


def test_a_session_may_be_named(tmp_path: Path) -> None:
    path = FIXTURES / "litellm-callback.jsonl.gz"
    rule = which_format(path, None)
    captures = list(read_foreign(path, rule, Told("x"), "mine"))
    analysis = analyze(exchange_of(capture) for capture in captures)
    assert [session.id for session in analysis.sessions] == ["mine"]
