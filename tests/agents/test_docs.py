"""The pages about agents say what the rules and the last runs say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from bench.agents.clients import CLIENTS
from bench.agents.table import Table, markdown
from prefixguard.cli.rules import command
from prefixguard.errors import InputError
from prefixguard.proxy.agents import read_agents
from prefixguard.proxy.agents_page import agents_page
from prefixguard.rulebook import Rulebook
from prefixguard.sessions import SessionKeyRules

ROOT = Path(__file__).parents[2]
AGENTS = read_agents()


def test_the_page_is_what_the_rules_say() -> None:
    """Write it anew with `prefixguard rules agents --format markdown > docs/agents.md`."""
    assert (ROOT / "docs" / "agents.md").read_text() == agents_page(AGENTS)


def test_the_table_is_what_was_run() -> None:
    """Write both anew with `python -m bench.agents --json ... --markdown ...`."""
    table = msgspec.json.decode((ROOT / "bench" / "agents" / "table.json").read_bytes(), type=Table)
    assert (ROOT / "docs" / "agents-stability.md").read_text() == markdown(table)
    assert {row.name for row in table.rows} <= {client.name for client in CLIENTS}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_what_a_reader_is_told_of_each(agent) -> None:  # type: ignore[no-untyped-def]
    assert agent.package
    assert agent.apis
    assert agent.turns
    assert agent.restart
    read = {key.name for key in Rulebook().table("session-keys", SessionKeyRules).key}
    assert set(agent.session_keys) <= read


def test_the_command() -> None:
    one = CliRunner().invoke(command, ["agents", "codex"], catch_exceptions=False)
    assert one.output.startswith("codex\n")
    assert "openai_base_url" in one.output
    every = CliRunner().invoke(command, ["agents"], catch_exceptions=False)
    assert len(every.output.splitlines()) == len(AGENTS)
    as_json = CliRunner().invoke(command, ["agents", "codex", "--format", "json"], catch_exceptions=False)
    assert msgspec.json.decode(as_json.output)[0]["name"] == "codex"
    with pytest.raises(InputError, match="no agent is called 'codx'"):
        CliRunner().invoke(command, ["agents", "codx"], catch_exceptions=False)
