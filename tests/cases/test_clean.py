"""What is no break and must never be reported as one, in every API."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from prefixguard.exchange import Exchange

from .agent import (
    TOOLS,
    Message,
    Talk,
    analysed,
    call,
    image,
    merged_log,
    prose,
    reasoning,
    result,
    text,
    tool,
)
from .bodies import APIS
from .server import PrefixServer
from .verdicts import does_not_say, says, silent, told

HEAD = "You are the keeper of the yard. " + prose("clean head", 130)


def talk(api: str, rounds: int = 2, **fields: Any) -> Talk:
    fields.setdefault("system", [HEAD])
    made = Talk(api, **fields)
    for _ in range(rounds):
        made.work(1)
    return made


def shapes(turns: Any) -> list[str]:
    return [t.shape for t in turns]


@pytest.mark.parametrize("api", [*APIS, "completions"])
@pytest.mark.parametrize("keyed", [True, False])
def test_append(api: str, keyed: bool) -> None:
    agent = Talk(api, system=[HEAD], key="s-1" if keyed else None)
    for _ in range(5):
        agent.turn()
    turns = agent.analysed()
    silent(turns)
    assert shapes(turns) == ["first", *["append"] * 4]
    assert [t.parent for t in turns] == [None, 0, 1, 2, 3]
    assert len({t.thread for t in turns}) == 1
    does_not_say(turns, "PG210", "PG307", "PG804")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [429, 500, None])
def test_retry_after_a_failure(api: str, status: int | None) -> None:
    agent = talk(api)
    agent.user()
    agent.send(status=status, reply=False, echo=False, usage=None)
    agent.send(status=status, reply=False, echo=False, usage=None)
    agent.send()
    agent.turn()
    turns = agent.analysed()
    silent(turns)


@pytest.mark.parametrize("api", APIS)
def test_retry_after_a_success(api: str) -> None:
    agent = talk(api)
    agent.user()
    agent.send(echo=False)
    agent.send(text(prose("another answer", 7)))
    agent.turn()
    turns = agent.analysed()
    silent(turns)
    assert turns[-2].shape == "retry"
    assert turns[-1].parent == turns[-2].index


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("back", [1, 2])
def test_rewind_and_ask_something_else(api: str, back: int) -> None:
    agent = talk(api, 4)
    users = [i for i, m in enumerate(agent.messages) if m.role == "user"]
    del agent.messages[users[-back] :]
    agent.turn()
    agent.turn()
    turns = agent.analysed()
    silent(turns)
    assert turns[-2].shape in ("rewind", "append"), told(turns[-2])


@pytest.mark.parametrize("api", APIS)
def test_last_user_message_edited_and_sent_again(api: str) -> None:
    agent = talk(api)
    agent.user()
    agent.send(echo=False)
    agent.messages[-1].parts[0]["text"] += " And say it in one line, please, with the reasons first."
    agent.send()
    agent.turn()
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("keyed", [True, False])
def test_fork_and_parallel_branches(api: str, keyed: bool) -> None:
    agent = talk(api, key="s-1" if keyed else None)
    stem = copy.deepcopy(agent.messages)
    for branch in range(3):
        agent.messages = copy.deepcopy(stem)
        agent.user(f"Branch {branch}: " + prose(f"branch {branch}", 6))
        agent.send(wait=0.1)
        agent.turn(wait=0.2)
    turns = agent.analysed()
    silent(turns, but=("PG605",))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("same_head", [True, False])
@pytest.mark.parametrize("keyed", [True, False])
def test_sub_agent_interleaved(api: str, same_head: bool, keyed: bool) -> None:
    key = "s-1" if keyed else None
    agent = talk(api, key=key)
    helper = Talk(
        api,
        key=key,
        seed="sub",
        t=agent.t + 0.5,
        server=agent.server,
        system=[HEAD if same_head else "You look things up. " + prose("sub head", 120)],
        tools=[tool(name) for name in (TOOLS if same_head else TOOLS[:2])],
    )
    for _ in range(3):
        agent.user()
        agent.step_with_tool()
        helper.user()
        helper.step_with_tool()
        agent.send()
        helper.send()
        helper.t = agent.t = max(agent.t, helper.t) + 1
    turns = analysed(merged_log(agent, helper))
    silent(turns)
    assert sum(1 for t in turns if t.parent is None) == 2
    assert len({(t.session, t.thread) for t in turns}) == 2


@pytest.mark.parametrize("api", APIS)
def test_two_keyless_runs_of_the_same_agent_interleaved(api: str) -> None:
    one, two = (Talk(api, key=None, system=[HEAD], seed=s, t=i) for i, s in enumerate(("one", "two")))
    two.server = one.server
    for _ in range(3):
        for agent in (one, two):
            agent.user()
            agent.step_with_tool()
            agent.send()
            two.t = max(one.t, two.t) + 1
            one.t = two.t + 0.5
    turns = analysed(merged_log(one, two))
    silent(turns)
    assert len({t.session for t in turns}) == 2


@pytest.mark.parametrize("api", APIS)
def test_two_runs_with_the_very_same_opening(api: str) -> None:
    """The same task twice: the second run is no break, and answers may differ."""
    first = Talk(api, key=None, system=[HEAD])
    first.work(2)
    second = Talk(api, key=None, system=[HEAD], t=first.t + 60, server=first.server)
    second.user()
    second.send(text(prose("quite another answer", 6)))
    second.turn()
    turns = analysed(merged_log(first, second))
    silent(turns)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("gap", [30, 4000, 90_000])
def test_session_taken_up_again_later(api: str, gap: int) -> None:
    """In another process, with another key: the history is the same."""
    agent = talk(api, 3)
    agent.key = "s-2"
    agent.user()
    agent.send(wait=gap)
    agent.turn()
    turns = agent.analysed()
    silent(turns, but=("PG601", "PG508"))
    assert turns[6].parent == 5


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["no figures", "null", "empty"])
def test_streams_without_usage(api: str, how: str) -> None:
    agent = Talk(api, system=[HEAD])
    usage: Any = {"no figures": None, "null": None, "empty": {}}[how]
    if how == "null" and api in ("openai-chat", "openai-responses"):
        usage = {"prompt_tokens": 3000, "completion_tokens": 9, "prompt_tokens_details": None}
        if api == "openai-responses":
            usage = {
                "input_tokens": 3000,
                "output_tokens": 9,
                "input_tokens_details": {"cached_tokens": None},
            }
    for _ in range(2):
        agent.user()
        agent.step_with_tool(usage=usage, stream=True)
        agent.send(usage=usage, stream=True)
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
def test_replies_that_nobody_saw(api: str) -> None:
    agent = talk(api, 0)
    for _ in range(4):
        agent.user()
        agent.send(call(len(agent.log)), reply=False)
        agent.tool_result(result(len(agent.log) - 1))
        agent.send(reply=False)
    turns = agent.analysed()
    silent(turns)
    assert shapes(turns) == ["first", *["append"] * 7]


@pytest.mark.parametrize("api", APIS)
def test_aborted_reply_and_a_new_question(api: str) -> None:
    """The user stops a reply; what came is kept in part, or not at all."""
    for kept in (True, False):
        agent = talk(api)
        agent.user()
        whole = prose("a long answer", 12)
        agent.send(text(whole), echo=False)
        if kept:
            agent.messages.append(Message("assistant", [text(whole[: len(whole) // 3])]))
        agent.user()
        agent.send()
        agent.turn()
        silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
def test_title_and_helper_calls_between(api: str) -> None:
    """Short calls with another model, no tools and another system text, under the same key."""
    agent = talk(api, 1)
    title = Talk(
        api,
        key="s-1",
        server=agent.server,
        t=agent.t,
        tools=[tool("none")],
        system=["Make a title of six words."],
    )
    title.tools = []
    title.model = "claude-haiku-4-5" if api == "anthropic" else agent.model
    for n in range(3):
        question = agent.user()
        title.messages = [Message("user", [text(f"Title for: {question.parts[0]['text'][:80]}")])]
        title.t = agent.t + 0.2
        title.send(text(f"Valve and ledger {n}"), echo=False)
        agent.t = title.t
        agent.step_with_tool()
        agent.send()
    turns = analysed(merged_log(agent, title))
    silent(turns)


@pytest.mark.parametrize("api", APIS)
def test_images_in_messages_and_results(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user(None, image("a"), image("b"))
    agent.step_with_tool()
    agent.send(call("shot"))
    agent.tool_result(result("shot", "a picture"), image("c"))
    agent.send()
    agent.work(1)
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
def test_huge_and_empty_results(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user()
    agent.send(call("big"))
    agent.tool_result(result("big", prose("big", 900)))
    agent.send(call("none"))
    agent.tool_result(result("none", ""))
    agent.send(text(""), call("x"))
    agent.tool_result(result("x", "ok"))
    agent.send()
    agent.turn()
    turns = agent.analysed()
    silent(turns)
    assert shapes(turns)[1:] == ["append"] * 4


@pytest.mark.parametrize("api", APIS)
def test_unknown_block_types(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    agent.user(None, {"kind": "raw", "value": {"type": "hologram", "hologram": {"beam": [1, 2, 3]}}})
    agent.step_with_tool()
    agent.send()
    agent.work(1)
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
def test_reasoning_is_sent_back_throughout(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    for n in range(2):
        agent.user()
        agent.send(reasoning(prose(f"why {n}", 6)), call(n))
        agent.tool_result(result(n))
        agent.send(reasoning(prose(f"so {n}", 6)), text(prose(f"end {n}", 4)))
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
def test_parallel_tool_calls(api: str) -> None:
    agent = Talk(api, system=[HEAD])
    for n in range(3):
        agent.user()
        agent.send(call(f"{n}a"), call(f"{n}b"), call(f"{n}c"))
        agent.tool_result(result(f"{n}a"), result(f"{n}b"), result(f"{n}c"))
        agent.send()
    silent(agent.analysed())


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_system_message_appended_in_mid_conversation(api: str) -> None:
    agent = talk(api)
    agent.messages.append(Message("system", [text("From now on answer in French. " + prose("french", 3))]))
    agent.turn()
    agent.turn()
    silent(agent.analysed())


def test_system_message_appended_in_an_anthropic_history() -> None:
    agent = talk("anthropic", model="claude-opus-4-8")
    agent.messages.append(Message("system", [text("From now on answer in French. " + prose("french", 3))]))
    agent.turn()
    agent.turn()
    silent(agent.analysed())


@pytest.mark.parametrize(
    "marks", [("system", "last"), ("tools", "system", "last two"), ("auto",), ("system", "auto"), ("last",)]
)
def test_breakpoints_move(marks: tuple[str, ...]) -> None:
    agent = talk("anthropic", 4, marks=marks)
    turns = agent.analysed()
    silent(turns)
    assert all(t.cache.verdict == "as-predicted" for t in turns), [told(t) for t in turns]


def test_breakpoints_on_other_blocks_each_turn() -> None:
    agent = talk("anthropic", 0, marks=("system",))
    n = 0

    def scatter(body: dict[str, Any]) -> None:
        nonlocal n
        n += 1
        blocks = [b for m in body["messages"] for b in m["content"]]
        for b in {id(x): x for x in (blocks[-1], blocks[(n * 3) % len(blocks)])}.values():
            b["cache_control"] = {"type": "ephemeral"}

    agent.edit = scatter
    for _ in range(3):
        agent.work(2)
    silent(agent.analysed())


def test_change_behind_the_last_breakpoint() -> None:
    agent = talk("anthropic", 0, marks=("system", "last"))
    for n in range(5):
        agent.user()

        def live(body: dict[str, Any], n: int = n) -> None:
            body["messages"][-1]["content"].append(
                {"type": "text", "text": f"<now>{prose(f'now {n}', 9)}</now>"}
            )

        agent.edit = live
        agent.send()
    turns = agent.analysed()
    silent(turns)
    assert all(t.shape == "append" for t in turns[1:]), [told(t) for t in turns]


def test_two_users_with_one_system_prompt() -> None:
    one = Talk("openai-chat", key="a", system=[HEAD], seed="ann")
    two = Talk("openai-chat", key="b", system=[HEAD], seed="bob", server=one.server, t=3)
    for _ in range(3):
        one.turn()
        two.t = one.t + 1
        two.turn()
        one.t = two.t + 1
    turns = analysed(merged_log(one, two))
    silent(turns)
    assert len({t.session for t in turns}) == 2


def test_counting_calls_and_model_lists_between() -> None:
    agent = talk("anthropic")
    log = []
    for e in agent.log:
        log.append(
            Exchange(
                e.t - 0.1, "/v1/messages/count_tokens", e.request, e.headers, response=b'{"input_tokens": 9}'
            )
        )
        log.append(e)
    turns = analysed(log)
    silent(turns)
    assert [t.shape for t in turns[1::2]] == ["first", *["append"] * 3]


def test_chain_by_previous_response_id() -> None:
    agent = Talk("openai-responses", system=[HEAD])
    previous: str | None = None
    for n in range(5):
        agent.messages = [Message("user", [text(f"Question {n}: " + prose(f"chain {n}", 8))])]
        extra = {"previous_response_id": previous, "store": True} if previous else {"store": True}
        total, read = 3000 + 200 * n, 2900 + 200 * (n - 1) if n else 0
        usage = {
            "input_tokens": total,
            "output_tokens": 60,
            "input_tokens_details": {"cached_tokens": read // 128 * 128},
        }
        agent.send(usage=usage, echo=False, **extra)
        previous = json.loads(agent.log[-1].response or b"{}")["id"]
    turns = agent.analysed()
    silent(turns)
    assert [t.parent for t in turns] == [None, 0, 1, 2, 3]


def item(role: str, words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def test_a_chain_whose_system_text_is_an_item() -> None:
    """As codex does it in a WebSocket: a warm-up with the system text alone, then only what is new.

    After a restart the whole input is sent once more, behind another warm-up.
    """
    said = [item("developer", HEAD), item("developer", prose("the rules", 60)), item("user", "Begin.")]
    turns: list[tuple[list[Any], int | None]] = [(said[:1], None), (said[1:], 0)]
    turns += [([item("user", prose(f"more {n}", 20))], n + 1) for n in range(3)]
    whole = said[1:]
    for n, (new, _) in enumerate(turns[2:]):
        whole = [*whole, item("assistant", prose(f"answer {n + 1}", 10)), *new]
    turns += [(said[:1], None), (whole, 5), ([item("user", "The end.")], 6)]
    log = []
    for n, (new, previous) in enumerate(turns):
        body: dict[str, Any] = {"type": "response.create", "model": "gpt-5.2-codex", "input": new}
        body |= {"generate": False} if previous is None else {"previous_response_id": f"resp_{previous}"}
        output = [] if previous is None else [item("assistant", prose(f"answer {n}", 10))]
        response = {"object": "response", "id": f"resp_{n}", "status": "completed", "output": output}
        log.append(
            Exchange(
                float(n),
                "/v1/responses",
                json.dumps(body).encode(),
                {"session-id": "s"},
                response=json.dumps(response).encode(),
                status=200,
                transport="websocket",
            )
        )
    found = analysed(log)
    silent(found)
    assert [t.shape for t in found] == ["first", *["append"] * 4, "retry", "append", "append"]
    # The link stands for what was sent whole after the restart.
    assert found[4].tokens.prompt == found[6].tokens.prompt


def test_conversation_ids() -> None:
    agent = Talk("openai-responses", system=[HEAD])
    for n in range(4):
        agent.messages = [Message("user", [text(f"Question {n}: " + prose(f"conv {n}", 8))])]
        agent.send(usage=None, echo=False, conversation="conv_1")
    silent(agent.analysed())


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
def test_envelope_and_unrendered_fields(api: str) -> None:
    """Field order, metadata, stream, user and header values are no part of the prompt."""
    agent = talk(api, 0)
    for n in range(4):

        def shuffle(body: dict[str, Any], n: int = n) -> None:
            items = list(body.items())
            body.clear()
            body.update(items[n % len(items) :] + items[: n % len(items)])
            body["metadata"] = {"n": str(n)}
            body["stream"] = bool(n % 2)
            body["user"] = f"u{n}"

        agent.edit = shuffle
        agent.headers = {"x-request-id": f"r{n}", "traceparent": f"00-{n}"}
        agent.user()
        agent.step_with_tool()
        agent.send()
    silent(agent.analysed())


def test_responses_items_with_ids_of_their_own() -> None:
    agent = talk("openai-responses", 0)
    n = 0

    def mint(body: dict[str, Any]) -> None:
        nonlocal n
        n += 1
        for i, item in enumerate(body["input"]):
            item["id"] = f"item_{n}_{i}"
            item["status"] = "completed"

    agent.server = PrefixServer("openai-responses")
    agent.edit = mint
    for _ in range(3):
        agent.work(1)
    turns = agent.analysed()
    assert not [t for t in turns if t.is_break]


@pytest.mark.parametrize("api", APIS)
def test_summary_asked_for_in_line_reads_the_cache(api: str) -> None:
    """A compaction request in append form is no break, whatever comes after it."""
    agent = talk(api, 4)
    agent.user("Summarise all of this for a colleague who takes over, with open points.")
    agent.send()
    silent(agent.analysed())


def test_shape_may_be_said_but_not_loudly() -> None:
    agent = talk("openai-chat", 2)

    def blocks(body: dict[str, Any]) -> None:
        last = body["messages"][-1]
        if isinstance(last["content"], str):
            last["content"] = [
                {"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral"}}
            ]

    agent.edit = blocks
    agent.turn(usage=None)
    agent.turn(usage=None)
    turns = agent.analysed()
    silent(turns)
    assert says(turns[-1], "PG208").severity == "info"
