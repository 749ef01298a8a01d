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
from tests.real.dialogue import Agent, Counted, agent_for

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
def played(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Played]:
    """All changes through one proxy, by API and transport; each combination is played once."""

    outcomes: dict[tuple[str, bool], Played | Exception] = {}

    def play(api: str, stream: bool) -> Played:
        key = (api, stream)
        if key not in outcomes:
            try:
                outcomes[key] = _played(servers.any(), tmp_path_factory.mktemp("record") / "record.db", *key)
            except Exception as error:  # said by each test of this group, without playing it again
                outcomes[key] = error
        outcome = outcomes[key]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return play


def _played(server: LaunchedServer, store: Path, api: str, stream: bool) -> Played:
    counted: list[tuple[str, list[Counted]]] = []
    with recording_proxy(server, store) as url:
        for change in CHANGES:
            emptied(server)
            agent = agent_for(api, url, stream=stream)
            change(agent)
            counted.append((change.__name__, agent.counted))
    with Store.open(store) as record:
        exchanges = list(render_exchanges(record.exchanges(), server.url))
    assert len(exchanges) == sum(len(each) for _, each in counted)
    found: Played = {}
    for name, each in counted:
        found[name], exchanges = (exchanges[: len(each)], each), exchanges[len(each) :]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_analysis_predicts_what_the_server_reads(
    played: Callable[[str, bool], Played], api: str, stream: bool, change: Change
) -> None:
    exchanges, counted = played(api, stream)[change.__name__]
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
