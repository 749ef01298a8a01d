"""The agents: how each is installed, told where its model is, started, and continued.

One function per agent writes what the agent wants to find in its home folder.
Everything else is data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.agents.script import Json

KEY = "sk-bench-0123456789abcdef"
FIRST = "Look at this project and say in one sentence what it does."
SECOND = "Look at it once more and say whether anything has changed."
_OFFICIAL = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "mistral": "https://api.mistral.ai",
}


@dataclass(frozen=True)
class Place:
    """Where an agent runs. base: origin of its model server, or None for the vendor's own."""

    home: Path
    project: Path
    base: str | None

    def url(self, vendor: str, path: str = "") -> str:
        """The base URL for an API, with the path behind it."""
        return (self.base or _OFFICIAL[vendor]) + path

    def write(self, name: str, text: str | Json) -> None:
        """A file of the home folder."""
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))


@dataclass(frozen=True)
class Client:
    """One agent.

    preset: its name in `rules/agents`, or None. packages: what to install.
    python: for those from PyPI, which Python. program: what to run, in the
    installation's folder of programs. first, again: its arguments in a fresh
    process and in a second one. continues: whether that one goes on where the
    first ended. takes: how the base URL reaches it in base-URL mode: `env`
    (variables below), `args` (the preset's), `file` (its settings). env: more
    variables. stdin: what is typed. known: what is really there, judged by
    hand, where it is not silence.
    """

    name: str
    kind: Literal["npm", "pypi"]
    packages: tuple[str, ...]
    program: str
    first: tuple[str, ...]
    again: tuple[str, ...] = ()
    continues: bool = True
    preset: str | None = None
    takes: Literal["env", "args", "file"] = "file"
    env: Callable[[Place], Mapping[str, str]] = field(default=lambda _: {})
    settings: Callable[[Place], None] = field(default=lambda _: None)
    python: str = "3.13"
    stdin: str = ""
    script: str = ""
    """For a framework: the agent's source, written into the project's parent folder as `agent.py`."""
    known: str = ""


def _claude(place: Place) -> Mapping[str, str]:
    base = {"ANTHROPIC_BASE_URL": place.base} if place.base else {}
    return {"ANTHROPIC_API_KEY": KEY, "CI": "1", **base}


def _codex(place: Place) -> None:
    base = f'openai_base_url = "{place.url("openai", "/v1")}"\n' if place.base else ""
    place.write(".codex/config.toml", f'model = "gpt-5.2-codex"\n{base}')
    place.write(".codex/auth.json", {"OPENAI_API_KEY": KEY, "auth_mode": "apikey"})


def _opencode(place: Place) -> None:
    options = {"apiKey": KEY, **({"baseURL": place.url("anthropic", "/v1")} if place.base else {})}
    place.write(
        ".config/opencode/opencode.json",
        {"autoupdate": False, "share": "disabled", "provider": {"anthropic": {"options": options}}},
    )


def _gemini(place: Place) -> Mapping[str, str]:
    base = {"GOOGLE_GEMINI_BASE_URL": place.base} if place.base else {}
    return {"GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true", **base}


def _gemini_settings(place: Place) -> None:
    place.write(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})


def _pi(place: Place) -> None:
    if place.base:
        place.write(".pi/agent/models.json", {"providers": {"anthropic": {"baseUrl": place.base}}})


def _cline(place: Place) -> None:
    settings = {"provider": "openai-compatible", "apiKey": KEY, "model": "gpt-4.1"}
    settings["baseUrl"] = place.url("openai", "/v1")
    stamp = "2026-01-01T00:00:00.000Z"
    entry = {"settings": settings, "updatedAt": stamp, "tokenSource": "manual"}
    place.write(
        ".cline/data/settings/providers.json",
        {"version": 1, "lastUsedProvider": "openai-compatible", "providers": {"openai-compatible": entry}},
    )


def _qwen(place: Place) -> Mapping[str, str]:
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": place.url("openai", "/v1"),
        "OPENAI_MODEL": "gpt-4.1",
    }


def _continue(place: Place) -> None:
    base = place.url("openai", "/v1")
    place.write(
        ".continue/config.yaml",
        "name: bench\nversion: 1.0.0\nschema: v1\nmodels:\n"
        "  - name: gpt\n    provider: openai\n    model: gpt-4.1\n"
        f"    apiKey: {KEY}\n    apiBase: {base}\n    roles: [chat]\n    capabilities: [tool_use]\n",
    )


