"""What is damaged is named with its file and place, in one line; the rest is read all the same."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.exchange import Capture
from prefixguard.importers import open_source
from prefixguard.importers.foreign import read_foreign, which_format
from prefixguard.importers.formats import named_format
from prefixguard.importers.records import elements, objects
from prefixguard.importers.told import PROBLEMS_KEPT, Told, told_together

from .test_foreign import FIXTURES, KINDS


def plain(name: str) -> bytes:
    data = (FIXTURES / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def read(path: Path, kind: str | None = None) -> tuple[list[Capture], Told]:
    told = Told(path.name)
    return list(read_foreign(path, which_format(path, kind), told)), told


CUT = [
    "chromium.har.gz", "mitmproxy.flow.gz", "langfuse-api.json", "litellm-spend.jsonl.gz", "openai-v2.json",
    "otlp-openllmetry.jsonl", "codex-rollout.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_a_file_that_was_cut_off_gives_what_is_whole(name: str, tmp_path: Path) -> None:
    whole = plain(name)
    path = tmp_path / "cut"
    path.write_bytes(whole[: len(whole) * 3 // 4])
    every, _ = read(FIXTURES / name)
    captures, told = read(path)
    assert told.troubled == 1
    assert 0 < len(told.problems[0]) < 400
    assert told.problems[0].startswith("cut: ")
    assert "\n" not in told.problems[0]
    known = {capture.body for capture in every}
    if name != "otlp-openllmetry.jsonl":  # one line holds them all
        assert 0 < len(captures) < len(every)
    assert {capture.body for capture in captures} <= known


@pytest.mark.parametrize(
    ("name", "spoil", "where"),
    [
        ("chromium.har.gz", lambda d: d["log"]["entries"][2].pop("request"), "entry 3: "),
        ("chromium.har.gz", lambda d: d["log"]["entries"][2].update(startedDateTime="x"), "entry 3: start"),
        ("chromium.har.gz", lambda d: d["log"]["entries"].insert(0, 7), "entry 1: "),
        ("langfuse-api.json", lambda d: d["data"][1].update(startTime=None), "entry 2: the start"),
        ("langfuse-api.json", lambda d: d["data"].append(3), "entry 5: not an observation"),
    ],
)  # fmt: skip
def test_one_bad_entry_does_not_spoil_the_others(
    name: str, spoil: Callable[[object], object], where: str, tmp_path: Path
) -> None:
    document = json.loads(plain(name))
    spoil(document)
    path = tmp_path / "spoilt"
    path.write_text(json.dumps(document))
    captures, told = read(path)
    assert told.troubled == 1
    assert told.problems[0].startswith(f"spoilt: {where}")
    assert len(captures) >= 3


def test_bad_lines_between_good_ones(tmp_path: Path) -> None:
    lines = plain("litellm-spend.jsonl.gz").splitlines()
    bad = [
        b"{oops",
        b"[1]",
        b"null",
        b'{"a": 1',
        b"\xff\xfe",
        b"",
        json.dumps({"call_type": "completion"}).encode(),
    ]
    path = tmp_path / "log"
    path.write_bytes(b"\n".join([lines[0], *bad, *lines[1:]]))
    captures, told = read(path)
    assert len(captures) == len(lines)
    # What follows a record that was begun and never ended belongs to it, until another one begins.
    assert [problem.split(": ")[1] for problem in told.problems] == ["line 2", "line 5", "line 8"]
    # The message of the last one says which field was wanted.
    assert told.problems[-1] == "log: line 8: startTime is no moment: None"


def test_many_problems_are_counted_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    good = plain("litellm-spend.jsonl.gz").splitlines()[0]
    path.write_bytes(good + b"\n" + b"[1]\n" * 100)
    _, told = read(path)
    assert told.troubled == 100
    assert len(told.problems) == PROBLEMS_KEPT
    assert told.lines()[-1] == "log: 80 more entries could not be read"


def test_a_file_of_no_known_format(tmp_path: Path) -> None:
    path = tmp_path / "what.json"
    path.write_text('{"some": 1, "thing": {"else": 2}}')
    with pytest.raises(
        InputError, match=r"what.json: not a format that is known .*first record has some, thing"
    ):
        which_format(path, None)
    path.write_bytes(b"\x00\x01\x02")
    with pytest.raises(InputError, match="it holds no JSON records; name it with --from"):
        which_format(path, None)
    with pytest.raises(InputError, match="--from nonsense: no such format; have claude-code, "):
        which_format(path, "nonsense")


def test_a_file_without_a_model_call(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    document = json.loads(plain("chromium.har.gz"))
    document["log"]["entries"] = document["log"]["entries"][:1]
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"page.har: 0 requests \(HAR .*passed over: other entries .1."):
        open_source(str(path))


def test_a_trace_of_hashes_says_what_it_is_good_for(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}\n')
    with pytest.raises(InputError, match="`prefixguard simulate` plays it, nothing else can be said of it"):
        open_source(str(path))


@pytest.mark.parametrize("name", ["openai-v2.json", "langfuse-api.json"])
def test_a_compressed_file_that_was_cut_off(name: str, tmp_path: Path) -> None:
    packed = gzip.compress(plain(name))
    path = tmp_path / "cut.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"cut.gz: the compressed file is damaged or cut off"):
        read(path, KINDS[name])


texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
things = st.dictionaries(st.text(max_size=6), texts, max_size=5)


@given(
    rows=st.lists(things, min_size=1, max_size=6),
    layout=st.sampled_from(["lines", "pretty", "list", "pretty list"]),
)
@settings(max_examples=60, deadline=None)
def test_records_are_read_however_they_are_laid_out(rows: list[dict[str, object]], layout: str) -> None:
    if layout.endswith("list"):
        text = json.dumps(rows, indent=2 if layout == "pretty list" else None)
    else:
        text = "\n".join(json.dumps(row, indent=4 if layout == "pretty" else None) for row in rows)
    told = Told("x")
    found = [value for _, value in objects([line + b"\n" for line in text.encode().split(b"\n")], told)]
    assert found == rows
    assert not told.problems


@given(rows=st.lists(things, max_size=5), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_list_that_was_cut_gives_its_whole_elements(
    rows: list[dict[str, object]], data: st.DataObject
) -> None:
    text = json.dumps({"log": {"entries": rows}}).encode()
    end = data.draw(st.integers(0, len(text) - 3))
    told = Told("x")
    found = [json.loads(bytes(raw)) for raw in elements(text[:end], ("log", "entries"), told)]
    assert found == rows[: len(found)]
    assert told.troubled == 1


@given(st.binary(max_size=300))
@settings(max_examples=80, deadline=None)
def test_no_reader_stumbles_over_nonsense(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    path = tmp_path_factory.mktemp("junk") / "junk"
    path.write_bytes(junk)
    for kind in ("har", "otel", "langfuse", "litellm", "claude-code", "codex", "mini-swe-agent", "mitmproxy"):
        told = Told("junk")
        with contextlib.suppress(InputError):
            assert list(read_foreign(path, named_format(kind), told)) == []


def test_many_files_are_told_together() -> None:
    accounts = []
    for number in range(6):
        told = Told(f"f{number}", "HAR" if number else "flows")
        told.took(["headers"])
        accounts.append(told)
    accounts[3].problem("entry 1", "broken")
    assert told_together(accounts) == [
        "1 file: 1 request (flows); not in the file: request headers",
        "5 files: 5 requests (HAR); not in the file: request headers",
        "f3: entry 1: broken",
    ]
    assert len(told_together(accounts[:3])) == 3
