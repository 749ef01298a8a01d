"""Changes of tools and of keyed parameters (PG201 to PG203, PG401 to PG410)."""

from __future__ import annotations

from typing import Any

import pytest

from .agent import TOOLS, Talk, prose, tool
from .bodies import APIS
from .server import PrefixServer
from .verdicts import breaks, does_not_say, primary, says, silent

BIG = "You are the keeper of the yard. " + prose("big head", 130)


def talk(api: str, **fields: Any) -> Talk:
    made = Talk(api, marks=("tools", "system", "last"), system=[BIG], **fields)
    made.user()
    return made


def first_tool(sent: dict[str, Any]) -> str:
    return "/toolConfig/tools" if "toolConfig" in sent else "/tools"


@pytest.mark.parametrize("api", APIS)
def test_tools_in_another_order_on_each_request(api: str) -> None:
    agent = talk(api)
    for n in range(5):
        agent.tools = [tool(name) for name in (*TOOLS[n % 3 :], *TOOLS[: n % 3])]
        agent.step_with_tool()
    turns = agent.analysed()
    for turn in turns[1:]:
        breaks(turn, "PG201", first_tool(agent.sent[0]), kind="reordered")


def _drift(agent: Talk, n: int) -> None:
    """One schema's keys in another order."""
    agent.tools = [tool(name) for name in TOOLS]
    properties = agent.tools[2]["properties"]
    names = list(properties)
    agent.tools[2]["properties"] = {k: properties[k] for k in names[n % 3 :] + names[: n % 3]}


@pytest.mark.parametrize("api", APIS)
def test_schema_keys_in_another_order(api: str) -> None:
    agent = talk(api)
    for n in range(4):
        _drift(agent, n)
        agent.step_with_tool()
    turns = agent.analysed()
    for turn in turns[1:]:
        breaks(turn, "PG202")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_tools_added_late(api: str, place: int) -> None:
    agent = talk(api)
    for n in range(4):
        if n == 2:
            late = [tool("mcp__late__one"), tool("mcp__late__two")]
            agent.tools = [*agent.tools[:place], *late, *agent.tools[place:]]
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[2], "PG401")
    assert "mcp__late__one" in primary(turns[2]).message
    silent([turns[0], turns[1], turns[3]])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("gone", [[0], [4], [1, 2], [0, 1, 2, 3, 4]])
def test_tools_removed(api: str, gone: list[int]) -> None:
    agent = talk(api)
    for n in range(4):
        if n == 2:
            agent.tools = [t for i, t in enumerate(agent.tools) if i not in gone]
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[2], "PG402")
    silent([turns[0], turns[1], turns[3]])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("what", ["description", "property", "clock"])
def test_definition_edited(api: str, what: str) -> None:
    agent = talk(api)
    for n in range(4):
        agent.tools = [tool(name) for name in TOOLS]
        if what == "clock":
            agent.tools[1]["description"] += f" It is now 14:0{n}:11."
        elif n >= 2 and what == "description":
            agent.tools[1]["description"] += " Prefer it over grep."
        elif n >= 2:
            agent.tools[1]["properties"]["glob"] = {"type": "string", "description": "a pattern"}
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[2], "PG403", agent.where(2, "search_code").rpartition("/")[0])
    assert "search_code" in primary(turns[2]).message
    if what == "clock":
        breaks(turns[3], "PG403")
        assert [f for f in turns[3].findings if f.code == "PG101"], "the clock in it is named as well"
    else:
        silent([turns[0], turns[1], turns[3]])


@pytest.mark.parametrize("api", APIS)
def test_tools_chosen_on_each_turn(api: str) -> None:
    agent = talk(api)
    for n in range(5):
        names = [TOOLS[n % 5], TOOLS[(n + 2) % 5], "always"]
        agent.tools = [tool(name) for name in names]
        agent.step_with_tool()
    turns = agent.analysed()
    for turn in turns[1:]:
        breaks(turn, "PG404")


@pytest.mark.parametrize("api", APIS)
def test_tools_that_come_and_go_are_chosen_per_turn(api: str) -> None:
    agent = talk(api)
    for n in range(6):
        agent.tools = [tool(name) for name in (TOOLS if n % 2 else TOOLS[:3])]
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[1], ("PG401", "PG404"))
    for turn in turns[2:]:
        breaks(turn, "PG404")


@pytest.mark.parametrize("api", APIS)
def test_mode_switch_changes_tools_and_system_together_and_returns(api: str) -> None:
    agent = talk(api)
    plan = ["You only plan, you never edit. " + prose("plan mode", 120)]
    for n in range(6):
        planning = n in (2, 3)
        agent.system = plan if planning else [BIG]
        agent.tools = [tool(name) for name in (("read_file", "propose_plan") if planning else TOOLS)]
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[2], "PG410", deliberate=True)
    assert turns[4].shape in ("changed", "append", "rewind")
    if turns[4].is_break:
        assert primary(turns[4]).code == "PG410"
        assert primary(turns[4]).deliberate
    silent([turns[0], turns[1], turns[3], turns[5]])


@pytest.mark.parametrize("api", APIS)
def test_a_word_that_changes_in_tools_and_system_text_is_no_mode(api: str) -> None:
    """As an agent's model, named in both: nobody decided for other tools and another text."""
    agent = talk(api)
    for n in range(4):
        name = "Large" if n < 2 else "Small"
        agent.system = [f"{BIG} You are {name}. {prose('what stands behind', 40)}"]
        described = tool(TOOLS[0])
        described["description"] = f"{described['description']} Sign as {name}. " + prose("signing", 4)
        agent.tools = [described, *(tool(other) for other in TOOLS[1:])]
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[2], ("PG403", "PG112"))
    does_not_say(turns, "PG410")
    silent([turns[0], turns[1], turns[3]])


