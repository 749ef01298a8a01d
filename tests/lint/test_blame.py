"""From a break on the wire to the line: agents that really send, their requests analysed, the line named."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import openai
import pytest
from proxy.running import RunningProxy
from proxy.upstream import Answer, Request, Upstream

from prefixguard.analysis import Options as AnalysisOptions
from prefixguard.analysis import analyze
from prefixguard.blame import Hole, SourceIndex, confirmed, with_sources
from prefixguard.exchange import Exchange
from prefixguard.lint.index import index_of
from prefixguard.lint.run import Options, lint
from prefixguard.store import Store
from prefixguard.turn import Analysis

AGENTS = sorted((Path(__file__).parent.parent.parent / "fixtures" / "blame").glob("*.py"))
RULES = "You keep the log of a lighthouse. Weather first, then ships, then birds. " * 30


def answered(request: Request) -> Answer:
    """A reply that names how far the conversation is, so that each is another text."""
    count = len(json.loads(request.body)["messages"])
    message = {
        "role": "assistant",
        "content": f"Noted at {count}: a barque passed, northbound, under topsails.",
    }
    body = {
        "id": f"chatcmpl-{count}", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912},
    }  # fmt: skip
    return Answer([json.dumps(body).encode()])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[Exchange]]:
    """Runs an agent with the real SDK through the real recorder, and gives what was stored."""
    kept: dict[Path, list[Exchange]] = {}
    with (
        Upstream(answered) as upstream,
        RunningProxy(tmp_path_factory.mktemp("proxy"), "--upstream", upstream.url) as proxy,
    ):
        total = 0
        for path in AGENTS:
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            client = openai.OpenAI(
                api_key="sk-x", base_url=f"{proxy.url}/v1", default_headers={"x-session-id": path.stem}
            )
            with client:
                module.main(client, RULES)
            total += len(module.QUESTIONS)
        proxy.stored(total)
        with Store.open(proxy.store_path) as store:
            for exchange in store.exchanges():
                agent = next(path for path in AGENTS if path.stem == exchange.headers["x-session-id"])
                kept.setdefault(agent, []).append(exchange)
    return kept.__getitem__


def analysed(exchanges: list[Exchange]) -> Analysis:
    return analyze(exchanges, options=AnalysisOptions(server="vllm"))


def marked(path: Path) -> set[int]:
    return {
        row for row, line in enumerate(path.read_text().split("\n"), 1) if line.rstrip().endswith("# here")
    }


def located(path: Path, exchanges: list[Exchange]) -> tuple[list[int], int]:
    """The rows blamed for the breaks of a run, and how many breaks there were."""
    index = index_of(lint([path], Options(jobs=1)))
    analysis = analysed(exchanges)
    breaks = [turn for session in analysis.sessions for turn in session.turns if turn.is_break]
    blames = [index.locate(turn) for turn in breaks]
    return [blame.line.row for blame in blames if blame is not None], len(breaks)


def test_there_are_agents() -> None:
    assert len(AGENTS) >= 10


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_the_line_that_made_the_break_is_named(
    path: Path, recorded: Callable[[Path], list[Exchange]]
) -> None:
    rows, breaks = located(path, recorded(path))
    assert breaks >= 1
    assert len(rows) == breaks
    assert set(rows) <= {row + delta for row in marked(path) for delta in (-1, 0, 1)}


def test_a_finding_is_confirmed_and_the_analysis_names_the_line(
    recorded: Callable[[Path], list[Exchange]],
) -> None:
    path = next(agent for agent in AGENTS if agent.stem == "clock")
    report = lint([path], Options(jobs=1))
    index = index_of(report)
    analysis = analysed(recorded(path))
    assert [report.findings[key].code for key in confirmed(analysis, index)] == ["PG101"]
    sourced = with_sources(analysis, index)
    lines = {
        f.source.row for s in sourced.sessions for t in s.turns for f in t.findings if f.source is not None
    }
    assert lines <= marked(path)
    assert lines


def test_nothing_is_blamed_without_evidence(recorded: Callable[[Path], list[Exchange]]) -> None:
    path = next(agent for agent in AGENTS if agent.stem == "clock")
    analysis = analysed(recorded(path))
    turn = next(turn for session in analysis.sessions for turn in session.turns if turn.is_break)
    assert SourceIndex().locate(turn) is None
    assert SourceIndex([Hole("x.py", 1, "quite another text ", "")]).locate(turn) is None
