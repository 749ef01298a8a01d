"""`prefixguard run`: the agent's terminal, signals and exit code are its own; the report comes at the end."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prefixguard.errors import InputError
from prefixguard.proxy.agents import agent_of, plan_run, read_agents
from prefixguard.proxy.environment import forward_variables
from prefixguard.proxy.upstreams import parse_target, read_upstreams
from prefixguard.store import Store

from .certificates import make_authority
from .running import MAIN
from .upstream import Answer, Upstream

AGENTS = read_agents()
RULES = read_upstreams()

AGENT = """
import json, os, sys, urllib.request
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    data=json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode(),
    headers={"content-type": "application/json", "x-session-id": "by-run"},
)
print("answer", urllib.request.urlopen(request).status, "tty", sys.stdin.isatty() and sys.stdout.isatty())
sys.exit(7)
"""

FORWARD_AGENT = """
import json, os, ssl, sys, urllib.request
# The server of this test is local, and local servers are not called through a proxy.
for name in ("NO_PROXY", "no_proxy"):
    assert "127.0.0.1" in os.environ.pop(name)
context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
opener = urllib.request.build_opener(
    urllib.request.ProxyHandler({"https": os.environ["HTTPS_PROXY"]}),
    urllib.request.HTTPSHandler(context=context),
)
request = urllib.request.Request(
    sys.argv[1] + "/v1/messages", data=b'{"model": "m"}',
    headers={"x-claude-code-session-id": "forwarded", "content-type": "application/json"},
)
print(opener.open(request).read().decode())
"""


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path), "NO_COLOR": "1", **more}


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty:DeprecationWarning")
def test_terminal_and_exit_code_are_the_agents(tmp_path: Path) -> None:
    """On a real terminal: the agent sees it as its own, and our lines come before and after its lines."""
    with Upstream(lambda _: Answer()) as upstream:
        words = [
            sys.executable,
            "-c",
            MAIN,
            "run",
            "--upstream",
            upstream.url,
            "--store",
            str(tmp_path / "r.db"),
        ]
        pid, terminal = pty.fork()  # the child only calls exec
        if pid == 0:
            os.execve(sys.executable, [*words, "--", sys.executable, "-c", AGENT], environ(tmp_path))
        output = b""
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            output += data
        _, status = os.waitpid(pid, 0)
    lines = output.decode().splitlines()
    assert os.waitstatus_to_exitcode(status) == 7
    at = lines.index("answer 200 tty True")
    assert lines[:at]
    assert all(line.startswith("prefixguard: recording") for line in lines[:at])
    assert any("recorded 1 exchange" in line for line in lines[at:])
    assert any("by-run" in line for line in lines[at:])
    with Store.open(tmp_path / "r.db") as store:
        assert [row.id for row in store.sessions()] == ["by-run"]


def test_signals_reach_the_agent_and_its_output_is_untouched(tmp_path: Path) -> None:
    waits = "import signal, sys, time; print('ready', flush=True)\n"
    waits += "signal.signal(signal.SIGTERM, lambda *_: (print('told'), sys.exit(9)))\ntime.sleep(60)"
    words = [sys.executable, "-c", MAIN, "run", "--store", str(tmp_path / "r.db")]
    process = subprocess.Popen(
        [*words, "--", sys.executable, "-c", waits],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environ(tmp_path),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (9, "told\n")
    assert "recorded 0 exchanges" in errors


def test_a_known_agent_goes_through_forward_mode(tmp_path: Path) -> None:
    """A program called `claude` is given a proxy and roots to trust, and no base URL."""
    authority, context = make_authority(tmp_path)
    program = tmp_path / "claude"
    program.write_text(f"#!{sys.executable}\n{FORWARD_AGENT}")
    program.chmod(0o755)
    with Upstream(lambda _: Answer([b'{"ok": 1}']), tls=context) as upstream:
        url = f"https://localhost:{upstream.port}"
        words = [
            sys.executable,
            "-c",
            MAIN,
            "run",
            "--store",
            str(tmp_path / "r.db"),
            "--open-host",
            "localhost",
        ]
        result = subprocess.run(
            [*words, "--", str(program), url], capture_output=True, text=True, timeout=120, check=False,
            env={**environ(tmp_path, SSL_CERT_FILE=str(authority))},
        )  # fmt: skip
    assert (result.returncode, result.stdout) == (0, '{"ok": 1}\n'), result.stderr
    with Store.open(tmp_path / "r.db") as store:
        assert [row.id for row in store.sessions()] == ["forwarded"], result.stderr
        (exchange,) = store.exchanges()
    assert json.loads(exchange.extra["agent"]) == "claude"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["codex", "exec", "x"], "codex"),
        (["/usr/local/bin/claude"], "claude"),
        (["npx", "-y", "@openai/codex@latest"], "codex"),
        (["uvx", "aider"], "aider"),
        (["gemini.cmd"], "gemini-cli"),
        (["python", "codex"], None),
        (["ls"], None),
    ],
)
def test_agent_of_a_command_line(command: list[str], name: str | None) -> None:
    agent = agent_of(command, AGENTS)
    assert (agent.name if agent else None) == name


def plan(command: list[str], env: dict[str, str], **options: object):  # type: ignore[no-untyped-def]
    made = plan_run(command, env, agents=AGENTS, rules=RULES, **options)  # type: ignore[arg-type]
    return made, made.environ("http://p:1", Path("/b"), Path("/c")), made.command("http://p:1")


def test_an_unknown_command_gets_base_urls() -> None:
    made, env, words = plan(["python", "agent.py"], {})
    assert made.mode == "base-url"
    assert env["OPENAI_BASE_URL"] == "http://p:1/v1"
    assert env["ANTHROPIC_BASE_URL"] == "http://p:1"
    assert "HTTPS_PROXY" not in env
    assert words == ["python", "agent.py"]


def test_base_urls_that_are_set_already_are_kept_behind_the_proxy() -> None:
    made, env, _ = plan(["python"], {"OPENAI_BASE_URL": "http://127.0.0.1:8080/v1"})
    assert env["OPENAI_BASE_URL"] == "http://p:1/to/openai-base-url"
    assert made.names["openai-base-url"].path("/chat/completions") == "/v1/chat/completions"
    assert env["ANTHROPIC_BASE_URL"] == "http://p:1"


def test_a_base_url_that_is_not_the_agents_own_is_kept_behind_the_proxy_too() -> None:
    """A library under the agent may read it, and go past the proxy."""
    made, env, _ = plan(["claude"], {"GOOGLE_GEMINI_BASE_URL": "http://h:1"}, mode="base-url")
    assert env["GOOGLE_GEMINI_BASE_URL"] == "http://p:1/to/google-gemini-base-url"
    assert set(made.names) == {"google-gemini-base-url"}
    made, _, _ = plan(["claude"], {"GOOGLE_GEMINI_BASE_URL": "http://h:1"})
    assert made.mode == "forward"


def test_an_agent_with_a_base_url_of_its_own_is_not_put_in_forward_mode() -> None:
    made, env, _ = plan(["claude"], {"ANTHROPIC_BASE_URL": "https://gateway.example/anthropic"})
    assert made.mode == "base-url"
    assert env == {"ANTHROPIC_BASE_URL": "http://p:1/to/anthropic-base-url"}


def test_an_agent_that_takes_its_base_url_as_an_argument() -> None:
    target = parse_target("http://127.0.0.1:8080")
    made, env, words = plan(["npx", "codex", "exec"], {}, upstream=target)
    assert (made.mode, env) == ("base-url", {})
    assert words == ["npx", "codex", "-c", 'openai_base_url="http://p:1/v1"', "exec"]


def test_an_agent_whose_settings_name_the_proxy() -> None:
    made, env, words = plan(["opencode"], {}, upstream=parse_target("http://h:1"), pointed=True)
    assert (made.mode, env, words) == ("base-url", {}, ["opencode"])


@pytest.mark.parametrize("mode", ["forward", "base-url"])
def test_what_an_agent_has_to_be_told_besides(mode: str) -> None:
    _, env, _ = plan(["cline"], {}, mode=mode, pointed=True)
    assert env["CLINE_SESSION_BACKEND_MODE"] == "local"
    _, env, _ = plan(["cline"], {"CLINE_SESSION_BACKEND_MODE": "hub"}, mode=mode, pointed=True)
    assert "CLINE_SESSION_BACKEND_MODE" not in env


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(InputError, match="configuration file"):
        plan(["opencode"], {}, upstream=parse_target("http://h:1"))
    with pytest.raises(InputError, match="base-URL mode"):
        plan(["claude"], {}, upstream=parse_target("http://h:1"), mode="forward")


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_forward_mode_sets_what_each_agent_trusts(agent) -> None:  # type: ignore[no-untyped-def]
    variables = forward_variables("http://p:1", Path("/bundle"), Path("/own"), {"NO_PROXY": "intern.example"})
    assert set(agent.ca_env) <= set(variables)
    assert variables["NO_PROXY"].split(",")[0] == "intern.example"
