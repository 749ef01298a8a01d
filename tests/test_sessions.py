"""Which session a request names: the order of the keys, and odd values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import RuleError
from prefixguard.sessions import body_fields, read_session_keys, session_key

if TYPE_CHECKING:
    from pathlib import Path

CLAUDE_NEW = json.dumps({"device_id": "d" * 64, "account_uuid": "", "session_id": "54c1eb09-bc4c"})


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (
            {"x-prefixguard-session": "mine", "x-session-id": "ses_1"},
            {},
            ("header", "x-prefixguard-session", "mine"),
        ),
        ({"x-session-id": "ses_1"}, {"prompt_cache_key": "k"}, ("header", "x-session-id", "ses_1")),
        ({"thread-id": "t", "session-id": "s"}, {}, ("header", "session-id", "s")),
        ({"thread-id": "t"}, {}, ("header", "thread-id", "t")),
        ({"session-id": "  "}, {"prompt_cache_key": "k"}, ("body", "prompt_cache_key", "k")),
        ({}, {"metadata": {"user_id": CLAUDE_NEW}}, ("body", "metadata.user_id", "54c1eb09-bc4c")),
        (
            {},
            {"metadata": {"user_id": f"user_{'a' * 64}_account__session_57a121ec-f78c"}},
            ("body", "metadata.user_id", "57a121ec-f78c"),
        ),
        ({}, {"metadata": {"user_id": "customer-17"}}, ("body", "metadata.user_id", "customer-17")),
    ],
)
def test_first_key_in_order_wins(
    headers: dict[str, str], body: dict[str, object], expected: tuple[str, str, str]
) -> None:
    key = session_key(headers, body)
    assert key is not None
    assert (key.kind, key.name, key.value) == expected


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt_cache_key": 7},
        {"prompt_cache_key": ""},
        {"prompt_cache_key": "x" * 5000},
        {"metadata": None},
        {"metadata": "user_id"},
        {"metadata": {"user_id": ["a"]}},
    ],
)
def test_no_name_is_none(body: dict[str, object]) -> None:
    assert session_key({"user-agent": "x"}, body) is None


def test_fields_come_from_bytes_without_the_rest() -> None:
    body = json.dumps(
        {"messages": [{"content": "x" * 1000}], "metadata": {"user_id": "u"}, "prompt_cache_key": "k"}
    )
    assert body_fields(body.encode()) == {"metadata": {"user_id": "u"}, "prompt_cache_key": "k"}


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"metadata": {', b"\xff\xfe", b"\x1f\x8b\x08", b'"text"']
)
def test_malformed_body_has_no_fields(body: bytes) -> None:
    assert body_fields(body) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    headers=st.dictionaries(st.sampled_from(["session-id", "x-affinity", "a"]), st.text()),
    body=JSON,
    user=JSON,
)
def test_never_raises(headers: dict[str, str], body: object, user: object) -> None:
    session_key(headers, {"prompt_cache_key": body, "metadata": {"user_id": user}})
    body_fields(json.dumps(body).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("way", ["member:", "regex:(a)", "pattern:(", "pattern:ab", "pattern:(a)(b)"])
def test_bad_rule_names_file_and_field(tmp_path: Path, way: str) -> None:
    (tmp_path / "session-keys.toml").write_text(
        'date = 2026-11-30\nsource = "s"\n[[key]]\nin = "body"\nname = "user"\nclient = "c"\nsource = "s"\n'
        f"take = ['{way}']\n"
    )
    with pytest.raises(RuleError, match="user"):
        read_session_keys(tmp_path)
