"""Transcripts and rollouts: one request a message, threads kept apart, figures explained by those before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prefixguard.analysis import analyze
from prefixguard.exchange import Capture
from prefixguard.importers.foreign import read_foreign
from prefixguard.importers.formats import named_format
from prefixguard.importers.told import Told
from prefixguard.proxy.understand import exchange_of
from prefixguard.turn import Turn

from .test_foreign import FIXTURES, analysed


def claude(
    path: Path, *rows: dict[str, Any], told: Told | None = None
) -> tuple[list[Capture], tuple[Turn, ...], Told]:
    return parsed("claude-code", path, rows, told)


def parsed(
    kind: str, path: Path, rows: tuple[dict[str, Any], ...], told: Told | None = None
) -> tuple[list[Capture], tuple[Turn, ...], Told]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = told or Told(path.name)
    captures = list(read_foreign(path, named_format(kind), told))
    analysis = analyze(exchange_of(capture) for capture in captures)
    turns = [turn for session in analysis.sessions for turn in session.turns]
    return captures, tuple(sorted(turns, key=lambda turn: turn.index)), told


def said(n: int, read: int, written: int, *, second: int | None = None, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
             "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
             "output_tokens": 9}  # fmt: skip
    second = n if second is None else second
    message = {
        "id": f"msg_{n}",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [],
        "usage": usage,
    }
    return {
        "type": "assistant", "uuid": f"u{n}", "parentUuid": None, "sessionId": "s", "requestId": f"r{n}",
        "timestamp": f"2026-02-12T16:{second // 60:02}:{second % 60:02}.000Z", "message": message, **more,
    }  # fmt: skip


def test_lines_of_one_stream_are_one_request_and_the_last_figures_count(tmp_path: Path) -> None:
    first = said(1, 0, 900)
    first["message"] = {**first["message"], "usage": {**first["message"]["usage"], "output_tokens": 1}}
    captures, turns, _ = claude(tmp_path / "t", first, said(1, 0, 900), said(2, 900, 100))
    assert len(captures) == 2
    assert [turn.usage and turn.usage.output for turn in turns] == [9, 9]
    assert [turn.cache and turn.cache.verdict for turn in turns] == [None, "as-predicted"]
    assert [turn.shape for turn in turns] == ["first", "append"]


def test_sub_agents_are_threads_of_their_own(tmp_path: Path) -> None:
    rows = [
        said(1, 0, 5000), said(2, 0, 700, agentId="a", isSidechain=True), said(3, 5000, 100),
        said(4, 700, 50, agentId="a", isSidechain=True),
    ]  # fmt: skip
    captures, turns, _ = claude(tmp_path / "t", *rows)
    assert len({turn.session for turn in turns}) == 1
    threads = {turn.usage.total if turn.usage else 0: turn.thread for turn in turns}
    assert threads[5003] == threads[5103] != threads[703] == threads[753]
    assert sum(turn.cache is not None and turn.cache.verdict == "as-predicted" for turn in turns) == 2
    assert not any(turn.findings for turn in turns)
    assert {capture.headers.get("x-prefixguard-thread") for capture in captures} == {None, "a"}


def test_a_request_that_a_resumed_file_repeats_counts_once(tmp_path: Path) -> None:
    _, _, told = claude(tmp_path / "a", said(1, 0, 900), said(2, 900, 100))
    again = Told("b")
    again.seen = told.seen
    captures, _, again = claude(tmp_path / "b", said(2, 900, 100), said(3, 1000, 10), told=again)
    assert len(captures) == 1
    assert again.aside["requests that an earlier file or thread has too"] == 1


def test_messages_of_the_client_itself_are_no_requests(tmp_path: Path) -> None:
    own = said(2, 0, 0)
    own["message"]["model"] = "<synthetic>"
    captures, _, told = claude(tmp_path / "t", said(1, 0, 900), own, said(3, 900, 0, isApiErrorMessage=True))
    assert len(captures) == 1
    assert told.aside["messages that the client wrote itself"] == 2


def test_a_compaction_is_what_the_transcript_calls_one(tmp_path: Path) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "x",
        "parentUuid": None,
        "sessionId": "s",
    }
    # The summary may be as long as what it replaces: only the record tells.
    _, turns, _ = claude(tmp_path / "t", said(1, 9000, 900), boundary, said(2, 4000, 5000))
    (finding,) = turns[1].findings
    assert (finding.code, finding.confidence) == ("PG303", "high")
    assert "the record says" in finding.evidence
    _, turns, _ = claude(tmp_path / "t", said(1, 9000, 900), said(2, 4000, 5000))
    assert [finding.code for finding in turns[1].findings] == ["PG804"]


def test_a_pause_longer_than_the_lifetime_expires(tmp_path: Path) -> None:
    _, turns, _ = claude(tmp_path / "t", said(1, 0, 9000), said(2, 0, 9100, second=900))
    (finding,) = turns[1].findings
    assert (finding.code, finding.by) == ("PG601", "time")


def test_a_line_without_a_time_is_told(tmp_path: Path) -> None:
    captures, _, told = claude(tmp_path / "t", said(1, 0, 9), {**said(2, 9, 1), "timestamp": "later"})
    assert len(captures) == 1
    assert told.problems == ["t: line 2: timestamp is no moment: 'later'"]


def test_the_real_transcript_holds_to_the_oracle() -> None:
    """Read = read + written of the request before, but where history was replaced or had expired."""
    turns = analysed("claude-code.jsonl.gz").sessions[0].turns
    missed = [turn for turn in turns if turn.cache is not None and turn.cache.verdict == "less"]
    judged = [turn for turn in turns if turn.cache is not None]
    assert len(judged) == len(turns) - 1
    assert [finding.code for turn in missed for finding in turn.findings] == ["PG303"]


def count(n: int, total: int, cached: int | None, *, last: int) -> dict[str, Any]:
    usage: dict[str, Any] = {"input_tokens": last, "output_tokens": 5}
    if cached is not None:
        usage["cached_input_tokens"] = cached
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": usage}
    return {
        "timestamp": f"2026-02-12T16:00:{n:02}.000Z", "type": "event_msg",
        "payload": {"type": "token_count", "info": info},
    }  # fmt: skip


def meta(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-02-12T16:00:00.000Z", "type": kind, "payload": payload}


def test_codex_figures_that_are_written_again_are_one_request(tmp_path: Path) -> None:
    rows = (
        meta("session_meta", id="t1", session_id="s1", model_provider="openai", cli_version="0.171.0"),
        meta("turn_context", model="gpt-5.3-codex"),
        {**meta("event_msg", type="token_count", info=None)},
        count(1, 2000, 0, last=2000), count(2, 2000, 0, last=2000), count(3, 4200, 1920, last=2200),
    )  # fmt: skip
    captures, turns, told = parsed("codex", tmp_path / "r", rows)
    assert len(captures) == 2
    assert told.producer == "Codex 0.171.0"
    assert told.aside["figures that were written again"] == 1
    assert [turn.model for turn in turns] == ["gpt-5.3-codex"] * 2
    assert [turn.usage and turn.usage.read for turn in turns] == [0, 1920]
    assert turns[1].session == "s1"
    assert turns[1].cache is not None
    assert turns[1].cache.verdict == "as-predicted"


def test_codex_without_cached_tokens_says_nothing_of_a_cache(tmp_path: Path) -> None:
    rows = (meta("session_meta", id="t1"), count(1, 2000, None, last=2000), count(3, 4200, None, last=2200))
    _, turns, _ = parsed("codex", tmp_path / "r", rows)
    assert [turn.usage and turn.usage.read for turn in turns] == [None, None]
    assert all(turn.cache is None for turn in turns)


def test_codex_compaction_and_sub_agent(tmp_path: Path) -> None:
    rows = (
        meta("session_meta", id="child", session_id="parent"), count(1, 20_000, 0, last=20_000),
        meta("compacted", message=""), count(2, 39_000, 3456, last=19_000),
    )  # fmt: skip
    captures, turns, _ = parsed("codex", tmp_path / "r", rows)
    assert captures[0].headers["x-prefixguard-thread"] == "child"
    assert turns[0].session == "parent"
    assert [finding.code for finding in turns[1].findings] == ["PG303"]


def test_the_sample_rollout_has_a_request_for_each_record_of_usage() -> None:
    rows = (FIXTURES / "codex-rollout.jsonl").read_text().splitlines()
    told = sum(json.loads(row)["type"] == "token_usage_record" for row in rows)
    assert sum(len(session.turns) for session in analysed("codex-rollout.jsonl").sessions) == told == 7
