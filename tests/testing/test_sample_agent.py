"""The sample repository: plugin and gate are red on the broken agent and green on the mended one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("anthropic")
SAMPLE = Path(__file__).parents[2] / "fixtures" / "sample-agent"


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    skip = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    return Path(shutil.copytree(SAMPLE, tmp_path / "sample", ignore=skip))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


GATE = ("-c", "from prefixguard.cli import main; main()", "check")


def test_the_agents_own_tests_are_red_and_green(sample: Path) -> None:
    done = run(sample, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--prefixguard-log", "new")
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert "FAILED tests/test_broken.py::test_prefix_is_stable" in done.stdout
    row = next(
        number
        for number, line in enumerate((sample / "desk/broken.py").read_text().splitlines(), 1)
        if "messages.create(" in line
    )
    assert f"sent by desk/broken.py:{row} in _send, called from desk/broken.py:" in done.stdout
    # What the plugin wrote, the gate reads: red and green again.
    for name, code in (("broken", 1), ("mended", 0)):
        log = f"new/tests.test_{name}.py.test_prefix_is_stable.jsonl"
        assert run(sample, *GATE, log).returncode == code


@pytest.mark.parametrize(("name", "code"), [("broken", 1), ("mended", 0)])
def test_the_gate_is_red_and_green_on_the_recordings(sample: Path, name: str, code: int) -> None:
    done = run(sample, *GATE, f"recordings/{name}", "--output-format", "json")
    assert done.returncode == code, done.stderr
    document = json.loads(done.stdout)
    broken = {violation["limit"] for violation in document["violations"]}
    assert broken == ({"max-breaks", "min-hit-rate"} if code else set())
    assert {fault["finding"]["code"] for fault in document["faults"]} == ({"PG101"} if code else set())
    files = {fault["finding"]["source"]["filename"] for fault in document["faults"]}
    assert files == ({"desk/broken.py"} if code else set())


def test_the_second_fault_shows_when_the_first_is_mended(sample: Path) -> None:
    agent = sample / "desk/broken.py"
    agent.write_text(
        agent.read_text().replace('f"It is {datetime.now().isoformat()}.\\n\\n{RULES}"', "RULES")
    )
    done = run(sample, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_broken.py")
    assert "PG101" not in done.stdout
    assert "PG302" in done.stdout, done.stdout
