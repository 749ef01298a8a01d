"""The pytest plugin in real pytest runs: fixture, marker, options, logs, workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from prefixguard.importers import read_log
from prefixguard.testing.plugin import log_name

pytest_plugins = ("pytester",)

AGENT = """
import json
import httpx

RULES = "You are the clerk of a lending library; answer in one sentence. " * 6


def answer(request):
    text = "The book is on the second floor, on the shelf beside the window."
    return httpx.Response(200, json={"choices": [{"message": {"role": "assistant", "content": text}}]})


class Agent:
    def __init__(self, clock=False):
        self.client = httpx.Client(transport=httpx.MockTransport(answer))
        self.clock, self.count, self.messages = clock, 0, []

    def ask(self, question):
        self.count += 1
        head = f"It is 09:00:{self.count:02}. {RULES}" if self.clock else RULES
        self.messages.append({"role": "user", "content": question})
        body = {"model": "m", "messages": [{"role": "system", "content": head}, *self.messages]}
        reply = self.client.post("http://llm/v1/chat/completions", json=body).json()
        self.messages.append(reply["choices"][0]["message"])


def talk(clock):
    agent = Agent(clock)
    for question in ("Where is it?", "And the next one?", "Thank you."):
        agent.ask(question)
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    pytest.importorskip("httpx")
    pytester.makepyfile(agent=AGENT)
    return pytester


def test_fixture_and_marker_fail_the_test_that_breaks_the_prefix_and_no_other(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        import pytest
        from agent import talk

        @pytest.mark.parametrize("clock", [True, False])
        def test_fixture(prefixguard, clock):
            talk(clock)
            assert len(prefixguard) == 3
            prefixguard.assert_prefix_stable()

        @pytest.mark.prefix_stable
        @pytest.mark.parametrize("clock", [True, False])
        def test_marker(clock):
            talk(clock)

        @pytest.mark.prefix_stable(allow="PG101")
        def test_allowed():
            talk(True)

        def test_neither():
            talk(True)
        """
    )
    result = run.runpytest_inprocess("-p", "no:xdist")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*the prompt's prefix is not stable: 2 breaks, 0 allowed (in 3 requests)",
            "*PG101 clock-in-prefix: A time of day in a reused part of the prompt",
            "*before It is 09:00:0[[]-2-[]]. You are the clerk*",
            "*after  It is 09:00:0{+3+}. You are the clerk*",
            "*sent by agent.py:22 in ask, called from agent.py:29 in talk, called from *.py:6 in test_*",
            "*To do: Put the time in the newest user message*",
        ]
    )
    result.stdout.fnmatch_lines(["FAILED *test_fixture?True?*", "FAILED *test_marker?True?*"])


def test_options_hold_every_test_and_the_marker_goes_first(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        import pytest
        from agent import talk

        def test_clock():
            talk(True)

        def test_no_call():
            pass

        @pytest.mark.prefix_stable(max_breaks=5)
        def test_marked():
            talk(True)
        """
    )
    run.runpytest_inprocess("--prefixguard-all").assert_outcomes(passed=2, failed=1)
    run.runpytest_inprocess("--prefixguard-all", "--prefixguard-max-breaks=2").assert_outcomes(passed=3)
    run.runpytest_inprocess("--prefixguard-all", "--prefixguard-allow=pg1").assert_outcomes(passed=3)
    run.makeini("[pytest]\nprefixguard_all = true\nprefixguard_allow = PG301 PG101\n")
    run.runpytest_inprocess().assert_outcomes(passed=3)
    run.makeini("[pytest]\nprefixguard_all = true\nprefixguard_max_breaks = 1\n")
    run.runpytest_inprocess().assert_outcomes(passed=2, failed=1)
    run.makeini("[pytest]\nprefixguard_all = true\nprefixguard_min_ratio = 1.0\nprefixguard_allow = PG1\n")
    run.runpytest_inprocess().assert_outcomes(passed=1, failed=2)


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        ("prefix_stable(max_break=1)", "*prefix_stable does not take max_break*"),
        ("prefix_stable(3)", "*prefix_stable does not take an argument without a name*"),
        ('prefix_stable(allow="PG999")', "*'PG999' is no code*"),
        ('prefix_stable(server="nowhere")', "*no such cache rule*"),
    ],
)
def test_a_wrong_marker_is_told(run: pytest.Pytester, marker: str, words: str) -> None:
    run.makepyfile(
        f"""
        import pytest
        from agent import talk

        @pytest.mark.{marker}
        def test_it():
            talk(False)
        """
    )
    result = run.runpytest_inprocess()
    assert result.ret != 0
    result.stdout.fnmatch_lines([words])