def _vibe(place: Place) -> None:
    place.write(
        ".vibe/config.toml",
        'active_model = "bench"\nenable_telemetry = false\nenable_update_checks = false\n\n'
        f'[[providers]]\nname = "bench"\napi_base = "{place.url("mistral", "/v1")}"\n'
        'api_key_env_var = "MISTRAL_API_KEY"\napi_style = "openai"\nbackend = "generic"\n\n'
        '[[models]]\nname = "devstral-medium-latest"\nprovider = "bench"\nalias = "bench"\n',
    )


def _openai(place: Place) -> Mapping[str, str]:
    base = place.url("openai", "/v1")
    own = {"OPENAI_BASE_URL": base, "OPENAI_API_BASE": base} if place.base else {}
    return {"OPENAI_API_KEY": KEY, **own}


def _anthropic(place: Place) -> Mapping[str, str]:
    own = {"ANTHROPIC_BASE_URL": place.base} if place.base else {}
    return {"ANTHROPIC_API_KEY": KEY, **own}


_TOOLS = f'''
import pathlib, subprocess, sys

PROJECT = pathlib.Path.cwd()
QUESTIONS = [{FIRST!r}, {SECOND!r}]


def bash(command: str) -> str:
    """Run a shell command in the project."""
    return subprocess.run(command, shell=True, capture_output=True, text=True, cwd=PROJECT).stdout


def read_file(path: str) -> str:
    """Read a file of the project."""
    return pathlib.Path(path).read_text()

'''

_PYDANTIC_AI = (
    _TOOLS
    + """
from pydantic_ai import Agent
agent = Agent("{model}", system_prompt="You help with a small project. " * 300, tools=[bash, read_file])
history = []
for question in QUESTIONS:
    result = agent.run_sync(question, message_history=history)
    history = result.all_messages()
    print(result.output)
"""
)
_AGNO = (
    _TOOLS
    + """
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
agent = Agent(model=OpenAIChat(id="gpt-4.1"), tools=[bash, read_file], db=InMemoryDb(), telemetry=False,
              instructions="You help with a small project. " * 300, add_history_to_context=True,
              add_datetime_to_context=True)
for question in QUESTIONS:
    print(agent.run(question, session_id="bench").content)
"""
)
_OPENAI_AGENTS = (
    _TOOLS
    + """
from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
set_tracing_disabled(True)
agent = Agent(name="helper", model="gpt-4.1", instructions="You help with a small project. " * 300,
              tools=[function_tool(bash), function_tool(read_file)])
session = SQLiteSession("bench", sys.argv[1] if len(sys.argv) > 1 else ":memory:")
for question in QUESTIONS:
    print(Runner.run_sync(agent, question, session=session).final_output)
"""
)
_DEEPAGENTS = (
    _TOOLS
    + """
from deepagents import create_deep_agent
from langgraph.checkpoint.memory import InMemorySaver
agent = create_deep_agent(model="anthropic:claude-sonnet-4-5", tools=[bash, read_file],
                          system_prompt="You help with a small project.", checkpointer=InMemorySaver())
for question in QUESTIONS:
    state = agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "bench"}})
    print(state["messages"][-1].text)
"""
)

_CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
_AIDER = (
    "--model", "openai/gpt-4.1", "--weak-model", "openai/gpt-4o-mini", "--yes-always", "--no-check-update",
    "--no-show-model-warnings", "--analytics-disable", "--no-pretty", "--no-auto-commits",
)  # fmt: skip
_CLAUDE = "anthropic/claude-sonnet-4-5"
_PYDANTIC = ("pydantic-ai-slim[openai,anthropic]",)

