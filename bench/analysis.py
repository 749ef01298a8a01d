"""The fold against the plain way, on a session of 200 turns that grows to 1 MB a turn.

The plain way reads each body with `json`, tokenizes every text of it with
tiktoken and compares it with the turn before, element by element. On every
turn both must find the same shared tokens and the same place of divergence;
three turns have one: a clock in the system text, and tool results pruned.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

from bench.rows import Row
from bench.workload import library_text
from prefixguard.analysis import Fold, Options
from prefixguard.exchange import Exchange
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Turn

TURNS = 200
FIRST = 25_000
LAST = 1_000_000
CLOCK = 120
PRUNED = (60, 160)
LEAST_RATIO = 40
ROUNDS = 3
# What a message and a tool cost beside their text: the same convention as in the product, stated here again.
_MESSAGE, _CALL, _TOOL = 4, 6, 2


def session(seed: int = 1) -> Iterator[Exchange]:
    """The exchanges, one by one."""
    chance = random.Random(seed)
    text = library_text()

    def piece(size: int) -> str:
        at = chance.randrange(len(text) - size)
        return text[at : at + size]

    tools = [
        {"type": "function", "function": {"name": f"tool_{i}", "description": " ".join(piece(700).split())}}
        for i in range(12)
    ]
    system = piece(12_000)
    history: list[dict[str, Any]] = [{"role": "user", "content": piece(4000)}]
    grow = (LAST - FIRST) // TURNS
    for turn in range(TURNS):
        if turn == CLOCK:
            system = f"It is turn {turn}.\n{system}"
        if turn in PRUNED:
            at = chance.choice([i for i, m in enumerate(history) if m["role"] == "tool"])
            history[at] = {**history[at], "content": "[removed to save room]"}
        messages = [{"role": "system", "content": system}, *history]
        body = json.dumps({"model": "gpt-5.2", "messages": messages, "tools": tools, "stream": True}).encode()
        said, call = piece(chance.randint(200, 900)), f"call_{chance.getrandbits(96):024x}"
        arguments = json.dumps({"path": f"src/{call[-6:]}.py"})
        answer = {
            "role": "assistant", "content": said,
            "tool_calls": [
                {"id": call, "type": "function", "function": {"name": "tool_1", "arguments": arguments}}
            ],
        }  # fmt: skip
        response = json.dumps({"id": f"r{turn}", "choices": [{"index": 0, "message": answer}]}).encode()
        yield Exchange(
            7.0 * turn, "/v1/chat/completions", body, {"x-session-id": "bench"},
            response=response, upstream="https://api.openai.com",
        )  # fmt: skip
        history.append(answer)
        rest = grow - len(said) - 350
        while rest > 0:
            size = min(rest, chance.randint(300, 6000))
            history.append({"role": "tool", "tool_call_id": call, "content": piece(size)})
            rest -= size


class Plain:
    """Reads, tokenizes and compares everything, every turn."""

    def __init__(self) -> None:
        from prefixguard.tokens.encodings import encoding

        self._encode = encoding("o200k_base").encode_ordinary
        self._before: list[tuple[str, str, str, int]] = []

    def step(self, exchange: Exchange) -> tuple[int, str | None]:
        """(tokens shared with the turn before, pointer of the divergence or None)."""
        now = self._parts(json.loads(exchange.request))
        before, self._before = self._before, now
        if not before:
            return 0, None
        shared = 0
        for (_, role, old, _), (pointer, new_role, new, tokens) in zip(before, now, strict=False):
            if (role, old) != (new_role, new):
                return shared + self._inside(old, new), pointer
            shared += tokens
        return shared, None

    def _parts(self, body: dict[str, Any]) -> list[tuple[str, str, str, int]]:
        found = []
        for i, tool in enumerate(body["tools"]):
            function = tool["function"]
            text = f"// {function['description']}\ntype {function['name']} = () => any;"
            found.append((f"/tools/{i}", "tool", text, len(self._encode(text)) + _TOOL))
        for i, message in enumerate(body["messages"]):
            pointer = f"/messages/{i}/content"
            found.append(
                (
                    pointer,
                    message["role"],
                    message["content"],
                    len(self._encode(message["content"])) + _MESSAGE,
                )
            )
            for j, call in enumerate(message.get("tool_calls", ())):
                text = f"{call['function']['name']}({call['function']['arguments']})"
                pointer = f"/messages/{i}/tool_calls/{j}/function/arguments"
                found.append((pointer, "call", text, len(self._encode(text)) + _CALL))
        return found

    def _inside(self, old: str, new: str) -> int:
        at = next(
            (i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
        )
        return len(self._encode(new[:at]))


def run() -> list[Row]:
    """The figures. Takes about a minute."""
    log = list(session())
    folds, plains = [_fold(log) for _ in range(2 * ROUNDS)], [_plain(log) for _ in range(ROUNDS)]
    different = sum(not _same(turn, *told) for turn, told in zip(folds[0][1], plains[0][1], strict=True))
    # Each turn's least of the rounds: the machine's other work only ever adds.
    fold = [min(times) for times in zip(*(times for times, _ in folds), strict=True)]
    plain = [min(times) for times in zip(*(times for times, _ in plains), strict=True)]
    ratio = sum(plain) / sum(fold)
    sent = sum(len(exchange.request) for exchange in log)
    quiet = [t for t, turn in zip(fold, folds[0][1][1:], strict=True) if turn.shape == "append"]
    return [
        Row("session", f"{TURNS} turns, {sent / 1e6:.0f} MB of requests, the last of {LAST / 1e6:.0f} MB"),
        Row("turns where the two differ", str(different), "0", different == 0),
        Row("CPU a turn, plain", f"{sum(plain) / len(plain) * 1000:.1f} ms on average"),
        Row(
            "CPU a turn, the fold",
            f"{sum(fold) / len(fold) * 1000:.2f} ms on average, {quiet[-1] * 1000:.2f} ms at 1 MB",
        ),
        Row("of it the slowest, a turn that breaks", f"{max(fold) * 1000:.1f} ms"),
        Row("plain / fold", f"{ratio:.0f}", f">= {LEAST_RATIO}", ratio >= LEAST_RATIO),
    ]


def _fold(log: list[Exchange]) -> tuple[list[float], list[Turn]]:
    """Seconds for each turn but the first, which loads tables, and the turns."""
    fold = Fold(Rulebook(), Options())  # no prices: the plain way has none either
    times, turns = [], []
    for exchange in log:
        start = time.process_time()
        turns.append(fold.step(exchange))
        times.append(time.process_time() - start)
    return times[1:], turns


def _plain(log: list[Exchange]) -> tuple[list[float], list[tuple[int, str | None]]]:
    """The same of the plain way."""
    plain = Plain()
    times, told = [], []
    for exchange in log:
        start = time.process_time()
        told.append(plain.step(exchange))
        times.append(time.process_time() - start)
    return times[1:], told


def _same(turn: Turn, shared: int, pointer: str | None) -> bool:
    found = turn.divergence.pointer if turn.divergence is not None else None
    return (turn.tokens.shared, found) == (shared, pointer)
