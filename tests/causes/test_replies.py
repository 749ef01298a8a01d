"""PG704 on token ids as a server gave them: the reply's own tokens against those of its text sent back."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

from prefixguard.analysis import analyze
from prefixguard.exchange import Exchange, Rendered
from prefixguard.finding import Finding
from prefixguard.options import Options
from prefixguard.rulebook import Rulebook

PROMPT, TAIL = list(range(100, 400)), [7, 8, 9]
SAID = "the weather in the city is fine today and tomorrow, too"


def found(
    reply: list[int] | None,
    back: list[int],
    *,
    said: str = SAID,
    generated: int = 41,
    read: int | None = None,
) -> list[Finding]:
    """The findings of the second turn.

    reply: the ids that were kept; back: those of the same text in the prompt.
    """
    usage: list[dict[str, Any]] = [
        {"prompt_tokens": 300, "completion_tokens": generated},
        {"prompt_tokens": 300 + len(back) + 3, "completion_tokens": 1},
    ]
    usage[1]["prompt_tokens_details"] = {"cached_tokens": 300 if read is None else read}
    asked = [{"role": "user", "content": "what is the weather? " * 20}]
    talks = [
        asked,
        [*asked, {"role": "assistant", "content": said}, {"role": "user", "content": "and then?"}],
    ]
    ids = [Rendered("e", array("i", PROMPT), None if reply is None else array("i", reply)),
           Rendered("e", array("i", [*PROMPT, *back, *TAIL]))]  # fmt: skip
    choice = {"index": 0, "message": {"role": "assistant", "content": SAID}}
    exchanges = [
        Exchange(
            float(n), "/v1/chat/completions", json.dumps({"model": "m", "messages": talks[n]}).encode(),
            response=json.dumps({"choices": [choice], "usage": usage[n]}).encode(),
            rendered=ids[n],
        )
        for n in range(2)
    ]  # fmt: skip
    (session,) = analyze(exchanges, Rulebook(), Options(server="llama.cpp:slots=1")).sessions
    return [f for f in session.turns[1].findings if f.code == "PG704"]


@pytest.mark.parametrize(
    ("reply", "back", "words", "severity"),
    [
        (list(range(40)), list(range(40)), None, None),
        (list(range(40)), [*range(40), 40], None, None),  # the last sampled token had not been kept
        (list(range(40)), [*range(30), 77, 78], "30 of the 40 tokens", "info"),
        (list(range(40)), [77, 78], "0 of the 40 tokens", "warning"),
    ],
)
def test_ids_that_are_known(
    reply: list[int], back: list[int], words: str | None, severity: str | None
) -> None:
    codes = found(reply, back)
    assert [f.severity for f in codes] == ([severity] if severity else [])
    assert all(f.message.startswith(words or "") for f in codes)


@pytest.mark.parametrize(("read", "lost"), [(340, 0), (335, 5), (300, 40)])
def test_of_ids_that_are_not_known_the_figures_tell(read: int, lost: int) -> None:
    codes = found(None, list(range(50)), read=read)
    assert [f.message for f in codes] == (
        [f"{40 - lost} of the 40 tokens of the reply are the same when its text is sent back"] if lost else []
    )


def test_another_text_is_another_cause() -> None:
    assert found(list(range(40)), [77, 78], said="it rains") == []
