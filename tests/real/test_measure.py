"""`measure` and `doctor` on real llama.cpp servers: predictions come true, and what does not is explained."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from prefixguard.cli.doctor import command as doctor
from prefixguard.cli.measure import command as measure_command
from prefixguard.engines import LaunchedServer, launch
from prefixguard.engines.replay import bench_for, measure
from prefixguard.errors import InputError, ServerError
from prefixguard.exchange import Exchange
from prefixguard.importers import write_log
from prefixguard.trial import Trial
from tests.real.changes import append, clock_at_the_start, tools_swapped
from tests.real.conftest import TEMPLATES, Servers
from tests.real.dialogue import Agent, agent_for
from tests.real.recorded import RULES, recorded
from tests.real.test_the_rule import Tape
from tests.real.tiny_shapes import write_tiny_latent, write_tiny_windowed


@contextmanager
def launched(model: Path, *options: str, slots: int = 1) -> Iterator[LaunchedServer]:
    with launch(
        model, template=TEMPLATES["tools"], threads=1, context=4096 * slots, slots=slots,
        options=("--metrics", *options),
    ) as server:  # fmt: skip
        yield server


def trial(server: LaunchedServer, exchanges: list[Exchange], *flags: str, **more: Any) -> Trial:
    model = server.engine.properties.model
    return measure(exchanges, bench_for(server.engine, model=model, flags=flags), **more)


def counts(result: Trial) -> list[tuple[str, str | None]]:
    return [(turn.verdict, turn.explanation) for turn in result.turns]


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize("play", [append, clock_at_the_start, tools_swapped])
def test_what_an_sdk_sent_is_predicted_on_every_turn(
    servers: Servers, api: str, play: Callable[[Agent], None]
) -> None:
    server = servers.any()
    tape = Tape()
    with httpx2.Client(transport=tape) as client:
        play(agent_for(api, server.url, stream=False, http_client=client))
    result = trial(server, tape.exchanges, repeat=2)
    assert (result.count("exact"), len(result.turns), result.skipped) == (
        len(tape.exchanges), len(tape.exchanges), (),
    )  # fmt: skip
    assert all(turn.exact_ids and len(turn.measured_each) == 2 for turn in result.turns)
    assert all(turn.first_token_ms is not None for turn in result.turns)
    breaks = [turn for turn in result.turns if turn.is_break]
    assert bool(breaks) == (play is not append)
    assert all(turn.break_ms is not None and turn.break_ms > 0 for turn in breaks)
    assert result.notes == ()


def test_two_sessions_fight_over_one_slot(servers: Servers) -> None:
    result = trial(servers.any(), recorded(3, names=("a", "b")))
    assert counts(result) == [("exact", None)] * 2 + [("exact", "PG606")] * 4
    before = result.turns[1]
    assert f"turn 1 had taken slot 0 and left {before.prompt_tokens:,} tokens in it" in result.turns[2].words


def test_a_request_that_forbids_reuse_reads_nothing(servers: Servers) -> None:
    result = trial(servers.any(), recorded(3, cache_prompt=False))
    assert [(t.predicted_low, t.predicted_high, t.measured) for t in result.turns] == [(0, 0, 0)] * 3


def test_latent_attention_on_two_slots(tmp_path: Path) -> None:
    with launched(write_tiny_latent(tmp_path / "m.gguf"), slots=2) as server:
        result = trial(server, recorded(3, names=("a", "b")), warm_up=1)
    assert (result.count("exact"), len(result.turns)) == (6, 6)
    assert result.engine.rule == "llama.cpp:slots=2"


def test_windows_keep_appends_and_explain_edits(tmp_path: Path) -> None:
    model = write_tiny_windowed(tmp_path / "m.gguf")
    session = recorded(6, edited=4)
    with launched(model, "-ub", "64") as server:
        kept = trial(server, session, "-ub", "64")
    with launched(model, "--swa-full") as server:
        whole = trial(server, session, "--swa-full")
    assert counts(kept)[:4] == [("exact", None)] * 4
    assert counts(kept)[4] == ("inside", "PG702")
    assert kept.turns[4].predicted_low <= kept.turns[4].measured < kept.turns[4].predicted_high
    assert counts(whole)[:5] == [("exact", None)] * 5
    # Behind the edit the slot holds another branch where the server broke its stream off: still exact.
    assert counts(whole)[5][0] == "exact"
    assert whole.turns[4].measured == kept.turns[4].predicted_high
    assert (kept.engine.windowed, whole.engine.windowed) == (True, False)


def test_the_host_cache_gives_more_and_is_named(servers: Servers) -> None:
    with launched(servers.model, "--cache-ram", "64") as server:
        # An unrelated prompt takes the slot; then the first session comes back.
        first, other = recorded(2, names=("a",)), recorded(1, names=("b",))
        other = [
            Exchange(e.t + 10, e.path, e.request.replace(RULES.encode(), b"be brief. " * 60), e.headers)
            for e in other
        ]
        again = [Exchange(20.0, e.path, e.request, e.headers) for e in first[1:]]
        result = trial(server, [*first, *other, *again])
    assert [turn.verdict for turn in result.turns[:3]] == ["exact"] * 3
    last = result.turns[3]
    assert last.verdict == "more"
    assert last.measured == last.prompt_tokens - 1
    assert "--cache-ram" in last.words


def test_json_and_text_through_the_commands(servers: Servers, tmp_path: Path) -> None:
    server = servers.any()
    log = tmp_path / "log.jsonl"
    odd = Exchange(99.0, "/v1beta/models/gemini:generateContent", b'{"contents": []}')
    with log.open("wb") as file:
        write_log([*recorded(5, edited=3), odd], file)
    done = CliRunner().invoke(
        measure_command, [str(log), "--server", server.url, "--format", "json"], catch_exceptions=False
    )
    told = json.loads(done.stdout)
    assert (told["schema"], told["exact"], told["of"]) == ("prefixguard-measure/1", 5, 5)
    assert told["engine"]["kind"] == "llama.cpp"
    assert told["engine"]["version"] == server.engine.properties.build
    assert [s["index"] for s in told["skipped"]] == [5]
    for turn in told["turns"]:
        assert turn["predicted_low"] == turn["predicted_high"] == turn["measured_cached"]
        assert turn["prefill_ms"] > 0
    text = CliRunner().invoke(measure_command, [str(log), "--server", server.url], env={"COLUMNS": "150"})
    assert "5 of 5 turns exactly as predicted" in text.stdout
    assert "gemini" in text.stdout

    plain, asked = (
        json.loads(CliRunner().invoke(doctor, ["--server", server.url, "--format", "json", *more]).stdout)
        for more in ([], ["--probe"])
    )
    found = [{r["topic"]: r["severity"] for r in told["remarks"]} for told in (plain, asked)]
    assert found[0]["reuse"] == found[0]["host-cache"] == "unknown"
    assert (found[1]["reuse"], found[1]["host-cache"], asked["problems"]) == ("ok", "problem", 1)
    assert found[0]["windows"] == "ok"


def test_a_server_launched_by_the_command(servers: Servers, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with log.open("wb") as file:
        write_log(recorded(3, clock=True), file)
    done = CliRunner().invoke(
        measure_command,
        [
            str(log), "--launch", "llama.cpp", "--model", str(servers.model), "--threads", "1",
            "--slots", "2", "--chat-template", str(TEMPLATES["tools"]), "--format", "json",
            "--", "-ub", "128",
        ],
        catch_exceptions=False,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["exact"], told["of"], told["breaks"]["turns"]) == (3, 3, 2)
    assert told["engine"]["rule"] == "llama.cpp:slots=2"
    assert told["engine"]["flags"][-2:] == ["-ub", "128"]
    assert told["fit"] is None


def test_wrong_input_says_what_to_do(servers: Servers, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"t": 0, "path": "/v1/models", "request": {}}\n')
    for arguments, error, words in (
        ([], InputError, "--server URL"),
        (["--launch", "llama.cpp"], InputError, "--model PATH"),
        (["--launch", "llama.cpp", "--model", "m", "--kv-events", "tcp://*:1"], InputError, "for vLLM"),
        (["--server", servers.any().url, "--kv-events", "tcp://*:1"], InputError, "vLLM does"),
        (["--server", "http://127.0.0.1:9"], ServerError, "does not answer"),
        (["--server", servers.any().url], InputError, "could be asked again"),
        (["--server", servers.any().url, "--", "--swa-full"], InputError, "launched"),
    ):
        done = CliRunner().invoke(measure_command, [str(log), *arguments])
        assert isinstance(done.exception, error), done.output
        assert words in str(done.exception)
        assert "\n" not in str(done.exception)
