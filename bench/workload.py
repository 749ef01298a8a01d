"""Agent sessions made up for the benches: real text, growing histories, a few faults.

The text is the standard library's own sources in random pieces, so that it
tokenizes and compresses as text does in life. Bodies are joined from the bytes
of their elements; making one costs a copy.
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from prefixguard.exchange import Exchange, Timing

CHARACTERS_PER_TOKEN = 4
LIBRARY = 4_000_000


@cache
def library_text() -> str:
    """Sources of the standard library, four million characters, ASCII only."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = bytearray()
    for path in sorted(folder.glob("**/*.py")):
        if "site-packages" not in path.parts and "test" not in path.parts:
            found += path.read_bytes()
        if len(found) > LIBRARY:
            break
    return found[:LIBRARY].decode("ascii", "ignore")


@dataclass(frozen=True, slots=True)
class Size:
    """How big a session is, in tokens of about four characters.

    head: system text and tools. first: the first request's history. turn: what
    each further request adds. turns: how many requests.
    """

    head: int = 9_000
    first: int = 31_000
    turn: int = 400
    turns: int = 50


@dataclass(slots=True)
class AgentSession:
    """One session, told turn by turn.

    api: "openai" or "anthropic". clock: the system text changes in every turn.
    pruned: every tenth request drops the middle of an old tool result.
    """

    name: str
    seed: int
    size: Size = field(default_factory=Size)
    api: str = "openai"
    clock: bool = False
    pruned: bool = False
    keyed: bool = True

    def exchanges(self, start: float = 0.0, step: float = 20.0) -> Iterator[Exchange]:
        """Its exchanges, in time. Only the elements of the history are held."""
        chance = random.Random(self.seed)
        text = library_text()

        def piece(tokens: float) -> str:
            size = max(1, int(tokens * CHARACTERS_PER_TOKEN))
            at = chance.randrange(len(text) - size)
            return text[at : at + size]

        agent = random.Random(self.seed % 4)  # four agents: sessions of one share tools and system text
        at = agent.randrange(len(text) - 200_000)
        tools = [self._tool(i, text[at + 1200 * i : at + 1200 * i + 1000]) for i in range(20)]
        system = text[at + 30_000 : at + 30_000 + (self.size.head - 6000) * CHARACTERS_PER_TOKEN]
        history: list[bytes] = []
        while sum(map(len, history)) < self.size.first * CHARACTERS_PER_TOKEN:
            history.append(self._user(piece(chance.uniform(200, 1800))))
            history.append(self._assistant(piece(60), None))
        history.append(self._user(piece(100)))
        for turn in range(self.size.turns):
            now = start + step * turn
            said, call = piece(0.2 * self.size.turn), f"call_{chance.getrandbits(96):024x}"
            stamp = f"It is {now:.3f}.\n" if self.clock else ""
            body = self._body(tools, stamp + system, history)
            yield Exchange(
                now, self._path(), body,
                headers={"x-session-id": self.name} if self.keyed else {},
                response=self._response(said, call, len(body) // CHARACTERS_PER_TOKEN, turn),
                upstream=f"https://api.{self.api}.com", timing=Timing(900.0, 4000.0),
            )  # fmt: skip
            history.append(self._assistant(said, call))
            history.append(self._result(piece(0.7 * self.size.turn), call))
            if self.pruned and turn % 10 == 9:
                history[2] = self._user(piece(20))

    def _path(self) -> str:
        return "/v1/chat/completions" if self.api == "openai" else "/v1/messages"

    def _body(self, tools: list[bytes], system: str, history: list[bytes]) -> bytes:
        joined = b",".join(tools)
        if self.api == "openai":
            first = json.dumps({"role": "system", "content": system}).encode()
            return b'{"model":"gpt-5.2","stream":true,"tools":[%b],"messages":[%b]}' % (
                joined, b",".join([first, *history]),
            )  # fmt: skip
        block = json.dumps({"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}).encode()
        last = history[-1]
        marked = last[: last.rindex(b"}]}")] + b',"cache_control":{"type":"ephemeral"}}]}'
        head = b'{"model":"claude-opus-4-8","max_tokens":32000,"stream":true,'
        return head + b'"tools":[%b],"system":[%b],"messages":[%b]}' % (
            joined, block, b",".join([*history[:-1], marked]),
        )  # fmt: skip

    def _tool(self, number: int, description: str) -> bytes:
        schema = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
        if self.api == "openai":
            function = {"name": f"tool_{number}", "description": description, "parameters": schema}
            return json.dumps({"type": "function", "function": function}).encode()
        return json.dumps(
            {"name": f"tool_{number}", "description": description, "input_schema": schema}
        ).encode()

    def _user(self, text: str) -> bytes:
        if self.api == "openai":
            return json.dumps({"role": "user", "content": text}).encode()
        return json.dumps({"role": "user", "content": [{"type": "text", "text": text}]}).encode()

    def _call(self, call: str) -> dict[str, object]:
        if self.api == "openai":
            arguments = json.dumps({"path": f"src/{call[-6:]}.py", "limit": 200})
            return {"id": call, "type": "function", "function": {"name": "tool_1", "arguments": arguments}}
        return {"type": "tool_use", "id": call, "name": "tool_1", "input": {"path": f"src/{call[-6:]}.py"}}

    def _message(self, text: str, call: str | None) -> dict[str, object]:
        if self.api == "openai":
            calls = {"tool_calls": [self._call(call)]} if call else {}
            return {"role": "assistant", "content": text, **calls}
        return {
            "role": "assistant",
            "content": [{"type": "text", "text": text}, *([self._call(call)] if call else [])],
        }

    def _assistant(self, text: str, call: str | None) -> bytes:
        return json.dumps(self._message(text, call)).encode()

    def _result(self, text: str, call: str) -> bytes:
        if self.api == "openai":
            return json.dumps({"role": "tool", "tool_call_id": call, "content": text}).encode()
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return json.dumps({"role": "user", "content": [block]}).encode()

    def _response(self, text: str, call: str, tokens: int, turn: int) -> bytes:
        read = 0 if turn == 0 or self.clock else tokens * 9 // 10 // 128 * 128
        message = self._message(text, call)
        if self.api == "openai":
            usage = {
                "prompt_tokens": tokens, "completion_tokens": 90,
                "prompt_tokens_details": {"cached_tokens": read},
            }  # fmt: skip
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            return json.dumps({"id": f"chatcmpl-{call}", "choices": [choice], "usage": usage}).encode()
        usage = {
            "input_tokens": 3, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": tokens - read, "output_tokens": 90,
        }  # fmt: skip
        return json.dumps({"id": f"msg_{call}", "type": "message", **message, "usage": usage}).encode()


def many_sessions(count: int, size: Size, *, at_once: int, seed: int = 1) -> Iterator[Exchange]:
    """Sessions of both APIs in time order, `at_once` of them open at any time.

    One in ten has a clock in its system text, one in ten prunes its history.
    """
    for first in range(0, count, at_once):
        begun = first * size.turns * 20.0
        running = [
            AgentSession(
                f"s{n}", seed * 100_003 + n, size, "openai" if n % 2 else "anthropic",
                clock=n % 10 == 3, pruned=n % 10 == 6,
            ).exchanges(begun + 0.5 * (n - first))
            for n in range(first, min(first + at_once, count))
        ]  # fmt: skip
        for turn in zip(*running, strict=True):
            yield from turn
