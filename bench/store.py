"""What the record of a long session costs on disk and in CPU, against the raw bodies.

A session of 200 turns whose body grows from some 25 KB to 1 MB. The text is
real (source files of Python's standard library, in random pieces), so that
nothing compresses better than it would in life. Every body is read back and
compared byte for byte.
"""

from __future__ import annotations

import json
import random
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from prefixguard.exchange import Capture, SessionKey, Timing
from prefixguard.store import Store

TURNS = 200
LAST_BYTES = 1_000_000
FIRST_BYTES = 25_000


class Row(NamedTuple):
    """One figure. `target` is what the project promises, or "" for a remark."""

    what: str
    value: str
    target: str = ""
    held: bool | None = None


def library_text(size: int, seed: int = 1) -> str:
    """Text of the standard library's sources, in random order and of about `size` characters."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(path for path in folder.glob("*.py"))
    chance = random.Random(seed)
    chance.shuffle(files)
    parts: list[str] = []
    length = 0
    for path in files * 10:
        text = path.read_text(encoding="utf-8", errors="replace")
        parts.append(text)
        length += len(text)
        if length > size:
            break
    return "".join(parts)


def session(seed: int = 1) -> Iterator[Capture]:
    """The captures of the session, one by one."""
    chance = random.Random(seed)
    text = library_text(LAST_BYTES + 400_000, seed)
    position = 0

    def piece(size: int) -> str:
        nonlocal position
        position += size
        return text[position - size : position]

    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{i}",
                "description": piece(700),
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            },
        }
        for i in range(12)
    ]
    messages: list[dict[str, object]] = [{"role": "system", "content": piece(12_000)}]
    grow = (LAST_BYTES - FIRST_BYTES) / TURNS
    for turn in range(TURNS):
        body = {"model": "gpt-5.2", "messages": messages, "tools": tools, "stream": True}
        reply = piece(chance.randint(200, 900))
        call = {"id": f"call_{chance.getrandbits(96):024x}", "type": "function"}
        call["function"] = {"name": f"tool_{turn % 12}", "arguments": json.dumps({"path": piece(60)})}  # type: ignore[assignment]
        chunks = [reply[i : i + 4] for i in range(0, len(reply), 4)]
        identity = f"chatcmpl-{chance.getrandbits(96):024x}"
        stream = "".join(
            "data: "
            + json.dumps(
                {
                    "id": identity,
                    "object": "chat.completion.chunk",
                    "created": 1796061339 + turn,
                    "model": "gpt-5.2",
                    "choices": [{"index": 0, "delta": {"content": chunk}, "finish_reason": None}],
                }
            )
            + "\n\n"
            for chunk in chunks
        )
        yield Capture(
            id=f"{turn:06d}",
            t=1796061339.0 + 7 * turn,
            method="POST",
            path="/v1/chat/completions",
            upstream="https://api.openai.com",
            headers={
                "host": "127.0.0.1:8787",
                "user-agent": "OpenAI/Python 3.57.0",
                "content-type": "application/json",
                "authorization": "Bearer ***",
                "x-stainless-lang": "python",
                "x-stainless-os": "Linux",
                "x-stainless-runtime-version": "3.13.1",
                "x-session-id": "bench",
            },
            body=json.dumps(body).encode(),
            status=200,
            response_headers={
                "content-type": "text/event-stream; charset=utf-8",
                "date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(1796061339 + 7 * turn)),
                "x-request-id": f"req_{chance.getrandbits(128):032x}",
                "openai-processing-ms": str(chance.randint(200, 2000)),
                "x-ratelimit-remaining-tokens": str(chance.randint(0, 10**6)),
            },
            response_body=(stream + "data: [DONE]\n\n").encode(),
            timing=Timing(chance.random() * 1000, chance.random() * 5000),
            agent="bench",
        )
        messages.append({"role": "assistant", "content": reply, "tool_calls": [call]})
        size = int(grow - len(reply) - 350)
        while size > 0:
            part = min(size, chance.randint(300, 6000))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": piece(part)})
            size -= part


def clocked(captures: Iterable[Capture]) -> Iterator[Capture]:
    """The same session of an agent that puts a clock at the start of its system prompt."""
    for turn, capture in enumerate(captures):
        clock = f'"content": "It is {turn * turn * 17} seconds past noon. '.encode()
        yield replace(capture, body=capture.body.replace(b'"content": "', clock, 1))


def measure(captures: Callable[[], Iterator[Capture]]) -> tuple[int, int, int, list[float]]:
    """(raw bytes, stored bytes, bodies read back wrong, CPU seconds of each turn)."""
    with tempfile.TemporaryDirectory() as folder:
        raw = 0
        spent: list[float] = []
        with Store.open(Path(folder) / "record.sqlite") as store:
            for capture in captures():
                raw += len(capture.body) + len(capture.response_body)
                start = time.process_time()
                store.append(capture, SessionKey("header", "x-session-id", "bench"))
                spent.append(time.process_time() - start)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        with Store.open(Path(folder) / "record.sqlite", create=False) as store:
            pairs = zip(store.exchanges(), captures(), strict=True)
            wrong = sum(read.request != written.body for read, written in pairs)
        return raw, size, wrong, spent


def run() -> list[Row]:
    """The figures. Takes some ten seconds."""
    rows = []
    for name, captures in (("append-only", session), ("clock in its prompt", lambda: clocked(session()))):
        raw, size, wrong, spent = measure(captures)
        cpu = f"{sum(spent) / len(spent) * 1000:.2f} ms on average, {max(spent) * 1000:.1f} ms at most"
        rows += [
            Row(f"{name}: raw bodies", f"{len(spent)} turns, {raw / 1e6:.1f} MB"),
            Row(
                f"{name}: store against raw bodies",
                f"1/{raw / size:.0f} ({size / 1e6:.2f} MB)",
                "<= 1/100",
                size * 100 <= raw,
            ),
            Row(f"{name}: bodies not read back byte for byte", str(wrong), "0", wrong == 0),
            Row(f"{name}: CPU to record a turn", cpu, "about 2 ms"),
        ]
    return rows


def main() -> None:
    """Prints the figures, one a line."""
    for row in run():
        print(f"{row.what}: {row.value}" + (f"  (target {row.target})" if row.target else ""))


if __name__ == "__main__":
    main()
