"""A format is told by the names of a record's members, also where the record is cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import RuleError
from prefixguard.exchange import Capture
from prefixguard.importers.captures import is_prompt, make_capture, origin_of, seconds
from prefixguard.importers.formats import packaged_formats, read_formats, records_of
from prefixguard.importers.order import in_time_order

names = st.text("abcdeéß {}[],:", min_size=1, max_size=5)
values = st.recursive(
    st.none() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)


def paths(value: object, above: tuple[str, ...] = ()) -> set[str]:
    """The dotted names down to the third object, lists looked through."""
    if isinstance(value, list):
        return {name for item in value for name in paths(item, above)}
    if not isinstance(value, dict):
        return set()
    found = set()
    for name, inner in value.items():
        here = (*above, name)
        if len(here) <= 3:
            found.add(".".join(here))
            found |= paths(inner, here)
    return found


@given(st.lists(st.dictionaries(names, values, max_size=4), max_size=4), st.sampled_from(["\n", " ", ",\n"]))
def test_names_of_members_are_found_without_reading_the_values(
    rows: list[dict[str, object]], gap: str
) -> None:
    head = gap.join(json.dumps(row, ensure_ascii=False) for row in rows).encode("utf-8", "replace")
    assert list(records_of(head)) == [frozenset(paths(row)) for row in rows]


@given(st.dictionaries(names, values, max_size=4), st.data())
def test_a_record_that_is_cut_off_shows_what_is_there(row: dict[str, object], data: st.DataObject) -> None:
    whole = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
    end = data.draw(st.integers(0, len(whole)))
    for found in records_of(whole[:end]):
        assert found <= paths(json.loads(whole))


def test_quotes_and_braces_inside_a_prompt_are_no_structure() -> None:
    row = {"t": 1, "text": '{"resourceSpans": "\\\\" } ] [ {', "path": {"a": 1}}
    assert list(records_of(json.dumps(row).encode())) == [frozenset({"t", "text", "path", "path.a"})]


def test_every_format_has_a_date_and_a_source() -> None:
    for rule in packaged_formats().values():
        assert rule.source
        assert rule.date.year >= 2026
        assert rule.title


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "x"\ntitle = "X"\ndate = 2026-01-01\nsource = "s"', "by signs or by magic, one of them"),
        ('name = "y"\ntitle = "X"\ndate = 2026-01-01\nsource = "s"\nmagic = "a"', "must be named y.toml"),
        ('name = "x"', "missing required field"),
    ],
)
def test_a_wrong_rule_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "importers").mkdir()
    (tmp_path / "importers" / "x.toml").write_text(text)
    with pytest.raises(RuleError, match=message):
        read_formats(tmp_path)


@pytest.mark.parametrize(
    ("moment", "found"),
    [
        ("2026-02-12T16:02:25.284Z", 1770912145.284),
        ("2026-02-12 16:02:25.284000", 1770912145.284),
        ("2026-02-12T17:02:25.284+01:00", 1770912145.284),
        (1770912145.284, 1770912145.284),
        (1770912145284, 1770912145.284),
        ("1770912145284000000", 1770912145.284),
        (12.5, 12.5),
        ("soon", None),
        ("", None),
        (None, None),
        (True, None),
    ],
)
def test_moments(moment: object, found: float | None) -> None:
    assert seconds(moment) == (None if found is None else pytest.approx(found, abs=1e-3))


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://h/v1/x?a=1", ("https://h", "/v1/x?a=1")),
        ("https://h:443/", ("https://h", "/")),
        ("http://h:8080", ("http://h:8080", "/")),
        ("http://[::1]:80/x", ("http://[::1]", "/x")),
        ("not a url", ("", "not a url")),
        ("http://[bad", ("", "http://[bad")),
    ],
)
def test_addresses(url: str, parts: tuple[str, str]) -> None:
    assert origin_of(url) == parts


@pytest.mark.parametrize(
    ("method", "path", "members", "found"),
    [
        ("POST", "/v1/messages", (), True),
        ("POST", "/v1/messages/count_tokens", ("model", "messages"), False),
        ("GET", "/v1/chat/completions", (), False),
        ("POST", "/gateway/ask", ("model", "messages"), True),
        ("POST", "/chat/send", ("messages",), False),
        ("POST", "/v1/embeddings", ("model", "input"), False),
    ],
)
def test_what_asks_a_model(method: str, path: str, members: tuple[str, ...], found: bool) -> None:
    assert is_prompt(method, path, members) is found


def at(t: float, size: int = 1) -> Capture:
    return make_capture("x", name=str(t), t=t, path="/", upstream="", request=b"x" * size, response=None)


@given(st.lists(st.floats(0, 100), max_size=40))
def test_captures_come_by_time(times: list[float]) -> None:
    assert [capture.t for capture in in_time_order(map(at, times))] == sorted(times)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 5))
def test_none_is_lost_however_few_are_held_back(times: list[int], most: int) -> None:
    found = [capture.t for capture in in_time_order([at(t) for t in times], most, 10**9)]
    assert sorted(found) == sorted(times)
    by_size = [capture.t for capture in in_time_order([at(t, 100) for t in times], 10**6, 100 * most)]
    assert sorted(by_size) == sorted(times)
