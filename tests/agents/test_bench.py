"""The bench of real agents, with an agent that needs no installation."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from bench.agents.cache import Cache
from bench.agents.clients import CLIENTS, Client
from bench.agents.compare import compare
from bench.agents.lab import Lab, Outcome
from bench.agents.script import CLOSING, COMMANDS, Api, Call, Say, next_action
from bench.agents.stability import stability
from bench.agents.table import markdown, row_of, table_of
from bench.agents.upstream import Upstream
from prefixguard.proxy.agents import read_agents

STAND_IN = """
import json, os, subprocess, sys, urllib.request

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
SYSTEM = "You look after a small project. " * 200 + (sys.argv[1] if len(sys.argv) > 1 else "")
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "What is this?"}]
while True:
    body = json.dumps({"model": "gpt-4.1", "messages": messages, "tools": TOOLS}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer sk-stand-in-0123456789"}
    with opener.open(urllib.request.Request(URL, body, headers)) as answer:
        message = json.load(answer)["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        print(message["content"])
        break
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(command, shell=True, capture_output=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout.decode()})
"""


class StandIn(Lab):
    """A lab in which the one agent is there already."""

    def programs(self, client: Client) -> Path:
        return Path(sys.executable).parent


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[Upstream]:
    with Upstream(tmp_path / "certificates", tmp_path / "lab" / "project") as upstream:
        yield upstream


def test_an_agent_from_its_runs_to_its_row(tmp_path: Path, upstream: Upstream) -> None:
    client = Client(
        "stand-in",
        "pypi",
        ("stand-in",),
        Path(sys.executable).name,
        first=("{script}",),
        again=("{script}", "again"),
        takes="env",
        script=STAND_IN,
        env=lambda place: {"OPENAI_BASE_URL": place.url("openai", "/v1")},
    )
    lab = StandIn(tmp_path / "lab")
    alone, behind = (lab.run(client, mode, upstream) for mode in ("plain", "base-url"))
    assert [p.code for p in alone.processes] == [0, 0], alone.processes
    assert all(p.out.strip() == CLOSING for p in behind.processes), behind.processes
    row = row_of(
        client, "1.0", {"plain": alone, "base-url": behind, "plain-forward": alone, "forward": behind}
    )
    assert row.modes["base-url"].differences == ()
    assert row.modes["base-url"].holds
    assert (row.requests, row.helpers, row.pure, row.steps) == (8, 0, 6, 6)
    assert row.restart is not None
    assert row.restart.place == "messages[0]"
    assert not [one for one in row.breaks if not one.restart]
    page = markdown(table_of([row]))
    assert "| stand-in | 1.0 | chat | 8 | 6 of 6 | continues, " in page
    _changes_are_seen(alone, behind)


def _changes_are_seen(alone: Outcome, behind: Outcome) -> None:
    """Each part of the comparison fails when what it looks at is not the same."""
    first = alone.received[0]
    other = replace(first, prompt={**first.prompt, "temperature": 1})
    assert not compare(replace(alone, received=[other, *alone.received[1:]]), behind).prompts
    named = replace(first, headers=(*first.headers, ("x-new", "1")))
    assert not compare(replace(alone, received=[named, *alone.received[1:]]), behind).headers
    assert not compare(replace(alone, files={}), behind).files
    assert not compare(replace(alone, processes=alone.processes[:1]), behind).codes
    cut = replace(behind.received[0], answer=b"")
    assert not compare(alone, replace(behind, received=[cut, *behind.received[1:]])).intact


def test_sdks_understand_its_answers(upstream: Upstream) -> None:
    tool = {
        "name": "bash",
        "description": "",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    }
    chat = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k")
    messages: list[Any] = [{"role": "user", "content": "hello"}]
    tools: list[Any] = [{"type": "function", "function": tool}]
    with chat.chat.completions.stream(model="gpt-4.1", messages=messages, tools=tools) as stream:
        (call,) = stream.get_final_completion().choices[0].message.tool_calls or ()
    assert json.loads(call.function.arguments) == {"command": COMMANDS[0]}
    responses: list[Any] = [{"type": "function", **tool}]
    with chat.responses.stream(model="gpt-4.1", input="hello", tools=responses) as events:
        (item,) = events.get_final_response().output
    assert item.type == "function_call"
    claude = anthropic.Anthropic(base_url=upstream.url, api_key="k")
    own: list[Any] = [{"name": "bash", "input_schema": tool["parameters"]}]
    with claude.messages.stream(
        model="claude-sonnet-4-5", max_tokens=9, messages=messages, tools=own
    ) as told:
        (block,) = told.get_final_message().content
    assert block.type == "tool_use"
    assert block.input == {"command": COMMANDS[0]}
    with claude.messages.stream(model="claude-sonnet-4-5", max_tokens=9, messages=messages) as told:
        assert told.get_final_text() == "A look at a small project"


def test_it_is_the_only_way_out(upstream: Upstream) -> None:
    import ssl

    context = ssl.create_default_context(cafile=str(upstream.authority))
    with httpx.Client(proxy=upstream.url, verify=context, trust_env=False) as client:
        answer = client.post(
            "https://api.openai.com/v1/chat/completions", json={"model": "m", "messages": []}
        )
        assert answer.status_code == 200
        with pytest.raises(httpx.ProxyError):
            client.get("https://telemetry.example/")
    assert [r.host for r in upstream.received] == ["api.openai.com"]
    assert upstream.refused == ["telemetry.example"]


COMMAND_LIST = {"type": "array", "items": {"type": "string"}}
COMMAND_SCHEMA = {
    "type": "object",
    "required": ["commands", "why", "background"],
    "properties": {"commands": COMMAND_LIST, "why": {"type": "string"}, "background": {"type": "boolean"}},
}
CHAT_TOOL = {"type": "function", "function": {"name": "run_commands", "parameters": COMMAND_SCHEMA}}
READ_SCHEMA = {
    "type": "OBJECT",
    "required": ["absolute_path"],
    "properties": {"absolute_path": {"type": "string"}},
}
GEMINI_TOOL = {"functionDeclarations": [{"name": "read_file", "parameters": READ_SCHEMA}]}


@pytest.mark.parametrize(
    ("api", "body", "action"),
    [
        ("chat", {"tools": [CHAT_TOOL], "messages": [{"role": "user", "content": "x"}]},
         Call("run_commands", {"why": "Look at the project", "background": False, "commands": ["ls"]})),
        ("chat", {"tools": [CHAT_TOOL], "messages": [{"role": "user"}, *[{"role": "tool"}] * 3]},
         Say(CLOSING)),
        ("chat", {"tools": [CHAT_TOOL], "messages": [{"role": "tool"}, {"role": "user"}]},
         Call("run_commands", {"why": "Look at the project", "background": False, "commands": ["ls"]})),
        ("gemini", {"tools": [GEMINI_TOOL], "contents": [{"role": "user", "parts": [{"text": "x"}]},
                    {"role": "user", "parts": [{"functionResponse": {}}]}]},
         Call("read_file", {"absolute_path": "/p/README.md"})),
        ("responses", {"input": [], "text": {"format": {"type": "json_schema", "schema": {
            "type": "object", "properties": {"ok": {"type": "boolean"}}}}}}, Say('{"ok": false}')),
    ],
)  # fmt: skip
def test_the_script(api: Api, body: dict[str, Any], action: Call | Say) -> None:
    assert next_action(api, body, "/p") == action


def test_its_cache_rules() -> None:
    cache = Cache()
    long = "word " * 4000
    body: dict[str, Any] = {
        "messages": [{"role": "system", "content": long}, {"role": "user", "content": "a"}]
    }
    assert cache.take("chat", "m", body).read == 0
    body["messages"].append({"role": "user", "content": "b"})
    again = cache.take("chat", "m", body)
    assert 3800 < again.read <= again.total
    assert again.read % 128 == 0
    assert cache.take("chat", "other", body).read == 0
    marked = {"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}
    claude: dict[str, Any] = {"system": [marked], "messages": [{"role": "user", "content": "a"}]}
    first = cache.take("messages", "c", claude)
    claude["messages"][0]["content"] = "another question"
    second = cache.take("messages", "c", claude)
    assert (first.read, second.read, second.written) == (0, first.written, 0)
    assert first.written > 3800


def test_its_agents_have_presets() -> None:
    presets = {agent.name for agent in read_agents()}
    assert {client.preset for client in CLIENTS if client.preset} <= presets


def test_a_conversation_that_is_not_one() -> None:
    """Without any prompt there is nothing to say, and nothing to fail of."""
    found = stability([], 0.0)
    assert (found.requests, found.within, found.restart) == (0, [], None)
