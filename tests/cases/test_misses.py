"""Fewer tokens read than an append could have: time, place, races, lifetimes (PG6xx, PG804)."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from .agent import Talk, analysed, merged_log, prose
from .server import MarkServer, PrefixServer
from .verdicts import does_not_say, says, silent

HEAD = "You are the keeper of the yard. " + prose("miss head", 130)


def talk(api: str, rounds: int = 0, **fields: Any) -> Talk:
    made = Talk(api, system=[HEAD], **fields)
    for _ in range(rounds):
        made.work(1)
    return made


@pytest.mark.parametrize(
    ("api", "marks", "gap", "expired"),
    [
        ("anthropic", ("system", "last"), 406, True),
        ("anthropic", ("system", "last"), 290, False),
        ("anthropic", ("system", "last", "1h"), 406, False),
        ("anthropic", ("system", "last", "1h"), 3700, True),
        ("bedrock", ("system", "last"), 406, True),
        ("bedrock", ("system", "last"), 250, False),
    ],
)
def test_pause_against_the_lifetime(api: str, marks: tuple[str, ...], gap: int, expired: bool) -> None:
    agent = talk(api, 2, marks=marks)
    agent.user()
    agent.send(wait=gap)
    agent.turn()
    turns = agent.analysed()
    assert not [t for t in turns if t.is_break]
    if expired:
        assert says(turns[4], "PG601").by == "time"
        does_not_say([*turns[:4], turns[5]], "PG601")
    else:
        silent(turns)
    does_not_say(turns, "PG804")


@pytest.mark.parametrize("gap", [30, 1200])
def test_idle_on_a_service_without_a_promise(gap: int) -> None:
    """OpenAI keeps what is idle for minutes: a miss after a long pause is the time's doing."""
    agent = talk("openai-chat", 2, option="openai", server=PrefixServer("openai-chat", idle=300))
    agent.user()
    if gap == 30:
        agent.server.miss_next = 1  # type: ignore[union-attr]
    agent.send(wait=gap)
    turns = agent.analysed()
    assert not [t for t in turns if t.is_break]
    if gap == 30:
        assert says(turns[-1], "PG804").severity == "info"
    else:
        says(turns[-1], "PG601")


def test_miss_without_a_divergence_is_never_the_clients_fault() -> None:
    for api in ("openai-chat", "openai-responses", "gemini", "anthropic"):
        agent = talk(api, 2)
        agent.user()
        if isinstance(agent.server, MarkServer):
            agent.server.entries.clear()
        else:
            agent.server.miss_next = 1  # type: ignore[union-attr]
        agent.send()
        turns = agent.analysed()
        assert not [t for t in turns if t.is_break]
        found = says(turns[-1], "PG804")
        assert found.by == "server"
        assert found.severity == "info"


@pytest.mark.parametrize("what", ["account", "host"])
@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
def test_account_or_host_rotates(what: str, api: str) -> None:
    agent = talk(api, option="openai" if api == "openai-chat" else "anthropic")
    servers = [copy.deepcopy(agent.server) for _ in range(3)]
    for n in range(6):
        agent.server = servers[n % 3]
        if what == "account":
            agent.headers["x-upstream-account"] = f"acc-{n % 3}"
        else:
            agent.upstream = f"https://host{n % 3}.example.com"
        agent.turn()
    turns = agent.analysed()
    for turn in turns[1:]:
        says(turn, "PG604" if what == "account" else "PG603")
        assert not turn.is_break
    does_not_say(turns, "PG804")


@pytest.mark.parametrize("keyed", [True, False])
def test_parallel_requests_before_the_first_was_written(keyed: bool) -> None:
    server = MarkServer("anthropic")
    talks = []
    for i in range(4):
        agent = Talk(
            "anthropic",
            key=f"s-{i}" if keyed else None,
            system=[HEAD],
            seed=f"sib{i}",
            server=server,
            t=i * 0.05,
            system_style="blocks",
            marks=("system",),
        )
        agent.system = [HEAD]
        agent.user()
        agent.send(wait=0)
        talks.append(agent)
    turns = analysed(merged_log(*talks))
    assert not [t for t in turns if t.is_break]
    for turn in turns[1:]:
        says(turn, "PG605")
    does_not_say(turns, "PG804")


def test_asked_for_an_hour_and_got_five_minutes() -> None:
    agent = talk("anthropic", marks=("system", "last", "1h"), server=MarkServer("anthropic", honours=("5m",)))
    agent.turn()
    agent.turn()
    turns = agent.analysed()
    says(turns[0], "PG607")
    assert not [t for t in turns if t.is_break]


def test_hour_that_was_given_is_not_called_downgraded() -> None:
    agent = talk("anthropic", 2, marks=("system", "last", "1h"))
    does_not_say(agent.analysed(), "PG607")


def test_failed_request_leaves_nothing_in_the_cache() -> None:
    agent = talk("anthropic", 1)
    agent.user()
    agent.send(status=500, echo=False, usage=None, reply=False)
    agent.turn()
    silent(agent.analysed())


@pytest.mark.parametrize(("option", "code"), [("vllm", "PG602"), ("llama.cpp", "PG606")])
@pytest.mark.parametrize("others", [True, False])
def test_engine_lost_the_entry(option: str, code: str, others: bool) -> None:
    """With another session's prompts in between they are the likely reason; else nothing explains it."""
    grain = 16 if option == "vllm" else 1
    server = PrefixServer("openai-chat", grain=grain, minimum=1, tools_first=False)
    agent = talk("openai-chat", 2, option=option, server=server)
    guest = Talk("openai-chat", key="s-2", option=option, server=server, seed="guest", t=agent.t)
    if others:
        guest.turn()
    agent.t = guest.t
    agent.user()
    server.miss_next = 1
    agent.send()
    turns = analysed(merged_log(agent, guest), option)
    assert not [t for t in turns if t.is_break]
    says(turns[-1], code if others else "PG804")
    silent(turns[:-1])


def test_server_that_clears_old_results_is_not_the_clients_doing() -> None:
    agent = talk("anthropic", 3)
    agent.user()
    usage = {
        "input_tokens": 40,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 3100,
        "output_tokens": 9,
    }
    agent.send(usage=usage)
    response = json.loads(agent.log[-1].response or b"{}")
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 700}
    response["context_management"] = {"applied_edits": [edit]}
    agent.log[-1] = replace(agent.log[-1], response=json.dumps(response).encode())
    turns = agent.analysed()
    assert not [t for t in turns if t.is_break]
    assert says(turns[-1], "PG302").by == "server"
    does_not_say(turns, "PG804")
