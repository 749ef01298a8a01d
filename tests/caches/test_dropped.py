"""What a server takes out of a prompt is no break there, and one everywhere else."""

from __future__ import annotations

import json

import pytest

from prefixguard.analysis import analyze
from prefixguard.exchange import Exchange
from prefixguard.turn import Turn

RULES = "You look after a small project and its notes. " * 200


def turns(upstream: str | None, *, server: str | None = None, place: int = 0, more: str = "") -> list[Turn]:
    """A conversation whose attribution block changes each time. place: of it. more: text behind it."""
    log = []
    messages: list[dict[str, str]] = []
    for n in range(4):
        messages += [{"role": "user", "content": f"Question {n}."}]
        block = {
            "type": "text",
            "text": f"x-anthropic-billing-header: cc_version=2.1; cch={n}a{n}b{n};{more}",
        }
        system: list[dict[str, object]] = [
            {"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}
        ]
        system.insert(place, block)
        body = {"model": "claude-sonnet-4-5", "system": system, "messages": messages, "max_tokens": 9}
        log.append(
            Exchange(float(n), "/v1/messages", json.dumps(body).encode(), status=200, upstream=upstream)
        )
        messages = [*messages, {"role": "assistant", "content": f"Answer {n}."}]
    (session,) = analyze(log, server=server).sessions
    return list(session.turns)


@pytest.mark.parametrize(
    ("upstream", "server"),
    [
        ("https://api.anthropic.com", None),
        (None, None),
        ("http://127.0.0.1:8000", "vllm"),
        ("http://127.0.0.1:8080", "llama.cpp"),
    ],
)
def test_a_block_that_the_server_drops(upstream: str | None, server: str | None) -> None:
    found = turns(upstream, server=server)
    assert [t.shape for t in found] == ["first", "append", "append", "append"]
    assert not any(t.is_break or t.findings for t in found)


@pytest.mark.parametrize(
    ("upstream", "server", "place"),
    [
        ("https://gateway.example", None, 0),
        ("http://127.0.0.1:8080", "sglang", 0),
        ("https://api.anthropic.com", None, 1),
    ],
)
def test_a_block_that_is_read(upstream: str, server: str | None, place: int) -> None:
    found = turns(upstream, server=server, place=place)
    if place:
        # Behind the text that is marked it costs next to nothing, but it is seen.
        assert [t.divergence.pointer for t in found[1:] if t.divergence] == ["/system/1/text"] * 3
        return
    assert [t.is_break for t in found] == [False, True, True, True]
    assert {f.code for t in found[1:] for f in t.findings if f.primary} == {"PG104"}
    assert found[1].divergence is not None
    assert found[1].divergence.pointer == "/system/0/text"


def test_more_than_the_block_is_not_dropped() -> None:
    found = turns("https://api.anthropic.com", more=RULES)
    assert [t.is_break for t in found] == [False, True, True, True]