CLIENTS = (
    Client(
        "claude", "npm", ("@anthropic-ai/claude-code",), "claude", preset="claude", takes="env",
        first=("-p", FIRST, "--allowedTools", "Bash,Read"),
        again=("-p", SECOND, "--continue", "--allowedTools", "Bash,Read"),
        env=_claude,
        known="True. The second process asks for the model without its 1M variant (the beta header is gone, "
        "too), and the model's name stands in a tool's description and in the system text.",
    ),
    Client(
        "codex", "npm", ("@openai/codex",), "codex", preset="codex", takes="args",
        first=(*_CODEX, FIRST), again=(*_CODEX, "resume", "--last", SECOND),
        settings=_codex,
    ),
    Client(
        "opencode", "npm", ("opencode-ai",), "opencode", preset="opencode",
        first=("run", "-m", _CLAUDE, FIRST),
        again=("run", "-m", _CLAUDE, "--continue", SECOND),
        settings=_opencode,
    ),
    Client(
        "gemini-cli", "npm", ("@google/gemini-cli",), "gemini", preset="gemini-cli", takes="env",
        first=("-y", "-m", "gemini-2.5-pro", "-p", FIRST),
        again=("-y", "-m", "gemini-2.5-pro", "--resume", "latest", "-p", SECOND),
        env=_gemini, settings=_gemini_settings,
        known="True. After --resume each result of a tool is sent twice; in some runs the skills named in a "
        "tool's description come in another order, too.",
    ),
    Client(
        "pi", "npm", ("@mariozechner/pi-coding-agent",), "pi", preset="pi",
        first=("--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", FIRST),
        again=("--provider", "anthropic", "--model", "claude-sonnet-4-5", "-c", "-p", SECOND),
        settings=_pi, env=lambda _: {"ANTHROPIC_API_KEY": KEY},
    ),
    Client(
        "cline", "npm", ("cline",), "cline", preset="cline",
        continues=False,
        first=("-P", "openai-compatible", FIRST), again=("-P", "openai-compatible", SECOND),
        settings=_cline,
    ),
    Client(
        "qwen-code", "npm", ("@qwen-code/qwen-code",), "qwen", preset="qwen-code", takes="env",
        first=("-y", "--auth-type", "openai", "-p", FIRST),
        again=("-y", "--auth-type", "openai", "--continue", "-p", SECOND),
        env=_qwen,
    ),
    Client(
        "continue", "npm", ("@continuedev/cli",), "cn", preset="continue",
        first=("--auto", "-p", FIRST), again=("--auto", "--resume", "-p", SECOND),
        settings=_continue, env=lambda _: {"CONTINUE_TELEMETRY_ENABLED": "0"},
    ),
    Client(
        "aider", "pypi", ("aider-chat",), "aider", preset="aider", takes="env", python="3.12",
        first=(*_AIDER, "app.py"), again=(*_AIDER, "--restore-chat-history", "app.py"),
        env=_openai, stdin=f"{FIRST}\n{SECOND}\n/add README.md\n{SECOND}\n",
        known="True. The edit rules are moved to the tail with each message, and /add changes the list of "
        "files ahead of the conversation.",
    ),
    Client(
        "mini-swe-agent", "pypi", ("mini-swe-agent",), "mini", preset="mini-swe-agent", takes="env",
        python="3.12", continues=False,
        first=("-m", "openai/gpt-4.1", "-t", FIRST, "-y", "--exit-immediately", "-l", "0"),
        again=("-m", "openai/gpt-4.1", "-t", SECOND, "-y", "--exit-immediately", "-l", "0"),
        env=lambda p: {**_openai(p), "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"},
    ),
    Client(
        "mistral-vibe", "pypi", ("mistral-vibe",), "vibe", preset="mistral-vibe", python="3.12",
        first=("--auto-approve", "--trust", "-p", FIRST),
        again=("--auto-approve", "--trust", "--continue", "-p", SECOND),
        known="True. After --continue the members of two tools' schemas come in another order.",
        settings=_vibe, env=lambda _: {"MISTRAL_API_KEY": KEY},
    ),
    Client(
        "pydantic-ai", "pypi", _PYDANTIC, "python", takes="env",
        first=("{script}",), script=_PYDANTIC_AI.replace("{model}", "openai:gpt-4.1"), env=_openai,
    ),
    Client(
        "pydantic-ai-anthropic", "pypi", _PYDANTIC, "python", takes="env",
        first=("{script}",), env=_anthropic,
        script=_PYDANTIC_AI.replace("{model}", "anthropic:claude-sonnet-4-5"),
    ),
    Client(
        "agno", "pypi", ("agno", "openai", "sqlalchemy"), "python", takes="env",
        first=("{script}",), script=_AGNO, env=_openai,
        known="True. `add_datetime_to_context` writes the time into the system message of every run.",
    ),
    Client(
        "openai-agents", "pypi", ("openai-agents",), "python", takes="env",
        first=("{script}", "{home}/session.db"), again=("{script}", "{home}/session.db"),
        script=_OPENAI_AGENTS, env=_openai,
    ),
    Client(
        "deepagents", "pypi", ("deepagents", "langchain-anthropic"), "python", takes="env",
        first=("{script}",), script=_DEEPAGENTS, env=_anthropic,
    ),
)  # fmt: skip