PARAMETERS = [
    ("openai-responses", "openai-5.6", "reasoning", {"effort": "high"}, {"effort": "low"}, "PG406"),
    ("openai-responses", "openai-5.6", "text", {"verbosity": "low"}, {"verbosity": "high"}, "PG409"),
    ("openai-responses", "openai-5.6", "service_tier", "default", "flex", "PG409"),
    (
        "openai-responses",
        "openai",
        "text",
        None,
        {"format": {"type": "json_schema", "name": "x", "schema": {}}},
        "PG408",
    ),
    ("openai-chat", "openai", "response_format", None, {"type": "json_object"}, "PG408"),
    ("anthropic", "anthropic", "tool_choice", {"type": "auto"}, {"type": "any"}, "PG407"),
    ("anthropic", "anthropic", "tool_choice", None, {"type": "tool", "name": "read_file"}, "PG407"),
    ("anthropic", "anthropic", "speed", None, "fast", "PG409"),
    ("openai-chat", "vllm", "cache_salt", "a", "b", "PG409"),
]


@pytest.mark.parametrize(("api", "server", "name", "before", "after", "code"), PARAMETERS)
def test_parameter_in_the_key_changes(
    api: str, server: str, name: str, before: Any, after: Any, code: str
) -> None:
    model = "gpt-6-sol" if server == "openai-5.6" else None
    agent = talk(api, option=server, model=model)
    if server == "openai-5.6":
        agent.extra["prompt_cache_key"] = "s-1"
    for n in range(5):
        if n >= 3:
            agent.extra[name] = after
        elif before is not None:
            agent.extra[name] = before
        agent.step_with_tool(usage=None if server in ("openai-5.6", "vllm") else "simulated")
    turns = agent.analysed()
    breaks(turns[3], code, f"/{name}", kind="parameter", deliberate=code == "PG406")
    silent([*turns[:3], turns[4]], but=("PG508",))


@pytest.mark.parametrize(
    ("api", "server", "name", "values"),
    [
        ("openai-chat", "vllm", "tool_choice", ("auto", "none")),
        ("openai-chat", "llama.cpp", "tool_choice", ("auto", "required")),
        ("openai-chat", "openai", "tool_choice", ("auto", "none")),
        ("openai-chat", "openai", "temperature", (0, 1)),
        ("openai-chat", "openai", "max_tokens", (100, 200)),
        ("openai-chat", "openai", "user", ("a", "b")),
        ("anthropic", "anthropic", "metadata", ({"user_id": "a"}, {"user_id": "b"})),
        ("anthropic", "anthropic", "max_tokens", (100, 200)),
        ("anthropic", "anthropic", "temperature", (0, 1)),
        ("openai-responses", "openai", "metadata", ({"n": "1"}, {"n": "2"})),
        ("openai-responses", "openai", "max_output_tokens", (100, 200)),
        ("gemini", "gemini", "generationConfig", ({"temperature": 0}, {"temperature": 1})),
        ("bedrock", "bedrock", "inferenceConfig", ({"maxTokens": 5}, {"maxTokens": 6})),
        ("ollama", "ollama", "options", ({"temperature": 0}, {"temperature": 1})),
        ("ollama", "ollama", "keep_alive", ("5m", "1h")),
    ],
)
def test_parameter_outside_the_key_changes_nothing(
    api: str, server: str, name: str, values: tuple[Any, Any]
) -> None:
    agent = talk(api, option=server)
    if server in ("vllm", "llama.cpp"):
        agent.server = PrefixServer(
            "openai-chat", grain=16 if server == "vllm" else 1, minimum=1, tools_first=False
        )
    for n in range(5):
        agent.extra[name] = values[n % 2]
        agent.step_with_tool()
    silent(agent.analysed())


@pytest.mark.parametrize("api", APIS)
def test_model_switched_and_back(api: str) -> None:
    agent = talk(api)
    own = agent.model
    for n in range(6):
        other = (
            str(own).replace("sonnet", "opus").replace("4-5", "4-1")
            if "claude" in str(own)
            else f"{own}-mini"
        )
        agent.model = other if n in (2, 3) else own
        agent.step_with_tool()
    turns = agent.analysed()
    breaks(turns[2], "PG405", deliberate=True)
    assert not [t for t in turns if t.is_fault]
    does_not_say(turns, "PG804")
    silent([turns[0], turns[1], turns[3], turns[5]])


def test_effort_is_believed_only_when_the_server_shows_it() -> None:
    """Anthropic: whether effort is in the key depends on the model; the figures decide."""
    for seen in (False, True):
        agent = talk("anthropic", option="anthropic", model="claude-opus-4-8")
        for n in range(5):
            agent.extra["output_config"] = {"effort": "low" if n >= 3 else "high"}
            if n == 3 and seen:
                agent.server.entries.clear()  # type: ignore[union-attr]
            agent.step_with_tool()
        turns = agent.analysed()
        assert says(turns[3], "PG406")
        if seen:
            breaks(turns[3], "PG406", "/output_config/effort", deliberate=True)
        else:
            silent(turns)


@pytest.mark.parametrize("api", ["openai-chat", "anthropic", "gemini"])
def test_model_chosen_anew_on_each_request_is_a_fault(api: str) -> None:
    """A router between two models: each finds its own older entry and pays for what came since."""
    agent = talk(api)
    own = str(agent.model)
    other = own.replace("sonnet", "opus").replace("4-5", "4-1") if "claude" in own else f"{own}-mini"
    for n in range(7):
        agent.model = other if n % 2 else own
        agent.step_with_tool()
    for turn in agent.analysed()[1:]:
        breaks(turn, "PG405")
        assert primary(turn).recurrence == "every-request"
