"""What is known of the agents, for readers: one in full as text, all as the page docs/agents.md.

Pure: from `rules/agents` to text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from prefixguard.proxy.agents import Agent

_WIDTH = 110
_TITLES = {
    "package": "Package",
    "apis": "Speaks",
    "mode": "`run` uses",
    "base_url": "Base URL",
    "session": "Session",
    "ca": "Authority",
    "side": "Side traffic",
    "turns": "From turn to turn",
    "restart": "After a restart",
    "notes": "Beware",
    "source": "Source",
}
_HEAD = """\
# Agents

What `prefixguard run` knows of each agent, and what its prompt's prefix does. This page is written by
`prefixguard rules agents --format markdown` from `rules/agents`; `prefixguard rules agents NAME` shows one.

```
prefixguard run -- claude                    # chooses the way by the command's name
prefixguard run --mode base-url -- claude    # or as you say
prefixguard run -- python agent.py           # anything else gets base URLs in its environment
```

An agent whose base URL stands in its own settings can be pointed at a fixed address there and run with
`--listen`: `prefixguard run --listen 127.0.0.1:8787 --upstream URL -- opencode`. In forward mode the agent
goes through `HTTPS_PROXY` and trusts an authority of this machine: see [the proxy](proxy.md). What was
seen when they were run against a scripted server, with and without the proxy, is in
[How stable are today's agents](agents-stability.md).

Where an agent names no session, requests are placed by their content.
"""


def agents_page(agents: Sequence[Agent]) -> str:
    """The whole page as Markdown."""
    programs = [agent for agent in agents if agent.commands]
    libraries = [agent for agent in agents if not agent.commands]
    lines = [_HEAD, "## Programs", ""]
    for agent in programs:
        lines += [*_section(agent), ""]
    lines += [
        "## Libraries",
        "",
        "Your own program is the agent: `prefixguard run -- python agent.py`. Where the base URL is an",
        "argument, read it from a variable that `run` sets, such as `OPENAI_BASE_URL`.",
        "",
    ]
    for agent in libraries:
        lines += [*_section(agent), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(agent: Agent) -> Iterator[str]:
    yield f"### {agent.name}"
    yield ""
    for key, text in facts(agent):
        yield _folded(f"- {_TITLES[key]}: {text}", "  ")


def facts(agent: Agent) -> Iterator[tuple[str, str]]:
    """(what, said in Markdown) of one agent; what is unknown is left out."""
    if agent.package:
        yield "package", f"`{agent.package.partition(':')[2]}` ({agent.package.partition(':')[0]})"
    if agent.apis:
        yield "apis", ", ".join(agent.apis)
    if agent.commands:
        yield "mode", f"{agent.mode} mode: {agent.why}"
    yield "base_url", _base_url(agent)
    if agent.session_keys:
        yield "session", ", ".join(f"`{key}`" for key in agent.session_keys)
    if agent.ca_env:
        yield "ca", " or ".join(f"`{name}`" for name in agent.ca_env)
    if agent.side_hosts:
        yield "side", ", ".join(f"`{host}`" for host in agent.side_hosts)
    for key in ("turns", "restart", "notes"):
        if text := getattr(agent, key):
            yield key, text
    unverified = "" if agent.verified else " (not verified)"
    yield "source", f"{agent.source}, {agent.date}{unverified}"


def _base_url(agent: Agent) -> str:
    ways = [f"`{name}`" for name in agent.base_url_env]
    if agent.base_url_args:
        ways.append("`" + " ".join(agent.base_url_args) + "`")
    if agent.settings:
        ways.append(agent.settings)
    return " or ".join(ways) or agent.why


def agent_text(agent: Agent) -> str:
    """One agent as plain text."""
    width = max(map(len, _TITLES.values()))
    told = ((_TITLES[key].replace("`", ""), text.replace("`", "")) for key, text in facts(agent))
    lines = (_folded(f"  {title:<{width}}  {text}", " " * (width + 4)) for title, text in told)
    return "\n".join((agent.name, *lines))


def _folded(text: str, indent: str) -> str:
    return textwrap.fill(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def agents_table(agents: Sequence[Agent]) -> str:
    """All agents, a line each."""
    width = max((len(agent.name) for agent in agents), default=0)
    rows = ((a.name, a.mode if a.commands else "library", _base_url(a).replace("`", "")) for a in agents)
    return "\n".join(f"{name:<{width}}  {way:<8}  {base}" for name, way, base in rows)
