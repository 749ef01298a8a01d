# ruff: noqa: E501
"""What changes in the head of the prompt, in many words and places, gets its name (PG101 to PG112)."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from .agent import Talk, prose
from .bodies import APIS
from .verdicts import breaks

_ID = [str(uuid.UUID(int=0x5F3A9C21D4E84B7A9C0DE1F200000000 + n * 7919**7)) for n in range(9)]
_HEX = [f"{(n + 3) * 0x9E3779B97F4A7C15 % 2**64:016x}" for n in range(9)]
_NAMES = ["amber", "birch", "cedar", "dune", "elm", "fjord", "grove", "heath", "inlet"]


def _pick(*texts: str) -> Callable[[int], str]:
    return lambda n: texts[n % len(texts)]


LINES: dict[str, list[Callable[[int], str]]] = {
    "PG101": [
        lambda n: f"Current time: 2026-03-04 14:{20 + n}:1{n}",
        lambda n: f"It is now 2026-03-04T14:{20 + n}:11.93{n}Z.",
        lambda n: f"Clock on the wall: 08:4{n}:1{n}, Friday.",
        lambda n: f"The time is {n + 1}:45 PM in Lisbon.",
        lambda n: f"Timestamp: {1772600000 + 13 * n}",
        lambda n: f"now={1772600000123 + 1300 * n}",
        lambda n: f"<current_datetime>Wed Mar  4 14:{20 + n}:09 2026</current_datetime>",
        lambda n: f"Server time 14h{20 + n} UTC",
        lambda n: f"Date and time: March 4, 2026 at 2:{20 + n} pm",
        lambda n: f"today is Wednesday, 4 March 2026, {9 + n}:05",
        lambda n: f"generated_at: 20260304T14{20 + n}11Z",
        lambda n: f"Aktuelle Uhrzeit: 14:{20 + n} Uhr",
        lambda n: f"当前时间：2026年3月4日 14:{20 + n}",
    ],
    "PG102": [
        lambda n: f"Today's date: 2026-03-0{n + 1}",
        lambda n: f"Today is March {n + 4}, 2026.",
        lambda n: f"Current date: 0{n + 1}/03/2026",
        lambda n: f"Today is {_pick('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday')(n)}.",
        lambda n: f"Knowledge as of Wed Mar {n + 4} 2026",
        lambda n: f"Date: {n + 4}. März 2026",
        lambda n: f"今天是2026年3月{n + 4}日",
        lambda n: f"<env>\nPlatform: linux\nToday's date: {n + 4}/3/2026\n</env>",
    ],
    "PG103": [
        lambda n: f"The last message arrived {3 + n} minutes ago.",
        lambda n: f"Session elapsed: {12 + 7 * n}s",
        lambda n: f"Time remaining: {50 - n} minutes",
        lambda n: f"The user has been idle for {2 + n} hours.",
        lambda n: f"Uptime: {4 + n} days",
        lambda n: f"You have {59 - n} seconds left to answer.",
        lambda n: f"Last synced {_pick('just now', 'a minute ago', 'a few minutes ago', 'an hour ago')(n)}",
        lambda n: f"Deadline in {5 - n} days",
    ],
    "PG104": [
        lambda n: f"Request ID: {_ID[n]}",
        lambda n: f"x-vendor-billing: client=9.4.7ab; entry=cli; sig={_HEX[n][:5]};",
        lambda n: f"trace={_HEX[n]}",
        lambda n: f"Conversation {_ID[n]} of this tenant.",
        lambda n: f"nonce: {_HEX[n][:8]}",
        lambda n: f"Your run is called run_{_HEX[n][:12]}.",
        lambda n: f'<request id="req-{_HEX[n][:10]}"/>',
        lambda n: f"Cache buster {_HEX[n][:10].upper()}",
        lambda n: f"Sandbox container {_HEX[n][:12]} is ready.",
        lambda n: f"The working copy lies in /tmp/agent-{_HEX[n][:8]}/repo",
        lambda n: f"Seed {_NAMES[n]}{_HEX[n][:6]} of this run",
    ],
    "PG105": [
        lambda n: f"Step {n + 1} of 50, {7 * n + 7} % of the token budget used.",
        lambda n: f"Turn {n + 1}",
        lambda n: f"This is iteration {n + 1}/20.",
        lambda n: f"Tokens used so far: {1200 + 317 * n:,}",
        lambda n: f"Spent: ${0.12 + 0.07 * n:.2f} of $5.00",
        lambda n: f"Remaining budget: {98_000 - 3_211 * n} tokens",
        lambda n: f"You have made {n + 3} tool calls.",
        lambda n: f"Messages in this conversation: {2 * n + 1}",
        lambda n: f"Attempt #{n + 1}",
        lambda n: f"Context used: {12 + 5 * n}%",
        lambda n: f'<budget total="200000" left="{199000 - 811 * n}"/>',
        lambda n: f"{20 - n} requests remaining",
    ],
    "PG106": [
        lambda n: f"Current branch: {_NAMES[n]}-work",
        lambda n: f"Working directory: /home/dev/{_NAMES[n]}",
        lambda n: "Git status:\n" + "\n".join(f" M src/{name}.py" for name in _NAMES[: n + 1]),
        lambda n: "Files in the project:\n" + "\n".join(f"- src/{name}.py" for name in _NAMES[: n + 2]),
        lambda n: f"Open file: src/{_NAMES[n]}.py",
        lambda n: f"CPU load {0.31 + n / 10:.2f}, memory {41 + n} %",
        lambda n: f"Last commit: {_HEX[n][:7]} mend the {_NAMES[n]}",
        lambda n: f"cwd={'/srv/' + _NAMES[n]}",
        lambda n: f"Hostname: {_NAMES[n]}-7",
        lambda n: f"<environment_details>\n# Visible Files\nsrc/{_NAMES[n]}.py\n</environment_details>",
        lambda n: f"Process {4211 + 17 * n} is listening on port {3000 + n}",
        lambda n: f"Terminal output:\n$ make\n{_NAMES[n]} built",
        lambda n: "Directory structure:\n" + "\n".join(f"├── {name}" for name in _NAMES[: n + 2]),
    ],
    "PG107": [
        lambda n: (
            "Plan:\n"
            + "\n".join(f"[{'x' if i < n else ' '}] mend the {name}" for i, name in enumerate(_NAMES))
        ),
        lambda n: "TODO:\n" + "\n".join(f"- mend the {name}" for name in _NAMES[n:]),
        lambda n: f"Current mode: {_pick('plan', 'act', 'review')(n)}",
        lambda n: f"Current task: mend the {_NAMES[n]}",
        lambda n: (
            "## Task list\n"
            + "\n".join(f"{i}. {name} ({'done' if i < n else 'open'})" for i, name in enumerate(_NAMES))
        ),
        lambda n: f"Phase: {_pick('exploring', 'editing', 'testing')(n)}",
        lambda n: (
            "<todos>\n"
            + "\n".join(f"{name}: {'completed' if i < n else 'pending'}" for i, name in enumerate(_NAMES))
            + "\n</todos>"
        ),
        lambda n: (
            "Progress:\n" + "\n".join(f"{'✅' if i < n else '⬜'} {name}" for i, name in enumerate(_NAMES))
        ),
        lambda n: f"You are in {_pick('PLAN', 'ACT')(n)} MODE",
        lambda n: f"Next step: repair the {_NAMES[n]} gate",
        lambda n: f"Goal: {_NAMES[n]} must pass all checks",
    ],
    "PG108": [
        lambda n: f"Recalled notes:\n{prose(f'memory {n}', 6)}",
        lambda n: f"## Relevant memories\n- {prose(f'memory {n}', 2)}\n- {prose(f'memory b{n}', 2)}",
        lambda n: f"<retrieved_context>\n{prose(f'docs {n}', 6)}\n</retrieved_context>",
        lambda n: f"Search results:\n1. {prose(f'hit {n}', 2)}\n2. {prose(f'hit b{n}', 2)}",
        lambda n: f"Knowledge base excerpts:\n{prose(f'kb {n}', 5)}",
        lambda n: f"Documents:\n[1] {prose(f'doc {n}', 3)}\n[2] {prose(f'doc b{n}', 3)}",
        lambda n: f"What you remember about this user: {prose(f'fact {n}', 3)}",
        lambda n: f"Context:\n{prose(f'rag {n}', 8)}",
        lambda n: f"<memory>\n{prose(f'm {n}', 4)}\n</memory>",
        lambda n: f"Use the following passages to answer.\n{prose(f'p {n}', 5)}",
    ],
    "PG109": [
        lambda n: f"The user is called {_NAMES[n].title()}.",
        lambda n: f"Tenant: {_NAMES[n]} industries",
        lambda n: f"User name: {_NAMES[n]}",
        lambda n: f"user_email: {_NAMES[n]}@example.com",
        lambda n: f"Customer: {_NAMES[n].title()} Ltd, plan tier: gold",
        lambda n: f"You are talking to {_NAMES[n].title()} of the {_NAMES[(n + 4) % 9]} team.",
    ],
    "PG110": [
        lambda n: (
            "Examples:\n" + "\n".join(f"Q: {name}? A: {name[::-1]}" for name in _NAMES[n:] + _NAMES[:n])
        ),
        lambda n: (
            "Here are some examples:\n"
            + "\n\n".join(f"Example: {prose(f'shot {(n * 3 + i) % 11}', 2)}" for i in range(3))
        ),
        lambda n: (
            "<examples>\n"
            + "\n".join(f"<example>{prose(f'shot {(n * 5 + i) % 11}', 2)}</example>" for i in range(3))
            + "\n</examples>"
        ),
        lambda n: (
            "Few-shot demonstrations:\n" + "\n".join(prose(f"shot {(n * 3 + i) % 11}", 2) for i in range(3))
        ),
    ],
    "PG111": [
        lambda n: (
            f"Contents of AGENTS.md:\n{prose('rules', 4)}\n{'Always run the linter.' if n > 1 else ''}\n{prose('rules b', 3)}"
        ),
        lambda n: (
            f"# CLAUDE.md\n{prose('claude rules', 4)}\n- {'use tabs' if n > 1 else 'use spaces'}\n{prose('rules c', 3)}"
        ),
        lambda n: (
            f"<project_rules>\n{prose('house', 3)}\n{prose('extra', 1) if n > 1 else 'none'}\n</project_rules>"
        ),
        lambda n: (
            f"Instructions from .cursorrules:\n{prose('cursor', 2)} {'Prefer short names.' if n > 1 else 'Prefer long names.'}"
        ),
    ],
    "PG112": [
        lambda n: prose(f"other {n}", 3),
        lambda n: f"You answer {_pick('tersely', 'with care', 'in verse', 'plainly')(n)}.",
    ],
}
ONCE = ("PG111",)
"""Told as an edit in mid-session: before and after the third request."""

_ROWS = [(code, i) for code, lines in LINES.items() for i in range(len(lines))]


def _placed(line: str, place: str) -> list[str]:
    """The system text with a changing line in it, as blocks."""
    first, second = "You are the keeper of the yard. " + prose("head one", 50), prose("head two", 50)
    match place:
        case "start":
            return [f"{line}\n\n{first}\n\n{second}"]
        case "middle":
            return [f"{first}\n\n{line}\n\n{second}"]
        case "end":
            return [f"{first}\n\n{second}\n\n{line}"]
        case "first block":
            return [line, first, second]
        case "middle block":
            return [first, line, second]
        case "last block":
            return [first, second, line]
    raise ValueError(place)


PLACES = ("start", "middle", "end", "first block", "middle block", "last block")


@pytest.mark.parametrize(("code", "row"), _ROWS, ids=[f"{c}-{r}" for c, r in _ROWS])
def test_changing_line_is_named_wherever_it_stands(code: str, row: int) -> None:
    """Each wording in two places and two APIs, chosen so that all are met."""
    for n, place in enumerate((PLACES[row % 3], PLACES[3 + row % 3])):
        api = APIS[(row * 2 + n) % len(APIS)]
        talk = Talk(api, system_style="blocks", marks=("system", "last"))
        talk.user()
        changed = []
        for turn in range(4):
            line = LINES[code][row](turn)
            talk.system = _placed(line, place)
            if turn and line != LINES[code][row](turn - 1):
                changed.append(turn)
            talk.step_with_tool()
        assert changed
        turns = talk.analysed()
        for turn in changed:
            # A date that changes once a day is a decision; here it changes on each request, which is none.
            breaks(turns[turn], code, deliberate=code == "PG111")


def test_each_cause_in_one_text_is_named_and_the_first_one_leads() -> None:
    """Mending one alone would not help: the others break the prefix all the same."""
    talk = Talk("openai-chat")
    talk.user()
    for turn in range(3):
        talk.system = [
            f"You keep the yard. {prose('several', 60)}\n\nNow: 10:4{turn}\n\n{prose('between', 20)}\n\n"
            f"You are on step {turn + 1} of 9.\n\n## Working tree\nOn branch {_NAMES[turn]}"
        ]
        talk.step_with_tool()
    found = [f.code for f in talk.analysed()[2].findings if f.severity != "info"]
    assert found == ["PG101", "PG105", "PG106"]


@pytest.mark.parametrize("api", APIS)
def test_date_that_changes_once_is_a_decision(api: str) -> None:
    talk = Talk(api, system_style="blocks", marks=("system", "last"))
    talk.user()
    for turn in range(6):
        talk.system = _placed(f"Today's date: 2026-03-0{4 if turn < 3 else 5}", PLACES[turn // 6])
        talk.step_with_tool()
    turns = talk.analysed()
    breaks(turns[3], "PG102", deliberate=True)
    assert not [t for t in turns if t.is_fault]
