"""A reply that splits into other tokens when it is sent back, on a real server (PG704)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from prefixguard.analysis import analyze
from prefixguard.engines import LaunchedServer, launch
from prefixguard.engines.client import JsonClient
from prefixguard.exchange import Exchange
from prefixguard.options import Options
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Turn
from tests.real.conftest import TEMPLATES, emptied
from tests.real.tiny_model import byte_letters, write_scripted_llama

# The model says " the" letter by letter; its vocabulary has one token for it.
LETTERS = ("I", byte_letters()[ord(" ")], "t", "h", "e", "X")
WORDS = "you are careful and you answer questions about the weather. " * 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    model = write_scripted_llama(
        tmp_path_factory.mktemp("m") / "m.gguf", "{{ messages[0].content }}", LETTERS
    )
    with launch(model, template=TEMPLATES["tools"], threads=1, context=2048) as started:
        yield started


def asked(server: LaunchedServer, *, echo: str | None = None) -> list[Turn]:
    """Two turns of a conversation. echo: what the client makes of the reply; None for what it was."""
    client, exchanges = JsonClient(server.url), []
    emptied(server.url)
    messages = [{"role": "system", "content": WORDS}, {"role": "user", "content": "what is it?"}]
    for number in range(2):
        body = {"messages": list(messages), "max_tokens": 12, "temperature": 0}
        answer = client.timed("/v1/chat/completions", msgspec.json.encode(body))
        exchange = Exchange(
            float(number), "/v1/chat/completions", msgspec.json.encode(body), response=answer.body
        )
        exchanges.append(exchange)
        said = msgspec.json.decode(answer.body)["choices"][0]["message"]["content"]
        messages += [
            {"role": "assistant", "content": said if echo is None else echo},
            {"role": "user", "content": "and then?"},
        ]
    engine = server.engine
    rendered = [
        Exchange(e.t, e.path, e.request, response=e.response, rendered=engine.render(e)) for e in exchanges
    ]
    (session,) = analyze(rendered, Rulebook(), Options(server="llama.cpp:slots=1")).sessions
    return list(session.turns)


def test_the_turn_behind_the_reply_says_so(server: LaunchedServer) -> None:
    first, second = asked(server)
    (found,) = [f for f in second.findings if f.code == "PG704"]
    assert not [f for f in first.findings if f.code == "PG704"]
    # "I" comes back as it was; " the" does not. The very last sampled token is never kept.
    assert found.message.startswith("1 of the ")
    assert (found.by, found.severity, second.is_break) == ("server", "info", False)


def test_another_text_is_another_cause(server: LaunchedServer) -> None:
    _, second = asked(server, echo="it rains")
    assert not [f for f in second.findings if f.code == "PG704"]
