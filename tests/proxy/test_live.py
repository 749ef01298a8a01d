"""What the terminal shows for an event."""

from __future__ import annotations

import io
import threading

import click
import pytest

from prefixguard.proxy.frames import Cause, Event, Lost, Ready, Stored, Trouble, TurnSeen
from prefixguard.proxy.live import Printer, Tally, ending, lines_of, wants_color

QUIET = TurnSeen(
    "1", "c12345", 4, model="gpt-5.2", status=200, shape="append", prompt_tokens=12345, tokens_exact=True,
    reported_read=12288, read_low=12288, read_high=12288, verdict="as-predicted", first_token_ms=420.0,
)  # fmt: skip
CLOCK = Cause("PG101", "clock-in-prefix", "the time of day", "/system/0/text", "error", primary=True)
BREAK = TurnSeen(
    "2", "c12345", 5, model="gpt-5.2", status=200, shape="changed", is_break=True, prompt_tokens=13000,
    tokens_exact=False, rebilled_tokens=11000, reported_read=0, read_low=0, read_high=0,
    verdict="as-predicted", causes=(CLOCK,), first_token_ms=2400.0,
)  # fmt: skip


def text(event: Event) -> list[str]:
    return [click.unstyle(line) for line in lines_of(event)]


def test_a_quiet_turn_is_one_line() -> None:
    assert text(QUIET) == ["append  c12345 #4  gpt-5.2  12,345 tokens  cached 12,288  first token 420 ms"]


def test_a_break_is_explained() -> None:
    assert text(BREAK) == [
        "break   c12345 #5  gpt-5.2  ~13,000 tokens  cached 0  first token 2.4 s",
        "       PG101 clock-in-prefix: the time of day  at /system/0/text",
        "       ~11,000 tokens that were cached are billed again",
    ]


@pytest.mark.parametrize(
    ("event", "parts"),
    [
        (TurnSeen("1", "s", 0, status=None, total_ms=5.0), ["failed", "no answer"]),
        (TurnSeen("1", "s", 0, status=529), ["failed", "HTTP 529"]),
        (TurnSeen("1", "s", 0, status=200, aborted=True), ["failed", "aborted"]),
        (TurnSeen("1", "", -1, status=200, note="not analysed"), ["session", "not analysed"]),
        (TurnSeen("1", "s", 3, status=200, verdict="less", reported_read=0, read_low=512, read_high=640),
         ["miss", "cached 0", "expected 512 to 640"]),
        (Lost("1", "no room left"), ["not recorded", "no room left"]),
        (Trouble("analysis", "bad"), ["trouble", "analysis", "bad"]),
    ],
)  # fmt: skip
def test_what_went_wrong_is_said(event: Event, parts: list[str]) -> None:
    (line,) = text(event)
    assert all(part in line for part in parts)


def test_what_says_nothing_to_a_reader_is_not_shown() -> None:
    assert text(Stored("1", "s")) == text(Ready(1)) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "color"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_only_where_it_is_wanted(stream: io.StringIO, environ: dict[str, str], color: bool) -> None:
    assert wants_color(stream, environ) == color
    printer = Printer(stream, color=color)
    printer(BREAK)
    printer.close()
    assert ("\x1b[" in stream.getvalue()) == color
    assert "PG101" in click.unstyle(stream.getvalue())


class Stuck(io.StringIO):
    """A terminal that stops taking text until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def write(self, text: str) -> int:
        self.go_on.wait(30)
        return super().write(text)


def test_a_stuck_terminal_never_blocks_and_drops_lines() -> None:
    stream = Stuck()
    printer = Printer(stream, color=False)
    for _ in range(5000):
        printer(QUIET)
    assert printer.dropped > 0
    stream.go_on.set()
    printer.close(["the end"])
    assert stream.getvalue().endswith("the end\n")


def test_the_ending_adds_up() -> None:
    tally = Tally()
    for event in (QUIET, BREAK, Trouble("analysis", "bad")):
        tally.add(event)
    lines = list(ending(tally, {"recorded": 2, "lost": {"no room left": 3}, "unknown_api": 1}))
    assert lines[0] == "recorded 2 exchanges, 1 break (~11,000 tokens billed again)"
    assert "  3 x no room left" in lines
    assert any("analysis: bad" in line for line in lines)
    (nothing, *hint) = ending(Tally(), {"recorded": 0, "exchanges": 0, "lost": {}, "unknown_api": 0})
    assert nothing == "recorded 0 exchanges"
    assert any("rules agents" in line for line in hint)
    assert list(ending(Tally(), {"recorded": 1, "lost": {}, "unknown_api": 0})) == ["recorded 1 exchange"]
