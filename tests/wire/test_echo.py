"""A reply becomes the segments that a client sends back: a turn that echoes it is an append."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from prefixguard.analysis import Fold
from prefixguard.exchange import Exchange
from prefixguard.rulebook import Rulebook
from prefixguard.wire.decoder import Decoder
from prefixguard.wire.streams import assemble

from .transcripts import DIALECTS, PATHS, Answer

RULEBOOK = Rulebook()
LONG = "An answer of some length, so that it is known again when it comes back in the next request."
ANSWER = Answer(text=LONG, calls=(("call_1", "read_file", {"path": "src/a.py"}),))


def echoed(name: str, whole: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A first request, and the next one: the reply as clients send it back, and a tool result or question."""
    match name:
        case "openai-chat" | "ollama":
            first = [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Read the file a for me."},
            ]
            answer = whole["choices"][0]["message"] if name == "openai-chat" else whole["message"]
            more = [answer, {"role": "tool", "tool_call_id": "call_1", "content": "the file"}]
            return {"model": "m", "messages": first}, {"model": "m", "messages": [*first, *more]}
        case "anthropic":
            asked = [{"role": "user", "content": "Read the file a for me."}]
            result = {"type": "tool_result", "tool_use_id": "call_1", "content": "the file"}
            more = [{"role": "assistant", "content": whole["content"]}, {"role": "user", "content": [result]}]
            return {"model": "m", "messages": asked}, {"model": "m", "messages": [*asked, *more]}
        case "openai-responses":
            asked = [{"role": "user", "content": "Read the file a for me."}]
            more = [
                *whole["output"],
                {"type": "function_call_output", "call_id": "call_1", "output": "the file"},
            ]
            return {"model": "m", "input": asked}, {"model": "m", "input": [*asked, *more]}
        case "gemini":
            asked = [{"role": "user", "parts": [{"text": "Read the file a for me."}]}]
            answer = {"functionResponse": {"name": "read_file", "response": {"output": "the file"}}}
            more = [whole["candidates"][0]["content"], {"role": "user", "parts": [answer]}]
            return {"contents": asked}, {"contents": [*asked, *more]}
        case "bedrock":
            asked = [{"role": "user", "content": [{"text": "Read the file a for me."}]}]
            result = {"toolResult": {"toolUseId": "call_1", "content": [{"text": "the file"}]}}
            more = [whole["output"]["message"], {"role": "user", "content": [result]}]
            return {"messages": asked}, {"messages": [*asked, *more]}
    prompt = "Once upon a time there was a file that nobody had read in years, and then"
    text = whole["choices"][0]["text"] if name == "completions" else whole["content"]
    return {"prompt": prompt}, {"prompt": prompt + text + " And what came next?"}


NAMES = [name for name in DIALECTS if name not in ("openai-responses-cut", "gemini-array")]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_turn_that_echoes_the_reply_is_an_append(name: str, streamed: bool) -> None:
    kind, stream, whole = DIALECTS[name](ANSWER)
    response = assemble(stream, kind) if streamed else json.dumps(whole).encode()
    before, after = echoed(name, whole)
    fold = Fold(RULEBOOK)
    fold.step(Exchange(0.0, PATHS[name], json.dumps(before).encode(), response=response))
    turn = fold.step(Exchange(5.0, PATHS[name], json.dumps(after).encode()))
    assert (turn.shape, turn.parent, turn.is_break) == ("append", 0, False)
    assert not any(f.code == "PG307" for f in turn.findings)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("completions", "llamacpp")])
def test_reply_has_the_identities_of_its_echo(name: str) -> None:
    _, _, whole = DIALECTS[name](ANSWER)
    before, after = echoed(name, whole)
    decoder = Decoder({})
    exchange = Exchange(0.0, PATHS[name], json.dumps(before).encode(), response=json.dumps(whole).encode())
    reply = decoder.reply(exchange)
    n = len(decoder.prompt(exchange).history)
    history = decoder.prompt(dataclasses.replace(exchange, request=json.dumps(after).encode())).history
    assert reply
    assert [s.exact for s in reply] == [s.exact for _, s in history[n : n + len(reply)]]
    assert [s.kind.value for s in reply] == [
        "reasoning",
        "text",
        "tool-call",
        *(["reasoning"] if name == "gemini" else []),
    ]
