"""The whole way: a real SDK, the recording proxy, a real server, the store, the analysis.

For every kind of change, on every API, streamed and whole, the analysis must
predict the very number of cached tokens that the server reports, on every turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from prefixguard.analysis import Fold
from prefixguard.engines import LaunchedServer
from prefixguard.store import Store
from prefixguard.turn import Turn
from tests.real.changes import CHANGES
from tests.real.conftest import Servers, emptied
from tests.real.dialogue import SPEAKERS, Agent, Counted, agent_for

type Change = Callable[[Agent], None]
type Seen = tuple[Turn, dict[str, Any]]
"""A turn of the stored record, analysed, and the event that the proxy printed of it."""
type Played = dict[str, list[tuple[Seen, Counted]]]

EMPTYING = Counted("", 3, 0, 1)
"""Goes before every change: a prompt that shares nothing with any other."""


@contextmanager
def recording_proxy(server: LaunchedServer, store: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a proxy before `server`, and the events that it prints: complete at the end."""
    command = [sys.executable, "-c", "from prefixguard.cli import main; main()"]
    options = ["proxy", "--listen", "127.0.0.1:0", "--format", "json", "--upstream", server.url]
    environment = {**os.environ, "XDG_DATA_HOME": str(store.parent)}
    events: list[dict[str, Any]] = []
    with subprocess.Popen(
        [*command, *options, "--store", str(store)],
        stdout=subprocess.PIPE, text=True, env=environment,
    ) as proxy:  # fmt: skip
        assert proxy.stdout is not None
        printed: Iterator[dict[str, Any]] = map(json.loads, proxy.stdout)
        opening = next(event for event in printed if event["type"] == "listening")
        reading = threading.Thread(target=lambda: events.extend(printed))
        reading.start()
        try:
            yield opening["url"], events
        finally:
            proxy.terminate()
            reading.join()
            assert proxy.wait() == 0
    assert events[-1]["type"] == "stopped"
    assert not [event for event in events if event["type"] in ("lost", "trouble")]


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
    with recording_proxy(server, store) as (url, events):
        for number, change in enumerate(CHANGES, start=list(SPEAKERS).index(api)):
            emptied(url)
            # Streams and whole responses take turns, and on each API the other way round.
            agent = agent_for(api, url, stream=number % 2 == 1)
            change(agent)
            counted.append((change.__name__, [EMPTYING, *agent.counted]))
    with Store.open(store) as record:
        exchanges = list(record.exchanges())
    fold = Fold()
    turns = [fold.step(exchange) for exchange in exchanges]
    live = {event["id"]: event for event in events if event["type"] == "turn"}
    seen = [
        (turn, live[exchange.extra["id"].decode().strip('"')])
        for exchange, turn in zip(exchanges, turns, strict=True)
        # The server closes a connection behind a stream without a word. Where a request crosses that
        # on its way, the SDK asks again, as it does in life.
        if turn.status == 200
    ]
    assert len(seen) == sum(len(each) for _, each in counted)
    found: Played = {}
    for name, each in counted:
        found[name], seen = list(zip(seen[: len(each)], each, strict=True))[1:], seen[len(each) :]
    return found


@pytest.mark.parametrize("api", SPEAKERS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_analysis_predicts_what_the_server_reads(
    played: Callable[[str], Played], api: str, change: Change
) -> None:
    for (turn, live), counted in played(api)[change.__name__]:
        assert turn.cache is not None
        assert turn.usage is not None
        assert (turn.cache.read_low, turn.cache.read_high) == (counted.cached, counted.cached)
        assert (turn.cache.reported_read, turn.cache.verdict) == (counted.cached, "as-predicted")
        assert (turn.tokens.prompt, turn.usage.output) == (counted.prompt, counted.generated)
        assert (turn.tokens.method, turn.tokens.exact) == ("server", True)
        # What was printed while the agent ran says the same.
        assert (live["read_low"], live["read_high"], live["verdict"]) == (
            counted.cached, counted.cached, "as-predicted",
        )  # fmt: skip
