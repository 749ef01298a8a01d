"""A small agent that speaks every API, so that a scenario is written once and told in all of them.

A `Talk` holds what an agent holds (system blocks, tools, messages made of
parts), sends it, gets a scripted reply, and keeps the exchange as a log would.
The replies' figures come from a simulated cache (`server.py`) that knows
nothing of the product's own models.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from prefixguard.analysis import Options, analyze
from prefixguard.exchange import Exchange, Timing
from prefixguard.rulebook import Rulebook
from prefixguard.turn import Turn

from . import bodies
from .server import Server, server_for

type Part = dict[str, Any]

_RULES = Rulebook()

# fmt: off
_WHO = (
    "crew", "valve", "ledger", "harbour", "beacon", "orchard", "kiln", "lantern", "ferry", "granary", "loom",
    "quarry", "anvil", "chapel", "meadow",
)
_DOES = (
    "guards", "carries", "mends", "counts", "weighs", "paints", "hauls", "shelters", "measures", "cools",
    "polishes", "stacks", "trades",
)
_HOW = (
    "before dawn", "in heavy rain", "by written order", "without a witness", "after the bell",
    "under low light",
)
# fmt: on


@cache
def prose(seed: int | str, sentences: int = 8) -> str:
    """Readable filler, the same for the same seed; about eleven tokens a sentence."""
    dice = random.Random(f"prose {seed}")
    return " ".join(
        f"The {dice.choice(_WHO)} {dice.choice(_DOES)} the {dice.choice(_WHO)} of the {dice.choice(_WHO)} "
        f"{dice.choice(_HOW)}."
        for _ in range(sentences)
    )


def tool(name: str, sentences: int = 4, properties: tuple[str, ...] = ("path", "mode", "limit")) -> Part:
    """A tool definition, neutral of any API."""
    return {
        "name": name,
        "description": prose(name, sentences),
        "properties": {p: {"type": "string", "description": prose(f"{name} {p}", 2)} for p in properties},
    }


TOOLS = ("read_file", "search_code", "run_shell", "edit_file", "list_dir")


def text(value: str) -> Part:
    return {"kind": "text", "text": value}


def image(seed: str = "a") -> Part:
    return {"kind": "image", "data": (seed * 40 + "AAAABBBBCCCC") * 30}


def image_url(url: str) -> Part:
    return {"kind": "url", "url": url}


def reasoning(value: str, sealed: str = "") -> Part:
    return {"kind": "reasoning", "text": value, "sealed": sealed or f"sig-{abs(hash_of(value)) % 10**8}"}


def call(n: int | str, name: str = "read_file", **arguments: Any) -> Part:
    arguments = arguments or {"path": f"src/part{n}.py", "mode": "full", "limit": "200"}
    return {"kind": "call", "id": f"call_{n}", "name": name, "arguments": arguments}


def result(n: int | str, value: str | None = None, sentences: int = 12) -> Part:
    return {
        "kind": "result",
        "id": f"call_{n}",
        "text": prose(f"result {n}", sentences) if value is None else value,
    }


def hash_of(value: str) -> int:
    return random.Random(value).getrandbits(32)


@dataclass
class Message:
    """role: system, user, assistant, tool. parts: as made by the functions above."""

    role: str
    parts: list[Part]


@dataclass
class Talk:
    """An agent's run. Change its fields between sends, as a faulty (or sound) client would.

    marks: where breakpoints go ("tools", "system", "last", "last two", "auto",
    or a function that edits the finished body); only for APIs that have them.
    system_style: "string", "blocks" or "messages".
    """

    api: str = "openai-chat"
    model: str | None = None
    key: str | None = "s-1"
    server: Server | None = None
    option: str | None = None
    upstream: str | None = None
    marks: tuple[str, ...] = ("system", "last")
    system_style: str = "string"
    step: float = 7.0
    latency: float = 2.0
    t: float = 0.0
    seed: str = "talk"
    system: list[str] = field(default_factory=list)
    tools: list[Part] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    edit: Callable[[dict[str, Any]], None] | None = None
    """Last change of each finished body before it is sent."""
    log: list[Exchange] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    answer: list[Part] = field(default_factory=list)
    """The last reply, as the server gave it."""

    def __post_init__(self) -> None:
        self.model = self.model or bodies.MODELS[self.api]
        self.server = self.server or server_for(self.api)
        self.system = self.system or [f"You are the keeper of the {self.seed} yard. " + prose(self.seed, 60)]
        self.tools = self.tools or [tool(name) for name in TOOLS]

    # -- what the agent does ----------------------------------------------------------------

    def user(self, value: str | None = None, *more: Part) -> Message:
        """Appends a user message."""
        self.count += 1
        parts = [
            text(
                f"Question {self.count}: " + prose(f"{self.seed} user {self.count}", 6)
                if value is None
                else value
            )
        ]
        self.messages.append(Message("user", [*parts, *more]))
        return self.messages[-1]

    def tool_result(self, *parts: Part) -> Message:
        self.messages.append(Message("tool", list(parts)))
        return self.messages[-1]

    def send(
        self,
        *answer: Part,
        echo: bool = True,
        status: int | None = 200,
        usage: Any = "simulated",
        wait: float | None = None,
        reply: bool = True,
        **fields: Any,
    ) -> dict[str, Any]:
        """Sends what the agent holds; the reply is `answer` (some prose by default), and is appended."""
        self.t += self.step if wait is None else wait
        body = bodies.body(self)
        body.update(fields)
        if self.edit is not None:
            self.edit(body)
        n = len(self.log)
        parts = list(answer) or [text(prose(f"{self.seed} reply {n}", 7))]
        self.answer = [dict(p) for p in parts]
        path = bodies.path(self)
        headers = {"content-type": "application/json", **self.headers}
        if self.key:
            headers["x-session-id"] = self.key
        figures = None
        if usage == "simulated":
            assert self.server is not None
            figures = self.server.figures(body, self.t, status, self.latency)
        elif usage is not None:
            figures = usage
        response = bodies.response(self, parts, figures) if reply and (status or 200) < 400 else None
        if status is not None and status >= 400:
            response = {"error": {"message": "no", "type": "server_error"}}
        self.log.append(
            Exchange(
                self.t,
                path,
                json.dumps(body).encode(),
                headers,
                response=json.dumps(response).encode() if response is not None else None,
                status=status,
                upstream=self.upstream,
                timing=Timing(self.latency * 500, self.latency * 1000),
            )
        )
        self.sent.append(copy.deepcopy(body))
        if echo and (status or 200) < 400:
            self.messages.append(Message("assistant", [dict(p) for p in parts]))
        return body

    def turn(self, **more: Any) -> None:
        """One user question and its answer."""
        self.user()
        self.send(**more)

    def step_with_tool(self, **more: Any) -> None:
        """A reply that calls a tool, and the tool's result."""
        n = f"{self.seed}{len(self.log)}"
        self.send(call(n), **more)
        self.tool_result(result(n))

    def work(self, rounds: int = 2) -> None:
        """A user question, some tool calls, an answer."""
        self.user()
        for _ in range(rounds):
            self.step_with_tool()
        self.send()

    # -- what came of it --------------------------------------------------------------------

    def analysed(self, **options: Any) -> list[Turn]:
        return analysed(self.log, self.option, **options)

    def where(self, n: int, needle: str, nth: int = 0) -> str:
        """JSON Pointer of the nth string in body n that contains `needle` (negative n from the end)."""
        found = [pointer for pointer, value in strings(self.sent[n]) if needle in value]
        return found[nth]


def analysed(log: list[Exchange], option: str | None = None, **options: Any) -> list[Turn]:
    """The turns of a log, in the order of their exchanges."""
    result = analyze(log, _RULES, Options(server=option, **options))
    return sorted((t for s in result.sessions for t in s.turns), key=lambda turn: turn.index)


def strings(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """(pointer, string) of all strings in a JSON value, and of keys, as their object's pointer."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield pointer, name
            yield from strings(item, f"{pointer}/{name}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from strings(item, f"{pointer}/{i}")


def merged_log(*talks: Talk) -> list[Exchange]:
    """Several runs on one wire, in the order of time."""
    return sorted((e for talk in talks for e in talk.log), key=lambda e: e.t)
