"""How each agent is brought behind the proxy: `rules/agents/*.toml`, and the plan for one run.

Pure: from the command line and the environment of the user to the command line
and environment of the agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, Literal

from prefixguard.errors import InputError, RuleError
from prefixguard.proxy.environment import base_url_variables, forward_variables
from prefixguard.proxy.upstreams import Target, UpstreamRules, parse_target
from prefixguard.rulebook import Dated, read_tables, rules_folder

type Mode = Literal["base-url", "forward"]

_LAUNCHERS: Final = frozenset(
    {"npx", "pnpx", "bunx", "bun", "pnpm", "yarn", "uvx", "uv", "pipx", "env", "nice", "time", "timeout"}
)
_LOOKED_AT: Final = 5
"""How many words behind a launcher may name the agent."""


class Agent(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one agent.

    commands: names of its program; none for a library. mode: what `run` uses
    unless told otherwise, and why. base_url_env: variables that it takes its
    base URL from, with the path behind the address. base_url_args: arguments
    that do the same, put behind the program's name; {url} is replaced. env:
    what else it has to be told in its environment, unless the user says
    otherwise there. ca_env: the variables that were seen to make it trust our
    authority. user_agent: a regular expression for its User-Agent.

    For readers: package: `npm:NAME` or `pypi:NAME`. apis: what it speaks.
    settings: where else its base URL can be written. session_keys: what it
    names its session by (`session-keys.toml` decides). side_hosts: where it
    sends what is no prompt. turns, restart: what its prefix does from one
    request to the next, and in a new process.
    """

    name: str
    commands: tuple[str, ...]
    mode: Mode
    why: str
    session_keys: tuple[str, ...]
    base_url_env: Mapping[str, str] = {}
    base_url_args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    ca_env: tuple[str, ...] = ()
    side_hosts: tuple[str, ...] = ()
    user_agent: str | None = None
    package: str = ""
    apis: tuple[str, ...] = ()
    settings: str = ""
    turns: str = ""
    restart: str = ""
    notes: str = ""


def read_agents(folder: Path | None = None) -> tuple[Agent, ...]:
    """Every agent of a rules folder (the packaged one by default). Raises RuleError."""
    agents = []
    for path, agent in read_tables((folder or rules_folder()) / "agents", Agent):
        if path.stem != agent.name:
            raise RuleError(f"{path}: holds {agent.name}, so it must be named {agent.name}.toml")
        try:
            re.compile(agent.user_agent or "")
        except re.error as error:
            raise RuleError(f"{path}: user_agent: {error}") from error
        agents.append(agent)
    return tuple(agents)


def agent_of(command: Sequence[str], agents: Sequence[Agent]) -> Agent | None:
    """The agent that a command line runs, also behind a launcher such as npx or uvx."""
    names = {name: agent for agent in agents for name in agent.commands}
    first = _program(command[0])
    if first in names:
        return names[first]
    if first not in _LAUNCHERS:
        return None
    words = (_program(word) for word in command[1 : 1 + _LOOKED_AT] if not word.startswith("-"))
    return next((names[word] for word in words if word in names), None)


def _program(word: str) -> str:
    """`/usr/bin/codex`, `codex.exe`, `@openai/codex@latest` all name codex."""
    name = PurePath(word.replace("\\", "/")).name
    return re.sub(r"(?<=.)@.*$|\.(exe|cmd|ps1)$", "", name, flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Plan:
    """How one command is to be run.

    names: upstreams that the user's own environment named. environ and
    command need the proxy's address, which is known once it listens.
    """

    mode: Mode
    agent: Agent | None
    names: Mapping[str, Target]
    environ: Callable[[str, Path, Path], dict[str, str]]
    command: Callable[[str], list[str]]


def plan_run(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    agents: Sequence[Agent],
    rules: UpstreamRules,
    upstream: Target | None = None,
    mode: Mode | None = None,
    pointed: bool = False,
) -> Plan:
    """How to run a command behind the proxy. Raises InputError where it cannot be done.

    pointed: the agent's own settings name the proxy's address.

    A base URL that the user has set already is kept as the upstream behind the
    proxy, also for an agent that would otherwise go through forward mode.
    """
    agent = agent_of(command, agents)
    variables = agent.base_url_env if agent else base_url_variables(rules, "")
    named = {name: environ[name] for name in variables if environ.get(name)}
    if mode is None:
        wanted = agent.mode if agent else "base-url"
        mode = "base-url" if upstream or named else wanted
    told = {name: value for name, value in agent.env.items() if name not in environ} if agent else {}
    if mode == "forward":
        if upstream:
            raise InputError("--upstream needs base-URL mode: in forward mode the agent chooses the server")
        return Plan(mode, agent, {}, _forward_environ(environ, told), lambda _: list(command))
    arguments = agent.base_url_args if agent else ()
    if agent and not variables and not arguments and not pointed:
        raise InputError(
            f"{agent.name} cannot be given a base URL from outside ({agent.why}): write "
            "http://127.0.0.1:8787 there, and run it with --listen 127.0.0.1:8787 --upstream URL"
        )
    # What else the environment names is led this way, too: a library may prefer it to the agent's own.
    others = {name: path for name, path in base_url_variables(rules, "").items() if environ.get(name)}
    variables = {**others, **variables}
    named = {name: environ[name] for name in variables if environ.get(name)}
    targets = {} if upstream else {_name(name): parse_target(value) for name, value in named.items()}

    def environment(url: str, _bundle: Path, _certificate: Path) -> dict[str, str]:
        return told | {
            name: f"{url}/to/{_name(name)}" if _name(name) in targets else url + path
            for name, path in variables.items()
        }

    def words(url: str) -> list[str]:
        # The agent may stand behind a launcher: its options go behind its own name.
        at = next((i for i, word in enumerate(command) if agent and _program(word) in agent.commands), 0)
        extra = [argument.replace("{url}", url) for argument in arguments]
        return [*command[: at + 1], *extra, *command[at + 1 :]]

    return Plan(mode, agent, targets, environment, words)


def _forward_environ(
    environ: Mapping[str, str], told: Mapping[str, str]
) -> Callable[[str, Path, Path], dict[str, str]]:
    return lambda url, bundle, certificate: {
        **told,
        **forward_variables(url, bundle, certificate, environ),
    }


def _name(variable: str) -> str:
    return variable.lower().replace("_", "-")
