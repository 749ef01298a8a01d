"""What a name on the command line stands for."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from prefixguard.errors import InputError
from prefixguard.exchange import Capture, SessionKey
from prefixguard.importers import open_source
from prefixguard.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def line(t: int) -> bytes:
    return json.dumps({"t": t, "path": "/x", "request": {"n": t}}).encode() + b"\n"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.sqlite"
    with Store.open(path) as store:
        for i, name in enumerate(["ses_a", "ses_b"]):
            body = json.dumps({"name": name}).encode()
            capture = Capture(str(i), float(i), "POST", "/x", "https://h", {}, body, 200, {}, b"")
            store.append(capture, SessionKey("header", "x", name))
    return path


def test_a_log(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(line(1) + line(2))
    assert [exchange.t for exchange in open_source(str(tmp_path / "a.jsonl"))] == [1, 2]


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(line(2))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jsonl.gz").write_bytes(gzip.compress(line(1)))
    (tmp_path / "c.ndjson").write_bytes(line(3))
    (tmp_path / "README.md").write_text("not a log")
    assert [exchange.t for exchange in open_source(str(tmp_path))] == [1, 2, 3]


def test_a_folder_without_logs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no exchange log in this folder"):
        open_source(str(tmp_path))


@pytest.mark.parametrize(("name", "expected"), [("ses_a", "ses_a"), ("last", "ses_b"), ("ses_b", "ses_b")])
def test_a_session_of_the_record(record: Path, name: str, expected: str) -> None:
    for store in (record, Store.open(record)):
        (exchange,) = open_source(name, store)
        assert json.loads(exchange.request) == {"name": expected}


def test_a_file_goes_before_a_session(record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ses_a").write_bytes(line(9))
    monkeypatch.chdir(tmp_path)
    assert [exchange.t for exchange in open_source("ses_a", record)] == [9]


def test_names_that_stand_for_nothing(record: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nope: no session of"):
        open_source("nope", record)
    for store in (record, tmp_path / "none.sqlite"):
        with pytest.raises(InputError, match=r"^missing.jsonl: no such file$"):
            open_source("missing.jsonl", store)
    with pytest.raises(InputError, match=r"^nope: no such file, and no .* session either: .* no record yet"):
        open_source("nope", tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_the_usual_place(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFIXGUARD_STORE", str(record))
    assert len(open_source("last")) == 1
