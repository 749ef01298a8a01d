"""Turns of records that hold less than the request: what is said of them, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.analysis import analyze
from prefixguard.exchange import Capture, Exchange
from prefixguard.partial import EVENT, LOST, THREAD, unseen
from prefixguard.proxy.understand import exchange_of
from prefixguard.sessions import session_key
from prefixguard.store import Store
from prefixguard.turn import Turn

RULES = " ".join(f"Rule {i}: keep it short and say why." for i in range(300))


def figures(t: float, read: int, written: int, **headers: str) -> Exchange:
    usage = {"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    return Exchange(
        t=t, path="/v1/messages", request=b'{"model":"claude-opus-4-6"}', upstream="https://api.anthropic.com",
        headers={LOST: "prompt", "x-prefixguard-session": "s", **headers},
        response=json.dumps({"usage": usage}).encode(),
    )  # fmt: skip


def asked(t: float, system: str, history: list[str], lost: str = "", usage: Any = None) -> Exchange:
    messages = [{"role": "system", "content": system}]
    messages += [
        {"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(history)
    ]
    response = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}}]}
    if usage is not None:
        response["usage"] = usage
    return Exchange(
        t=t, path="/v1/chat/completions", upstream="https://api.openai.com",
        request=json.dumps({"model": "gpt-4.1", "messages": messages}).encode(),
        headers={"x-prefixguard-session": "s", **({LOST: lost} if lost else {})},
        response=json.dumps(response).encode(),
    )  # fmt: skip


def turns(*exchanges: Exchange) -> tuple[Turn, ...]:
    (session,) = analyze(exchanges).sessions
    return session.turns


def test_what_the_header_says() -> None:
    assert unseen({}) == ()
    assert unseen({LOST: " tools, parameters ,,bytes"}) == ("tools", "parameters", "bytes")


def test_figures_alone_make_turns_without_claims() -> None:
    first, second = turns(figures(0, 0, 5000), figures(5, 5000, 100))
    assert (first.usage and first.usage.total, first.tokens.prompt) == (5003, 5003)
    assert first.cache is None
    assert second.cache is not None
    assert (second.cache.verdict, second.cache.read_low, second.cache.read_high) == (
        "as-predicted",
        5000,
        5000,
    )
    assert (second.shape, second.parent, second.is_break, second.divergence) == ("append", 0, False, None)
    assert (first.shape, first.parent) == ("first", None)


def test_threads_that_a_record_names_are_explained_apart() -> None:
    found = turns(
        figures(0, 0, 5000), figures(1, 0, 900, **{THREAD: "a"}), figures(2, 5000, 10),
        figures(3, 900, 10, **{THREAD: "a"}),
    )  # fmt: skip
    assert [turn.thread for turn in found] == [0, 1, 0, 1]
    assert not any(turn.findings for turn in found)


def test_a_compaction_that_a_record_tells_of() -> None:
    found = turns(figures(0, 0, 9000), figures(5, 4000, 5000, **{EVENT: "compaction"}))
    assert [finding.code for finding in found[1].findings] == ["PG303"]


def test_a_failed_request_is_no_step_of_a_series() -> None:
    failed = Exchange(
        t=1, path="/v1/messages", request=b"{}", status=529, upstream="https://api.anthropic.com",
        headers={LOST: "prompt", "x-prefixguard-session": "s"},
    )  # fmt: skip
    found = turns(figures(0, 0, 5000), failed, figures(5, 5000, 10))
    assert found[2].cache is not None
    assert found[2].cache.verdict == "as-predicted"


USAGES = [{"prompt_tokens": 9000, "prompt_tokens_details": {"cached_tokens": n}} for n in (0, 8960, 128)]


@pytest.mark.parametrize("lost", ["tools", "system", "breakpoints"])
def test_a_break_in_what_was_seen_stands_and_guesses_do_not(lost: str) -> None:
    found = turns(
        asked(0, f"{RULES} It is 10:00.", ["a"], lost, USAGES[0]),
        asked(5, f"{RULES} It is 10:00.", ["a", "done", "b"], lost, USAGES[1]),
        asked(9, f"It is 10:01. {RULES}", ["a", "done", "b", "done", "c"], lost, USAGES[2]),
    )  # fmt: skip
    assert [turn.is_break for turn in found] == [False, False, True]
    assert all(finding.primary for finding in found[2].findings)
    # The size is the server's, for the record holds only a part of it.
    assert [turn.tokens.prompt for turn in found] == [9000, 9000, 9000]
    assert not any(turn.tokens.exact for turn in found)
    assert found[1].cache is not None
    assert found[1].cache.verdict == "as-predicted"


def test_without_bytes_the_prediction_stays() -> None:
    whole = turns(asked(0, RULES, ["a"]), asked(5, RULES, ["a", "done", "b"]))
    told = turns(asked(0, RULES, ["a"], "bytes"), asked(5, RULES, ["a", "done", "b"], "bytes"))
    assert [turn.cache for turn in told] == [turn.cache for turn in whole]
    assert {turn.unseen for turn in told} == {("bytes",)}


@pytest.mark.parametrize("mode", ["full", "redacted", "hashes"])
def test_every_way_of_storing_keeps_what_a_record_lacks(mode: Any, tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite", mode=mode) as store:
        for i, exchange in enumerate((figures(0, 0, 5000), figures(5, 5000, 100))):
            capture = Capture(
                str(i), exchange.t, "POST", exchange.path, exchange.upstream or "", exchange.headers,
                exchange.request, 200, {"content-type": "application/json"}, exchange.response or b"",
            )  # fmt: skip
            store.append(capture, session_key(capture.headers, {}))
            assert exchange_of(capture).response == exchange.response
        (session,) = analyze(store.exchanges()).sessions
    assert {turn.unseen for turn in session.turns} == {("prompt",)}
    assert session.turns[1].cache is not None
    assert session.turns[1].cache.verdict == "as-predicted"
