"""An agent's requests, one after the other, as the proxy would record them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from prefixguard.exchange import Capture, SessionKey, Timing
from prefixguard.store import Store

RULES = " ".join(f"Rule {number}: check the tests before you say that you are done." for number in range(100))
_NUMBERS = itertools.count()


def captures(
    name: str, *, clock: bool = False, turns: int = 1000, start: float = 1_796_000_000.0
) -> Iterator[Capture]:
    """The requests of a chat agent. clock: with the time in its system text, from the third turn on."""
    history: list[dict[str, str]] = []
    for turn in range(turns):
        time = f"It is 14:02:{7 + turn:02}. " if clock and turn > 1 else ""
        history.append({"role": "user", "content": f"Question {turn}: what is in file number {turn}?"})
        body = {
            "model": "gpt-4.1",
            "messages": [{"role": "system", "content": f"{time}You are a careful agent. {RULES}"}, *history],
        }
        answer = {"role": "assistant", "content": f"File number {turn} holds the parser."}
        history.append(answer)
        usage = {
            "prompt_tokens": 1500 + 30 * turn,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": _cached(turn, clock)},
        }
        response = {
            "id": "r",
            "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}],
            "usage": usage,
        }
        yield Capture(
            id=f"x{next(_NUMBERS)}",
            t=start + turn,
            method="POST",
            path="/v1/chat/completions",
            upstream="https://api.openai.com",
            headers={"content-type": "application/json", "x-session-id": name},
            body=json.dumps(body).encode(),
            status=200,
            response_headers={"content-type": "application/json"},
            response_body=json.dumps(response).encode(),
            timing=Timing(120.0, 300.0),
        )


def _cached(turn: int, clock: bool) -> int:
    """The whole blocks of 128 tokens of the prompt before, which a still prompt goes on from."""
    return 0 if turn == 0 or (clock and turn > 1) else (1500 + 30 * (turn - 1)) // 128 * 128


def key_of(name: str) -> SessionKey:
    return SessionKey("header", "x-session-id", name)


def record(
    store: Store, name: str, *, clock: bool = False, turns: int, start: float = 1_796_000_000.0
) -> None:
    """Records a whole session, as one whose analysis was kept."""
    for capture in captures(name, clock=clock, turns=turns, start=start):
        add(store, capture)


def add(store: Store, capture: Capture) -> None:
    """Records one exchange, and that it was analysed, as the recorder does."""
    store.append(capture, key_of(capture.headers["x-session-id"]))
    store.save_turn(capture.id, b"{}")
