"""The whole way: a real SDK, the recording proxy, a real server, the store, the analysis.

For every kind of change, on every API, streamed and whole, the analysis must
predict the very number of cached tokens that the server reports, on every turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prefixguard.analysis import Fold
from prefixguard.engines import LaunchedServer, render_exchanges
from prefixguard.exchange import Exchange
from prefixguard.store import Store
from tests.real.changes import CHANGES
from tests.real.conftest import Servers, emptied
from tests.real.dialogue import SPEAKERS, Agent, Counted, agent_for

type Change = Callable[[Agent], None]
type Played = dict[str, tuple[list[Exchange], list[Counted]]]


@contextmanager
def recording_proxy(server: LaunchedServer, store: Path) -> Iterator[str]:
    """The address of a proxy before `server`; all that passed is in `store` at the end."""
    command = [sys.executable, "-c", "from prefixguard.cli import main; main()"]
    options = ["proxy", "--listen", "127.0.0.1:0", "--format", "json", "--upstream", server.url]
    environment = {**os.environ, "XDG_DATA_HOME": str(store.parent)}
    with subprocess.Popen(
        [*command, *options, "--store", str(store)],
        stdout=subprocess.PIPE, text=True, env=environment,
    ) as proxy:  # fmt: skip
        assert proxy.stdout is not None
        events: Iterator[dict[str, Any]] = map(json.loads, proxy.stdout)
        opening = next(event for event in events if event["type"] == "listening")
        try:
            yield opening["url"]
        finally:
            proxy.terminate()
            rest = list(events)
            assert proxy.wait() == 0
    assert rest[-1]["type"] == "stopped"
    assert not [event for event in rest if event["type"] in ("lost", "trouble")]


@pytest.fixture(scope="module")
def played(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Played]:
    """All changes on one API through one proxy, played when they are first asked for."""
    outcomes: dict[str, Played | Exception] = {}

    def play(api: str) -> Played:
        if api not in outcomes:
            try:
                outcomes[api] = _played(servers.any(), tmp_path_factory.mktemp("record") / "record.db", api)
            except Exception as error:  # said by each test of this API, without playing it again
                outcomes[api] = error
        outcome = outcomes[api]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return play


def _played(server: LaunchedServer, store: Path, api: str) -> Played:
    counted: list[tuple[str, list[Counted]]] = []
    with recording_proxy(server, store) as url:
        for number, change in enumerate(CHANGES, start=list(SPEAKERS).index(api)):
            emptied(server)
            # Streams and whole responses take turns, and on each API the other way round.
            agent = agent_for(api, url, stream=number % 2 == 1)
            change(agent)
            counted.append((change.__name__, agent.counted))
    with Store.open(store) as record:
        # The server closes a connection behind a stream without a word. Where a request crosses that
        # on its way, the SDK asks again, as it does in life.
        exchanges = [e for e in render_exchanges(record.exchanges(), server.url) if e.status == 200]
    assert len(exchanges) == sum(len(each) for _, each in counted)
    found: Played = {}
    for name, each in counted:
        found[name], exchanges = (exchanges[: len(each)], each), exchanges[len(each) :]
    return found


@pytest.mark.parametrize("api", SPEAKERS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_analysis_predicts_what_the_server_reads(
    played: Callable[[str], Played], api: str, change: Change
) -> None:
    exchanges, counted = played(api)[change.__name__]
    fold = Fold()
    turns = [fold.step(exchange) for exchange in exchanges]
    assert all(turn.cache for turn in turns)
    assert [(turn.cache.read_low, turn.cache.read_high) for turn in turns if turn.cache] == [
        (each.cached, each.cached) for each in counted
    ]
    assert [turn.cache.reported_read for turn in turns if turn.cache] == [each.cached for each in counted]
    assert {turn.cache.verdict for turn in turns if turn.cache} == {"as-predicted"}
    assert [turn.tokens.prompt for turn in turns] == [each.prompt for each in counted]
    assert {(turn.tokens.method, turn.tokens.exact) for turn in turns} == {("server", True)}
    assert all(
        turn.usage and turn.usage.output == each.generated for turn, each in zip(turns, counted, strict=True)
    )
