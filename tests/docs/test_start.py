"""The five-minute start, as it is written: its agent, its stand-in for a model, its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from prefixguard.cli.lint import command as lint

pytest.importorskip("mitmproxy", reason="the extra `proxy` is not installed")
pytest.importorskip("openai", reason="the extra `engines` is not installed")

PAGE = (Path(__file__).parents[2] / "docs/start.md").read_text(encoding="utf-8")
AGENT, MEND, MODEL = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def mended() -> str:
    """The agent with the lines that the page gives."""
    asked, system = MEND.splitlines()
    code = re.sub(
        r"^    history\.append\(\{\"role\": \"user\".*$", lambda _: asked, AGENT, flags=re.MULTILINE
    )
    return re.sub(r"^    system = .*$", lambda _: system, code, flags=re.MULTILINE)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    """The page's stand-in for a model, on a free port."""
    code = MODEL.replace('HTTPServer(("127.0.0.1", 8001), Model).serve_forever()', "")
    code += 's = HTTPServer(("127.0.0.1", 0), Model)\nprint(s.server_port, flush=True)\ns.serve_forever()\n'
    (tmp_path / "model.py").write_text(code)
    server = subprocess.Popen(
        [sys.executable, tmp_path / "model.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    server.kill()
    server.communicate()


def test_the_linter_says_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT)
    shown = PAGE.partition("$ prefixguard lint agent.py\n")[2].partition("```")[0]
    assert CliRunner().invoke(lint, ["agent.py", "--no-cache"]).output == shown
    Path("agent.py").write_text(mended())
    result = CliRunner().invoke(lint, ["agent.py", "--no-cache"])
    assert result.exit_code == 0, result.output


def test_the_report_names_the_clock_and_then_no_more(model: str, tmp_path: Path) -> None:
    environment = {**os.environ, "OPENAI_API_KEY": "none", "PREFIXGUARD_STORE": str(tmp_path / "r.sqlite")}
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        environment.pop(name, None)
    said = []
    for code in (AGENT, mended()):
        (tmp_path / "agent.py").write_text(code)
        command = [
            sys.executable,
            "-m",
            "prefixguard",
            "run",
            "--upstream",
            model,
            "--",
            sys.executable,
            "agent.py",
        ]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=True
        )
        said.append(done.stdout + done.stderr)
    assert "recorded 4 exchanges, 3 breaks" in said[0]
    assert "PG101 clock-in-prefix: A time of day in a reused part of the prompt" in said[0]
    assert "recorded 4 exchanges, 0 breaks" in said[1]
    assert "No break." in said[1]
