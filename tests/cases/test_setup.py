"""How a request is set up for caching (PG5xx), and figures that say nothing or too much (PG8xx, PG706)."""

from __future__ import annotations

from typing import Any

import pytest

from .agent import Message, Talk, analysed, call, merged_log, prose, result, text, tool
from .bodies import APIS
from .server import MarkServer, PrefixServer
from .verdicts import breaks, does_not_say, says, silent, told

HEAD = "You are the keeper of the yard. " + prose("setup head", 130)
NEW = {"model": "gpt-6-sol", "option": "openai-5.6"}


def talk(api: str, rounds: int = 0, **fields: Any) -> Talk:
    fields.setdefault("system", [HEAD])
    made = Talk(api, **fields)
    for _ in range(rounds):
        made.work(1)
    return made


@pytest.mark.parametrize("where", ["system", "last"])
def test_breakpoint_on_a_block_that_changes(where: str) -> None:
    agent = talk(
        "anthropic",
        system=[HEAD, "The clock says 10:00:00."],
        marks=("system",) if where == "system" else ("last",),
    )
    stored: list[Message] = []
    for n in range(4):
        if where == "system":
            agent.system[1] = f"The clock says 10:0{n}:11."
            agent.user()
            agent.step_with_tool()
        else:
            question = text(prose(f"q {n}", 6))
            agent.messages = [
                *stored,
                Message("user", [question, text(f"<now>10:0{n}:11 {prose(f'now {n}', 3)}</now>")]),
            ]
            agent.send(echo=False)
            stored = [*stored, Message("user", [question]), Message("assistant", agent.answer)]
    for turn in agent.analysed()[1:]:
        says(turn, "PG501")
        assert turn.is_break, told(turn)


@pytest.mark.parametrize("api", ["anthropic"])
def test_more_breakpoints_than_the_api_takes(api: str) -> None:
    agent = talk(api, marks=("tools", "system"))
    n = 0

    def mark_all(body: dict[str, Any]) -> None:
        for message in body["messages"]:
            if message["role"] == "user":
                message["content"][-1]["cache_control"] = {"type": "ephemeral"}

    agent.edit = mark_all
    for n in range(4):
        agent.user()
        agent.send(status=400 if n >= 2 else 200)
        if n >= 2:
            agent.messages.append(Message("assistant", [text("again")]))
    turns = agent.analysed()
    assert says(turns[2], "PG502").pointer.startswith("/messages/")
    does_not_say(turns[:2], "PG502")
    assert not [t for t in turns if t.is_break]


@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
def test_no_breakpoint_at_all(api: str) -> None:
    agent = talk(api, 2, marks=())
    turns = agent.analysed()
    assert [t.index for t in turns if any(f.code == "PG503" for f in t.findings)] == [1]
    assert not [t for t in turns if t.is_break]


@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
def test_breakpoints_stay_near_the_front(api: str) -> None:
    agent = talk(api, marks=("system",))
    for _ in range(6):
        agent.user()
        agent.step_with_tool()
    turns = agent.analysed()
    assert any(f.code == "PG504" for t in turns for f in t.findings), [told(t) for t in turns]
    assert not [t for t in turns if t.is_break]


def test_breakpoint_only_on_the_first_messages() -> None:
    agent = talk("anthropic", marks=("system",))

    def first_two(body: dict[str, Any]) -> None:
        for message in body["messages"][:2]:
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}

    agent.edit = first_two
    for _ in range(6):
        agent.user()
        agent.step_with_tool()
    assert any(f.code == "PG504" for t in agent.analysed() for f in t.findings)


@pytest.mark.parametrize("api", ["anthropic", "bedrock"])
@pytest.mark.parametrize("calls", [8, 14])
def test_more_blocks_than_the_lookback(api: str, calls: int) -> None:
    """Parallel calls add two blocks each: 14 of them put the last entry out of reach."""
    agent = talk(api, 1)
    agent.user()
    agent.send(*[call(f"p{i}") for i in range(calls)])
    agent.tool_result(*[result(f"p{i}", sentences=2) for i in range(calls)])
    agent.send()
    agent.turn()
    turns = agent.analysed()
    if calls == 14:
        says(turns[3], "PG505")
        assert not turns[3].is_break
        does_not_say([*turns[:3], *turns[4:]], "PG505")
        does_not_say(turns, "PG804")
    else:
        silent(turns)