def test_a_test_that_asks_and_calls_no_model_fails(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
        def test_it(prefixguard):
            prefixguard.assert_prefix_stable()
        """
    )
    result = run.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no request to a model was recorded*"])


def test_calls_in_fixtures_are_recorded_and_a_failing_test_stays_its_own_failure(
    run: pytest.Pytester,
) -> None:
    run.makepyfile(
        """
        import pytest
        from agent import talk

        @pytest.fixture
        def spoken():
            talk(True)

        def test_recorded(spoken, prefixguard):
            assert len(prefixguard) == 3

        @pytest.mark.prefix_stable
        def test_failing(spoken):
            assert "mine" == "yours"
        """
    )
    result = run.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*prefix is not stable*")


def test_workers_write_a_log_for_each_test(run: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    run.makepyfile(
        """
        import pytest
        from agent import talk

        @pytest.mark.parametrize("name", ["a/b", "a:b", "ab"])
        def test_it(name):
            talk(name == "ab")

        def test_no_call():
            pass
        """
    )
    result = run.runpytest_subprocess("-n2", "--prefixguard-log=logs", "--prefixguard-all")
    result.assert_outcomes(passed=3, failed=1)
    logs = sorted((run.path / "logs").iterdir())
    assert len(logs) == 3, logs
    assert all(len(list(read_log(log))) == 3 for log in logs)


def test_names_of_logs_differ_and_are_safe() -> None:
    names = [
        "t/test_a.py::test_b",
        "t/test_a.py::test_b[x/y]",
        "t/test_a.py::test_b[x:y]",
        "t.py::" + "x" * 300,
    ]
    logs = [log_name(name) for name in names]
    assert logs[0] == "t.test_a.py.test_b.jsonl"
    assert len(set(logs)) == len(names)
    assert all(len(log) < 160 and "/" not in log and ":" not in log for log in logs)


def test_pytest_starts_without_anything_of_ours_but_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    program = (
        "import sys, pytest; before = set(sys.modules); code = pytest.main(['-q', '-p', 'no:cacheprovider']);"
        "print('LOADED', sorted(n for n in sys.modules if n.split('.')[0] in"
        " ('prefixguard', 'msgspec', 'httpx', 'rich', 'sqlalchemy', 'openai')), code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]
    modules = ["prefixguard", "prefixguard.testing", "prefixguard.testing.plugin"]
    assert line == f"LOADED {modules} 0"


def test_it_works_without_the_sdks_and_their_clients(tmp_path: Path) -> None:
    (tmp_path / "test_bodies.py").write_text(
        "from prefixguard.testing import assert_prefix_stable\n"
        "HEAD = 'You keep the garden of a small abbey; be brief. ' * 9\n"
        "def body(clock, *texts):\n"
        "    roles = ('user', 'assistant', 'user')\n"
        "    said = [{'role': r, 'content': t} for r, t in zip(roles, texts)]\n"
        "    return {'model': 'm', 'messages': [{'role': 'system', 'content': clock + HEAD}, *said]}\n"
        "def test_stable(prefixguard):\n"
        "    prefixguard.record(body('', 'Hello'))\n"
        "    prefixguard.record(body('', 'Hello', 'Good day', 'What grows?'))\n"
        "    prefixguard.assert_prefix_stable()\n"
        "def test_broken():\n"
        "    bodies = [body('It is 9:01:11. ', 'Hello'), body('It is 9:01:12. ', 'Hello', 'Hi', 'Grow?')]\n"
        "    assert_prefix_stable(bodies)\n"
    )
    hide = (
        "import sys; [sys.modules.__setitem__(n, None) for n in ('httpx', 'httpx2', 'openai', 'anthropic')];"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{hide} import pytest; pytest.main(['-q', '-p', 'no:cacheprovider'])"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "PG101 clock-in-prefix" in done.stdout
    assert "sent by test_bodies.py:13 in test_broken" in done.stdout
