"""`prefixguard sessions`, on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prefixguard.cli.sessions import command
from prefixguard.errors import InputError, PrefixGuardError
from prefixguard.exchange import Capture, SessionKey, Timing
from prefixguard.finding import Finding
from prefixguard.reports.json import turn_to_json
from prefixguard.store import Store
from prefixguard.turn import Cost, Tokens, Turn


def capture(name: str, t: float) -> Capture:
    return Capture(
        id=name,
        t=t,
        method="POST",
        path="/v1/chat/completions",
        upstream="https://api.example.com",
        headers={"content-type": "application/json"},
        body=b'{"model":"m","messages":[{"role":"user","content":"hello"}]}',
        status=200,
        response_headers={},
        response_body=b"{}",
        agent="an-agent",
    )


CLOCK = Finding("PG101", "clock-in-prefix", "a time of day differs", primary=True)


def broken_turn(index: int) -> Turn:
    return Turn(
        index, 0.0, 200, None, "", "", 0, None, None, "changed", "openai-chat", "m", None,
        (CLOCK,), index > 0,
        Tokens(100, 0, 90, 80, "estimate", exact=False), None, None, Timing(), Cost(),
    )  # fmt: skip


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        for number in range(3):
            key = SessionKey("header", "x-session-id", f"run-{number}")
            for step in range(2):
                store.append(capture(f"e{number}{step}", 1.8e9 + 1000 * number + 30 * step), key)
        store.save_turn("e20", turn_to_json(broken_turn(0)))
        store.save_turn("e21", turn_to_json(broken_turn(1)))
    return path


def run(record: Path, *arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(command, ["--store", str(record), *arguments], input=answer)


def listed(record: Path, *arguments: str) -> list[dict[str, object]]:
    result = run(record, "--format", "json", *arguments)
    assert result.exit_code == 0, result.output
    rows: list[dict[str, object]] = json.loads(result.stdout)
    return rows


def test_sessions_are_listed_the_newest_last(record: Path) -> None:
    rows = listed(record)
    assert [row["first_t"] for row in rows] == [1.8e9, 1.8e9 + 1000, 1.8e9 + 2000]
    assert rows[0]["exchanges"] == 2
    assert rows[0]["key"] == {"kind": "header", "name": "x-session-id"}
    text = run(record).stdout
    assert text.count("an-agent") == 3
    assert "30 s" in text


def test_breaks_are_known_only_where_all_turns_were_kept(record: Path) -> None:
    rows = listed(record)
    assert [row["breaks"] for row in rows] == [None, None, 1]
    assert rows[2]["rebilled_tokens"] == 80
    lines = run(record).stdout.splitlines()
    assert " ? " in lines[2]
    assert "~80" in lines[-1]


def test_only_the_newest_unless_all_are_wanted(record: Path) -> None:
    assert len(listed(record, "-n", "1")) == 1
    assert len(listed(record, "-n", "1", "--all")) == 3
    assert "2 older ones are not shown" in run(record, "-n", "1").stdout


def test_deleting_asks_first(record: Path) -> None:
    name = str(listed(record)[0]["id"])
    assert run(record, "--delete", name, answer="n\n").exit_code == 1
    assert len(listed(record)) == 3
    assert run(record, "--delete", name, answer="y\n").exit_code == 0
    assert len(listed(record)) == 2
    name = str(listed(record)[0]["id"])
    assert run(record, "--delete", name, "--yes").exit_code == 0
    assert len(listed(record)) == 1


def test_an_unknown_session_is_not_deleted(record: Path) -> None:
    result = run(record, "--delete", "nobody", "--yes")
    assert isinstance(result.exception, InputError)
    assert len(listed(record)) == 3


def test_no_record_yet_says_how_to_make_one(tmp_path: Path) -> None:
    result = run(tmp_path / "none.sqlite")
    assert isinstance(result.exception, PrefixGuardError)
    assert "prefixguard run" in str(result.exception)


def test_an_empty_record_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "record.sqlite"
    Store.open(path).close()
    assert "Nothing is recorded" in run(path).stdout
    assert listed(path) == []