def test_long_lifetime_after_a_short_one() -> None:
    agent = talk("anthropic", marks=())

    def order(body: dict[str, Any]) -> None:
        body["system"] = [{"type": "text", "text": HEAD, "cache_control": {"type": "ephemeral"}}]
        body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}

    agent.edit = order
    agent.turn()
    agent.turn()
    turns = agent.analysed()
    assert says(turns[0], "PG506")


@pytest.mark.parametrize(
    ("api", "fields"),
    [
        ("openai-chat", {"option": "openai"}),
        ("anthropic", {"option": "anthropic"}),
        ("gemini", {}),
        ("anthropic", {"model": "claude-opus-4-5"}),
        ("openai-responses", NEW),
    ],
)
def test_below_the_minimum(api: str, fields: dict[str, Any]) -> None:
    agent = Talk(api, system=["You answer in one line."], tools=[tool("now", 1, ())], **fields)
    agent.extra["prompt_cache_key"] = "k"
    for _ in range(3):
        agent.user("And then?")
        agent.send(text("Nothing more."))
    turns = agent.analysed()
    assert any(f.code == "PG507" for t in turns for f in t.findings)
    silent(turns, but=("PG503",))


def test_below_the_minimum_a_changing_clock_breaks_nothing() -> None:
    agent = Talk("openai-chat", system=["It is 10:00:00."], tools=[tool("now", 1, ())], option="openai")
    for n in range(3):
        agent.system = [f"It is 10:00:0{n}. You answer in one line."]
        agent.user("And then?")
        agent.send(text("Nothing more."))
    turns = agent.analysed()
    assert not [t for t in turns if t.is_break]


@pytest.mark.parametrize("fields", [{"option": "openai"}, NEW])
def test_routing_key_changes_on_each_request(fields: dict[str, Any]) -> None:
    agent = talk("openai-responses", **fields)
    for n in range(4):
        agent.extra["prompt_cache_key"] = f"req-{n}"
        agent.turn()
    turns = agent.analysed()
    for turn in turns[1:]:
        assert says(turn, "PG508").severity in ("error", "warning")
        assert not turn.is_break


def test_routing_key_missing_where_it_matters() -> None:
    agent = talk("openai-responses", 2, **NEW)
    says(agent.analysed()[1], "PG508")


def test_automatic_breakpoint_at_a_tail_that_is_replaced() -> None:
    """The last item differs on each request and the server kept nothing before it."""
    agent = talk("openai-responses", **NEW)
    agent.extra["prompt_cache_key"] = "k"
    for n in range(4):
        agent.messages = [Message("user", [text(f"Ticket {n}: " + prose(f"ticket {n}", 5))])]
        total = 3000
        details = {"cached_tokens": 0, "cache_write_tokens": total}
        agent.send(
            usage={"input_tokens": total, "output_tokens": 9, "input_tokens_details": details}, echo=False
        )
    turns = agent.analysed()
    for turn in turns[1:]:
        says(turn, "PG509")
        assert not turn.is_break, told(turn)


# -- what requests of many users share --------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("what", ["user", "clock"])
def test_what_differs_stands_before_what_all_share(api: str, what: str) -> None:
    """Two users' first requests: their names come before three thousand tokens that are the same."""
    lines = {
        "user": ("The user is called Ann Amber.", "The user is called Bo Birch."),
        "clock": ("Now: 2026-03-04T10:00:11Z", "Now: 2026-03-04T10:05:49Z"),
    }[what]
    talks = []
    for i, line in enumerate(lines):
        agent = Talk(
            api,
            key=f"s-{i}",
            seed=f"u{i}",
            t=60.0 * i,
            tools=[],
            system=[f"You help. {line}\n\n{HEAD} {HEAD}"],
        )
        agent.server = talks[0].server if talks else agent.server
        agent.turn()
        agent.turn()
        talks.append(agent)
    turns = analysed(merged_log(*talks))
    second = next(t for t in turns if t.session == "s-1")
    says(second, "PG510")
    says(second, {"user": "PG109", "clock": "PG101"}[what])
    assert second.divergence is not None
    assert not [t for t in turns if t.is_break], [told(t) for t in turns]


