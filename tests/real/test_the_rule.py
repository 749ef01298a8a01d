"""The rule of llama.cpp's prompt cache, on real servers: predicted equals reported, on every turn.

Here the SDK talks to the server itself, and the prediction uses nothing but the
renderer: it shows that bodies are converted, rendered and tokenised exactly as
the server does it. What the analysis makes of it is tested behind the proxy.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import httpx2
import pytest

from prefixguard.engines import LaunchedServer
from prefixguard.exchange import Exchange, Rendered
from prefixguard.rendering.ids import common_prefix
from prefixguard.wire.streams import assemble
from tests.real.changes import CHANGES
from tests.real.conftest import BUILDS, Servers, emptied
from tests.real.dialogue import SPEAKERS, Agent, agent_for


class Tape(httpx2.BaseTransport):
    """Records each exchange of an SDK as the proxy would."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        # The server closes a connection behind a stream without saying so: none is used twice.
        self._wire = httpx2.HTTPTransport(limits=httpx2.Limits(max_keepalive_connections=0))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._wire.handle_request(request)
        body = response.read()
        told = assemble(body, response.headers["content-type"])
        self.exchanges.append(
            Exchange(0.0, request.url.path, request.content, response=told, status=response.status_code)
        )
        return httpx2.Response(response.status_code, headers=response.headers, content=body)


class Slot:
    """A slot of the server: what it has decoded, and so what the next prompt can reuse."""

    def __init__(self) -> None:
        self.state = array("i")

    def take(self, rendered: Rendered) -> int:
        """The cached tokens of a prompt; afterwards the slot holds it and its reply."""
        cached = min(common_prefix(self.state, rendered.prompt), len(rendered.prompt) - 1)
        self.state = rendered.prompt + (rendered.reply or array("i"))
        return cached


def recorded(
    server: LaunchedServer, api: str, *, stream: bool, play: Callable[[Agent], object]
) -> tuple[Agent, Tape]:
    emptied(server.url)
    tape = Tape()
    with httpx2.Client(transport=tape) as client:
        agent = agent_for(api, server.url, stream=stream, http_client=client)
        play(agent)
    assert len(tape.exchanges) == len(agent.counted)
    return agent, tape


def _cases() -> Iterator[tuple[str, str, bool, Callable[[Agent], None]]]:
    """Every change on every API: the builds take turns, and so do streams and whole responses."""
    for i, change in enumerate(CHANGES):
        for j, api in enumerate(SPEAKERS):
            yield BUILDS[(i + j) % 2], api, (i // 2 + j) % 2 == 1, change


def _name(case: object) -> str:
    if isinstance(case, bool):
        return "stream" if case else "whole"
    return case if isinstance(case, str) else getattr(case, "__name__", "")


@pytest.mark.parametrize(("build", "api", "stream", "change"), list(_cases()), ids=_name)
def test_every_turn_reads_what_the_rule_says(
    servers: Servers, build: str, api: str, stream: bool, change: Callable[[Agent], None]
) -> None:
    server = servers.get(build)
    agent, tape = recorded(server, api, stream=stream, play=change)
    slot = Slot()
    predicted, sizes, replies = [], [], []
    for exchange, counted in zip(tape.exchanges, agent.counted, strict=True):
        rendered = server.engine.render(exchange)
        assert rendered is not None, server.engine.problem
        assert rendered.reply is not None
        predicted.append(slot.take(rendered))
        sizes.append(len(rendered.prompt))
        replies.append(len(rendered.reply) == counted.generated - 1)
    assert sizes == [counted.prompt for counted in agent.counted]
    assert predicted == [counted.cached for counted in agent.counted]
    assert all(replies)
