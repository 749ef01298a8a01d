"""Half of a surrogate pair, as JavaScript leaves it when it cuts an emoji, stops no reading."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.analysis import analyze
from prefixguard.exchange import Exchange
from prefixguard.importers.exchange_log import read_log
from prefixguard.surrogates import lenient, paired

texts = st.text(st.sampled_from('a"\\/\nu\ud83d\ude00\u00e9\U0001f600d8'), max_size=12)
documents = st.dictionaries(texts, st.one_of(texts, st.lists(texts, max_size=3)), max_size=4)


@given(documents)
def test_what_python_writes_is_read_with_each_half_replaced(document: dict[str, object]) -> None:
    raw = json.dumps(document).encode()
    mended = paired(raw)
    assert len(mended) == len(raw)
    whole = json.loads(raw)
    if json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace").decode() == json.dumps(
        whole, ensure_ascii=False
    ):
        assert mended == raw, "nothing is changed where no half stands"
    expected = json.loads(
        json.dumps(whole, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    assert lenient(msgspec.json.decode)(raw) == expected


def test_what_is_no_json_for_another_reason_is_still_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        lenient(msgspec.json.decode)(rb'{"a": "\ud83d"')


@pytest.mark.parametrize("half", ["\ud83d", "\ud83d\ud83d\ude00"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_session_that_sends_a_half_is_understood(half: str, path: str, tmp_path: Path) -> None:
    system = "You are a careful agent. " + "Keep to the rules. " * 200
    history = [
        {"role": "user", "content": f"cut short: {half}"},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": f"Go on, {half} then."},
    ]
    log: list[Exchange] = []
    for sent in (history[:1], history):
        body: dict[str, object] = {"model": "m", "system": system, "messages": sent}
        if path != "/v1/messages":
            body = {"model": "m", "messages": [{"role": "system", "content": system}, *sent]}
        log.append(Exchange(len(log), path, json.dumps(body).encode(), {}, upstream="http://localhost"))
    file = tmp_path / "log.jsonl"
    file.write_bytes(
        b"".join(b'{"t":%d,"path":"%s","request":%s}\n' % (e.t, path.encode(), e.request) for e in log)
    )
    for exchanges in (log, list(read_log(file))):
        (session,) = analyze(exchanges).sessions
        assert [turn.note for turn in session.turns] == ["", ""]
        assert session.turns[1].shape == "append"