@pytest.mark.parametrize("api", APIS)
def test_what_differs_stands_behind_what_all_share(api: str) -> None:
    talks = []
    for i, line in enumerate(("The user is called Ann Amber.", "The user is called Bo Birch.")):
        agent = Talk(api, key=f"s-{i}", seed=f"u{i}", t=60.0 * i, system=[HEAD, line], system_style="blocks")
        agent.server = talks[0].server if talks else agent.server
        agent.turn()
        agent.turn()
        talks.append(agent)
    turns = analysed(merged_log(*talks))
    silent(turns)
    does_not_say(turns, "PG510", "PG109")


@pytest.mark.parametrize("api", APIS)
def test_helper_request_with_another_prefix(api: str) -> None:
    agent = talk(api, 6)
    flat = "\n".join(p.get("text", "") for m in agent.messages for p in m.parts)
    helper = Talk(api, system=["You write summaries."], tools=[tool("none", 1)], t=agent.t, seed="helper")
    helper.server, helper.log, helper.sent = agent.server, agent.log, agent.sent
    helper.user("Summarise:\n" + flat)
    helper.send(text(prose("sum", 9)), echo=False)
    agent.t = helper.t
    agent.turn()
    turns = agent.analysed()
    breaks(turns[12], "PG511", parent=11, deliberate=True)
    assert turns[12].shape == "side"
    assert turns[13].parent == 11
    silent([*turns[:12], turns[13]])


# -- figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "gemini", "ollama"])
def test_no_cached_figure_is_unknown_not_zero(api: str) -> None:
    agent = talk(api)
    usage = {
        "openai-chat": {"prompt_tokens": 3000, "completion_tokens": 9},
        "ollama": {"prompt_eval_count": 3000, "eval_count": 9},
        "openai-responses": {"input_tokens": 3000, "output_tokens": 9, "total_tokens": 3009},
        "gemini": {"promptTokenCount": 3000, "candidatesTokenCount": 9},
    }[api]
    for _ in range(3):
        agent.turn(usage=usage)
    turns = agent.analysed()
    assert turns[1].usage is not None
    assert turns[1].usage.read is None or api == "gemini"
    assert any(f.code == "PG801" for t in turns for f in t.findings) or api == "gemini"
    silent(turns)


def test_stream_that_asks_for_no_usage() -> None:
    agent = talk("openai-chat")
    for _ in range(2):
        agent.turn(usage=None, stream=True)
    turns = agent.analysed()
    assert says(turns[0], "PG802").severity == "info"
    asked = talk("openai-chat")
    for _ in range(2):
        asked.turn(usage=None, stream=True, stream_options={"include_usage": True})
    does_not_say(asked.analysed(), "PG802")


def test_figures_that_do_not_add_up() -> None:
    agent = talk("openai-chat")
    for _ in range(2):
        agent.turn(
            usage={
                "prompt_tokens": 100,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 2048},
            }
        )
    turns = agent.analysed()
    says(turns[0], "PG803")
    assert not [t for t in turns if t.is_break]


@pytest.mark.parametrize(
    ("option", "fields"),
    [("vllm", {"prompt_logprobs": 1}), ("llama.cpp", {"cache_prompt": False})],
)
def test_reuse_switched_off(option: str, fields: dict[str, Any]) -> None:
    agent = talk("openai-chat", option=option)
    usage = {"prompt_tokens": 3000, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0}}
    for _ in range(3):
        agent.turn(usage=usage, **fields)
    turns = agent.analysed()
    says(turns[0], "PG706")
    assert not [t for t in turns if t.is_break]
    does_not_say(turns, "PG804")


def test_hit_ends_inside_a_large_block() -> None:
    agent = talk("openai-chat", option="vllm:block=1600,hybrid")
    agent.server = PrefixServer("openai-chat", grain=1600, minimum=1, tools_first=False)
    for _ in range(3):
        agent.work(1)
    turns = agent.analysed()
    assert any(f.code == "PG703" for t in turns for f in t.findings)
    silent(turns)


def test_simulated_server_of_marks_agrees_with_the_prediction() -> None:
    """The two were written apart: the product's intervals and these caches must agree on a sound run."""
    for api in ("anthropic", "bedrock"):
        agent = talk(api, 4, server=MarkServer(api))
        assert {t.cache.verdict for t in agent.analysed() if t.cache} == {"as-predicted"}
