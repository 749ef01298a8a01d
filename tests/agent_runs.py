"""Agent runs for property tests: a small model of what agents do, told in every API.

A run is a list of acts. The sound ones only append; the others are what goes
wrong in life: clocks, pruning, compaction, reordered tools, edits, rewinds,
forks, retries, lost replies. What an act does is plain to see in the bodies,
so that a property can be judged without asking the analysis.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from cases.agent import Message, Talk, call, image, prose, reasoning, result, text
from cases.bodies import APIS
from hypothesis import strategies as st

from prefixguard.exchange import Exchange

APPENDING = (
    "turn",
    "tool",
    "tools",
    "thought",
    "picture",
    "long",
    "short",
    "odd",
    "twice",
    "unrecorded",
)
BREAKING = (
    "clock", "prune", "compact", "reorder", "add-tool", "edit", "insert", "rewind", "retry", "fail",
    "lost", "model", "merge",
)  # fmt: skip

SERVERS = (None, "anthropic", "openai", "openai-5.6", "vllm", "deepseek", "llama.cpp")
_MARKS: list[tuple[str, ...]] = [
    ("system", "last"), ("last two",), ("system",), ("auto",), ("tools", "last", "1h"), (),
]  # fmt: skip

odd_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def act(talk: Talk, name: str, chance: random.Random, odd: str) -> None:
    """Does one act and, where it is one that sends, sends."""
    _ACTS[name](talk, chance, odd)


def _turn(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user()
    talk.send()


def _tool(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user()
    talk.step_with_tool()
    talk.send()


def _tools(talk: Talk, chance: random.Random, odd: str) -> None:
    n = len(talk.log)
    talk.user()
    talk.send(text(prose(f"both {n}", 2)), call(f"a{n}"), call(f"b{n}", "list_dir"))
    talk.tool_result(result(f"a{n}"), result(f"b{n}", odd))
    talk.send()


def _thought(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user()
    talk.send(reasoning(prose(f"thought {len(talk.log)}", 5)), text(prose(f"said {len(talk.log)}", 3)))


def _picture(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user("What is on this picture?", image(chance.choice("abc")))
    talk.send()


def _long(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user(prose(f"long {len(talk.log)} {chance.random()}", 120))
    talk.send()


def _short(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user("ok")
    talk.send(text("ok"))


def _odd(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user(odd)
    talk.send(text(odd))


def _twice(talk: Talk, chance: random.Random, odd: str) -> None:
    for _ in range(2):
        talk.user("The same question again, word for word, as people ask it.")
        talk.send(text("The same answer again, word for word, as models give it."))


def _silent(talk: Talk, chance: random.Random, odd: str) -> None:
    """The reply was not recorded; the client goes on with it all the same."""
    talk.user()
    talk.send(reply=False)


def _clock(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.system[0] = (
        f"It is 2026-11-30T10:{talk.count % 60:02d}:{len(talk.log) % 60:02d}Z.\n" + talk.system[0][30:]
    )
    _turn(talk, chance, odd)


def _prune(talk: Talk, chance: random.Random, odd: str) -> None:
    results = [p for m in talk.messages for p in m.parts if p["kind"] == "result"]
    if results:
        chance.choice(results)["text"] = "[old output removed]"
    _turn(talk, chance, odd)


def _compact(talk: Talk, chance: random.Random, odd: str) -> None:
    keep = talk.messages[-2:]
    summary = f"Summary of the conversation so far: {prose(f'summary {len(talk.log)}', 10)}"
    talk.messages[:] = [
        Message("user", [text(summary)]),
        Message("assistant", [text("Understood.")]),
        *keep[-1:],
    ]
    _turn(talk, chance, odd)


def _reorder(talk: Talk, chance: random.Random, odd: str) -> None:
    chance.shuffle(talk.tools)
    _turn(talk, chance, odd)


def _add_tool(talk: Talk, chance: random.Random, odd: str) -> None:
    first = copy.deepcopy(talk.tools[0])
    first["name"] = f"extra_{len(talk.log)}"
    talk.tools.insert(chance.randrange(len(talk.tools) + 1), first)
    _turn(talk, chance, odd)


def _edit(talk: Talk, chance: random.Random, odd: str) -> None:
    texts = [p for m in talk.messages for p in m.parts if p["kind"] == "text" and p["text"]]
    if texts:
        part = chance.choice(texts)
        at = chance.randrange(len(part["text"]))
        part["text"] = part["text"][:at] + odd + part["text"][at + 1 :]
    _turn(talk, chance, odd)


def _insert(talk: Talk, chance: random.Random, odd: str) -> None:
    at = chance.randrange(len(talk.messages) + 1)
    talk.messages.insert(at, Message("user", [text("A reminder: " + odd)]))
    _turn(talk, chance, odd)


def _rewind(talk: Talk, chance: random.Random, odd: str) -> None:
    users = [i for i, m in enumerate(talk.messages) if m.role == "user"]
    if users:
        del talk.messages[chance.choice(users) :]
    talk.user(f"Rather do this: {odd}")
    talk.send()


def _retry(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user()
    talk.send(echo=False)
    talk.send()


def _fail(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.user()
    talk.send(status=chance.choice([429, 500, 529]), echo=False)
    talk.send()


def _lost(talk: Talk, chance: random.Random, odd: str) -> None:
    """The reply never becomes part of the history."""
    talk.user()
    talk.send(echo=False)
    _turn(talk, chance, odd)


def _model(talk: Talk, chance: random.Random, odd: str) -> None:
    talk.model = f"{talk.model}-b" if not str(talk.model).endswith("-b") else str(talk.model)[:-2]
    _turn(talk, chance, odd)


def _merge(talk: Talk, chance: random.Random, odd: str) -> None:
    for a, b in zip(talk.messages, talk.messages[1:], strict=False):
        if a.role == b.role == "user":
            a.parts += b.parts
            talk.messages.remove(b)
            break
    _turn(talk, chance, odd)


_ACTS: dict[str, Callable[[Talk, random.Random, str], None]] = {
    "turn": _turn, "tool": _tool, "tools": _tools, "thought": _thought, "picture": _picture, "long": _long,
    "short": _short, "odd": _odd, "twice": _twice, "unrecorded": _silent, "clock": _clock,
    "prune": _prune, "compact": _compact, "reorder": _reorder, "add-tool": _add_tool,
    "edit": _edit, "insert": _insert,
    "rewind": _rewind, "retry": _retry, "fail": _fail, "lost": _lost, "model": _model, "merge": _merge,
}  # fmt: skip


class Run(Talk):
    """A talk that is shown by what was done in it."""

    done: tuple[str, ...] = ()

    def __repr__(self) -> str:
        settings = f"{self.api} key={self.key} marks={self.marks} {self.option} step={self.step}"
        return f"<{settings}: {' '.join(self.done)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


class Log(list[Exchange]):
    """Exchanges, shown by the runs that made them."""

    runs: tuple[Run, ...] = ()

    def __repr__(self) -> str:
        return f"<{len(self)} exchanges of {self.runs}>"


@st.composite
def talks(draw: st.DrawFn, acts: tuple[str, ...], most: int = 7, seed: str = "run") -> Run:
    """A run of up to `most` acts."""
    api = draw(st.sampled_from(APIS))
    talk = Run(
        api=api,
        key=draw(st.sampled_from([f"key-{seed}", None])),
        marks=draw(st.sampled_from(_MARKS)),
        system_style=draw(st.sampled_from(["string", "blocks", "messages"])),
        option=draw(st.sampled_from([None, *SERVERS])),
        step=draw(st.sampled_from([2.5, 7.0, 200.0, 900.0])),
        seed=seed,
    )  # fmt: skip
    chance = random.Random(draw(st.integers(0, 2**32)))
    talk.done = tuple(draw(st.lists(st.sampled_from(acts), min_size=1, max_size=most)))
    for name in talk.done:
        act(talk, name, chance, draw(odd_texts))
    return talk


@st.composite
def logs(draw: st.DrawFn, acts: tuple[str, ...] = APPENDING + BREAKING, most: int = 6) -> Log:
    """One or two runs on one wire."""
    runs = [draw(talks(acts, most, seed=name)) for name in ("run", "other")[: draw(st.integers(1, 2))]]
    log = Log(sorted((e for run in runs for e in run.log), key=lambda e: e.t))
    log.runs = tuple(runs)
    return log
