"""Sessions for the pages: one as agents are, a very long one, and one whose texts mean harm."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from cases.agent import Talk, call, prose, result, text, tool

from prefixguard.exchange import Exchange, Timing

HOST = "https://api.anthropic.com"
_TOOLS = ("read_file", "search_code", "run_tests", "edit_file", "list_dir", "web_search")
MODEL = "claude-sonnet-4-5"
START = 1_790_000_000.0

# fmt: off
_FILES = (
    "billing/invoice.py", "billing/tax.py", "billing/rounding.py", "api/routes.py", "api/errors.py",
    "store/ledger.py", "store/migrations/0012_currency.py", "tests/test_tax.py", "tests/test_invoice.py",
)
_ASKED = (
    "The tax on invoices with several currencies is wrong. Find out why and fix it.",
    "Good. Now the same for credit notes.", "Add a test that fails without your change.",
    "The build is red: tests/test_invoice.py::test_rounds_half_up.",
    "Explain what the ledger does with fractions.",
    "Move the rounding into one place.", "Write the change log entry.",
    "Is there anything left that rounds twice?",
)
_RULES = (
    "Read a file before you change it.", "Run the tests after each change.",
    "Keep to the style of the file at hand.",
    "Never touch migrations that have been released.", "Say what you did in at most three sentences.",
    "Ask before you delete anything.", "Do not add a dependency.",
    "Write tests that fail without the change.",
)
# fmt: on


def coding_session(rounds: int = 12, key: str = "7f3a19c2-fix-invoice-tax") -> list[Exchange]:
    """A coding agent over an afternoon: sound for a while, then one fault after the other.

    Its tools come in another order twice, a clock gets into the system text for
    some turns, old results are pruned once, a pause is too long, one request
    fails, and a helper works beside it.
    """
    rules = "\n".join(f"{i}. {rule} {prose(rule, 6)}" for i, rule in enumerate(_RULES * 3, 1))
    system = f"You are a careful software engineer at work in the repository `payments`.\n\n{rules}"
    talk = Talk(
        api="anthropic", model=MODEL, key=key, upstream=HOST, seed="payments", system=[system],
        tools=[tool(name) for name in _TOOLS],
        marks=("system", "last"), t=START, step=9.0,
    )  # fmt: skip
    dice = random.Random("an afternoon")
    for n in range(rounds):
        _disturb(talk, n, system)
        talk.user(_ASKED[n % len(_ASKED)])
        for _ in range(dice.choice((2, 3, 4))):
            place = f"{len(talk.log)}"
            path = dice.choice(_FILES)
            talk.send(
                text(f"I look at `{path}`."), call(place, "read_file", path=path), wait=dice.uniform(4, 22)
            )
            talk.tool_result(result(place, _source(path, dice)))
        if n == rounds - 3:
            talk.send(status=529)
        talk.send(text(f"Done: {prose(n, 3)}"))
    return [_timed(exchange, dice) for exchange in talk.log]


def _disturb(talk: Talk, n: int, system: str) -> None:
    if n == 3:
        talk.tools = [talk.tools[i] for i in (4, 0, 5, 1, 2, 3)]
    if 5 <= n <= 6:
        talk.system = [f"{system}\n\nThe time is 2026-09-21 14:0{n}:{7 * n % 60:02d}."]
    elif n == 7:
        talk.system = [system]
    if n == 8:
        for message in talk.messages[2:14]:
            for part in message.parts:
                if part["kind"] == "result":
                    part["text"] = "[old tool result removed to save context]"
    if n == 10:
        talk.t += 1900


def _source(path: str, dice: random.Random) -> str:
    lines = [f"# {path}", "from decimal import Decimal, ROUND_HALF_UP", ""]
    for i in range(dice.randint(6, 22)):
        rate = f"Decimal('0.{dice.randint(10, 99)}')"
        lines += [f"def step_{i}(amount: Decimal) -> Decimal:", f'    """{prose(f"{path} {i}", 1)}"""']
        lines += [f"    return (amount * {rate}).quantize(Decimal('0.01'))", ""]
    return "\n".join(lines)


def _timed(exchange: Exchange, dice: random.Random) -> Exchange:
    """The exchange with the times of a server that computes what it does not read."""
    usage = json.loads(exchange.response or b"{}").get("usage") or {}
    computed = usage.get("cache_creation_input_tokens", 0) + usage.get("input_tokens", 0)
    first = 380 + computed * 0.14 + dice.uniform(0, 160)
    return replace(exchange, timing=Timing(round(first), round(first + dice.uniform(900, 4200))))


def long_session(turns: int = 200, size: int = 5_000) -> list[Exchange]:
    """A session that grows by `size` characters a turn; every 25 turns a counter in its head changes."""
    filler = prose("filler", 600)
    messages: list[str] = []
    found: list[Exchange] = []
    cached = 0
    for n in range(turns):
        at = (n * 37) % 1000
        asked = f"Question {n}. {(filler * 4)[at : at + size]}"
        messages.append(json.dumps({"role": "user", "content": asked}))
        system = f"You keep the yard. {filler[:4000]} Counter {n // 25}."
        head = json.dumps({"model": MODEL, "cache_control": {"type": "ephemeral"}, "system": system})
        request = f'{head[:-1]},"messages":[{",".join(messages)}]}}'.encode()
        read = 0 if n % 25 == 0 else cached
        cached = len(request) // 5
        usage = {"input_tokens": 4, "cache_read_input_tokens": read, "output_tokens": 6}
        usage["cache_creation_input_tokens"] = cached - read
        answer = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": f"Answer {n}."}],
        }
        response = json.dumps({**answer, "model": MODEL, "usage": usage}).encode()
        headers = {"x-session-id": "long"}
        found.append(Exchange(START + 7 * n, "/v1/messages", request, headers, response, upstream=HOST))
        messages.append(json.dumps({"role": "assistant", "content": f"Answer {n}."}))
    return found


HOSTILE = (
    "</script><script>document.title='broken out'</script>",
    "<img src=x onerror=\"document.title='broken out'\"><style>*{display:none}</style>",
    "right to left: \u202eesrever\u202c, zero width: a\u200bb, marks: \u200f\u2066x\u2069 \u2028\u2029",
    "escape \u001b[31mred\u001b[0m nul \u0000 bell \u0007 emoji 👩‍👩‍👧‍👦🏽 \U0001f9ff",
    "]]>--><!--<![CDATA[ \\u003c/script> ${document.title} {{constructor.constructor('1')()}}",
    "x" * 400_000,
    "עברית וערבית: السلام عليكم " * 400,
    "\n" * 3_000 + "after many lines",
)


def hostile_session() -> list[Exchange]:
    """A session whose prompts, names and ids try to become markup, or to turn the page around."""
    talk = Talk(
        api="anthropic", model=MODEL, key='"><script>document.title="broken out"</script>\u202e',
        upstream=HOST, seed="hostile", t=START, tools=[tool("</script><b>tool"), tool("read_file")],
    )  # fmt: skip
    for n, harm in enumerate(HOSTILE):
        talk.system = [f"{harm[:200]} {n} " + prose("hostile", 200)]
        talk.user(harm)
        talk.send(text(harm[:3000]))
    return talk.log
