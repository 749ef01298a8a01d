"""What the pages are given: states of segments, divergences side by side, light turns, bounded texts."""

from __future__ import annotations

from typing import Any

import pytest
from cases.agent import Talk, prose, text, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.analysis import Fold, Options
from prefixguard.exchange import Exchange
from prefixguard.reports.html import Listed, overview, segment_text, session_view, turn_view
from prefixguard.reports.html.difference import Side, _sides
from prefixguard.reports.html.texts import Texts
from prefixguard.reports.json import encode
from prefixguard.rulebook import Rulebook
from prefixguard.tokens.counter import TiktokenTokenizer
from prefixguard.turn import Divergence, Session

RULEBOOK = Rulebook()


class Told:
    """A log, folded, with its views."""

    def __init__(self, log: list[Exchange], recording: Any = "full") -> None:
        self.fold = Fold(RULEBOOK, Options.standard(RULEBOOK))
        for exchange in log:
            self.fold.step(exchange)
        self.analysis = self.fold.result()
        self.session: Session = self.analysis.sessions[0]
        self.listed = Listed("1", self.session, recording)

    def turn(self, n: int) -> Any:
        return turn_view(self.listed, self.session.turns[n], RULEBOOK.findings, self.fold)


def talk(**fields: Any) -> Talk:
    return Talk(api="anthropic", model="claude-sonnet-4-5", **fields)


def with_clock() -> list[Exchange]:
    one = talk()
    rules = one.system[0]
    for n in range(4):
        one.system = [f"{rules} It is 12:0{n}:00. {prose('behind', 40)}"]
        one.turn()
    return one.log


def test_states_of_an_append() -> None:
    one = talk()
    for _ in range(3):
        one.turn()
    prompt = Told(one.log).turn(2).prompt
    # Read were five tools, the system text, and all up to the second question; new are reply and question.
    assert prompt.states == [("cached", 9), ("new", 2)]
    assert prompt.basis == "reported"
    assert prompt.parted is None
    assert sum(count for _, count in prompt.states) == len(prompt.segments)


def test_states_of_a_break() -> None:
    told = Told(with_clock())
    prompt = told.turn(3).prompt
    assert prompt.parted is not None
    position, char = prompt.parted
    assert position == 5  # behind five tools
    segment = prompt.segments[position]
    assert (segment.group, segment.role, segment.breakpoint) == ("head", "system", "")
    whole = segment_text(told.fold, told.session.turns[3].index, position)
    assert whole is not None
    assert whole.text[:char].endswith("It is 12:0")
    # The head is lost although a digit of it is new, and so is what was sent before.
    assert prompt.states[-1] == ("new", 2)
    assert prompt.states[-2][0] == "lost"


def test_what_expired_is_lost_without_a_break() -> None:
    one = talk()
    one.turn()
    one.turn(wait=4000)
    turn = Told(one.log).turn(1)
    assert turn.headline == "no break"
    assert turn.mark == "remark"
    assert turn.prompt.states == [("lost", 7), ("new", 2)]


def test_unknown_reads_are_predicted() -> None:
    one = talk()
    for _ in range(2):
        one.turn(usage=None)
    turn = Told(one.log).turn(1)
    assert turn.prompt.basis == "predicted"
    assert turn.prompt.states[0][0] == "cached"


def test_reordered_tools_are_named_in_their_order() -> None:
    one = talk(tools=[tool(name) for name in ("alpha", "beta", "gamma")])
    one.turn()
    one.tools = one.tools[::-1]
    one.turn()
    difference = Told(one.log).turn(1).difference
    assert difference.order == (["alpha", "beta", "gamma"], ["gamma", "beta", "alpha"])
    assert {op for op, _ in difference.before.words} == {"differs"}


def test_difference_of_a_clock() -> None:
    difference = Told(with_clock()).turn(3).difference
    assert [span for span in difference.before.words if span[0] == "differs"] == [("differs", "02")]
    assert [span for span in difference.after.words if span[0] == "differs"] == [("differs", "03")]
    assert difference.before.start > 0
    assert difference.tokenizer == "o200k_base"
    assert not difference.tokens_exact
    assert ("differs", "02") in difference.before.tokens


def test_a_changed_parameter_has_no_place_among_the_segments() -> None:
    one = talk(extra={"thinking": {"type": "enabled", "budget_tokens": 1024}})
    one.turn()
    one.turn(thinking={"type": "enabled", "budget_tokens": 2048})
    turn = Told(one.log).turn(1)
    assert turn.prompt.parted is None
    assert "1024" in "".join(text_ for _, text_ in turn.difference.before.words)


def test_a_refused_request_says_why_it_has_no_prompt() -> None:
    one = talk()
    one.turn()
    one.turn(status=529)
    turn = Told(one.log).turn(1)
    assert turn.mark == "failed"
    assert turn.prompt is None
    assert "status 529" in turn.prompt_note


def test_a_request_that_nobody_understands() -> None:
    told = Told([Exchange(1.0, "/v1/messages", b"{", response=b"{}")])
    turn = told.turn(0)
    assert (turn.mark, turn.headline, turn.prompt) == ("unread", "not understood", None)
    assert "could not be understood" in turn.prompt_note


@pytest.mark.parametrize(
    ("recording", "said"), [("hashes", "digests"), ("redacted", "secrets"), ("full", "")]
)
def test_limits(recording: Any, said: str) -> None:
    turn = Told(with_clock(), recording).turn(0)
    assert said in turn.limits
    assert bool(turn.limits) == bool(said)


def test_turns_are_light() -> None:
    told = Told(with_clock())
    view = session_view(told.listed, RULEBOOK.findings)
    assert [turn.mark for turn in view.turns] == ["", "break", "break", "break"]
    assert len(encode(view.turns)) < 900 * len(view.turns)
    first = view.turns[1]
    assert first.read is not None
    assert first.written is not None
    assert first.read + first.written + (first.uncached or 0) == first.prompt


def test_overview_ranks_over_sessions() -> None:
    broken, sound = Told(with_clock()), Told(talk(key="s-2").log or with_sound())
    listed = [broken.listed, Listed("2", sound.session)]
    view = overview(listed, RULEBOOK.findings, broken.analysis.prices, "1")
    assert [entry.breaks for entry in view.sessions] == [3, 0]
    assert view.causes[0].code == "PG101"
    assert (view.causes[0].key, view.causes[0].sessions) == ("1", 1)
    assert view.causes[0].mend
    assert [mark for _, mark in view.sessions[0].strip] == ["", "break", "break", "break"]


def with_sound() -> list[Exchange]:
    one = talk(key="s-2")
    one.turn()
    one.turn()
    return one.log


def test_a_strip_stays_small() -> None:
    one = talk()
    for _ in range(3):
        one.turn()
    told = Told(one.log)
    many = Session("s", "header", "h", told.session.turns * 100, told.session.totals)
    entry = overview([Listed("1", many)], {}, None, "1").sessions[0]
    assert 48 <= len(entry.strip) <= 96


_DIVERGENCE = Divergence(0, "turn", "/x", "changed", "certain", 0, 0, "", "")


@settings(deadline=None)  # the first text waits for the vocabulary
@given(
    st.text(max_size=300), st.text(max_size=300), st.text(max_size=60), st.sampled_from(["changed", "moved"])
)
def test_spans_are_the_text(one: str, other: str, common: str, kind: Any) -> None:
    """Whatever differs, both sides show a window of their own text, letter by letter."""
    divergence = Divergence(0, "turn", "/x", kind, "certain", 0, 0, "", "")
    old, new = common * 20 + one, common * 20 + other
    tokenizer = TiktokenTokenizer("o200k_base", exact=True)
    for side, whole in zip(_sides(old, new, divergence, tokenizer), (old, new), strict=True):
        assert isinstance(side, Side)
        shown = "".join(text_ for _, text_ in side.words)
        assert whole[side.start :].startswith(shown)
        assert side.chars == len(whole)
        tokens = "".join(text_ for _, text_ in side.tokens)
        assert tokens in whole


def test_what_only_one_window_reaches_is_no_difference() -> None:
    """The window ends in the middle of a word on either side, at different letters."""
    old, new = "a " + prose("same", 60), "a much longer beginning " + prose("same", 60)
    before, after = _sides(old, new, _DIVERGENCE, None)
    assert before is not None
    assert after is not None
    assert before.words[-1][0] == after.words[-1][0] == "same"


def test_long_texts_are_cut_where_nobody_looks() -> None:
    long = prose("long", 4000)
    assert len(long) > 200_000
    one = talk()
    one.turn()
    for n in range(2):
        one.system = [long[:150_000] + f"It is 12:0{n}:00. " + long[150_000:]]
        one.turn()
    told = Told(one.log)
    texts = Texts()
    texts.begin()
    view = told.turn(2)
    texts.see(view.prompt, True, told.fold, 2)
    (part,) = texts.parts()
    position, char = view.prompt.parted
    pieces = part[view.prompt.segments[position].ref]
    assert sum(len(piece) for _, piece in pieces) <= 100_000
    assert any(start <= char < start + len(piece) for start, piece in pieces)
    whole = one.system[0]
    assert all(whole[start : start + len(piece)] == piece for start, piece in pieces)
    assert texts.cut == 1


def test_texts_have_one_budget() -> None:
    one = talk()
    for n in range(30):
        one.user(f"{n} " + prose(n, 100))
        one.send(text("yes"))
    told = Told(one.log)
    texts = Texts(most=150_000)
    texts.begin()
    texts.see(told.turn(29).prompt, False, told.fold, 29)
    kept = sum(len(piece) for part in texts.parts() for pieces in part.values() for _, piece in pieces)
    assert kept < 170_000
    assert texts.cut > 0


def test_windows_of_a_text() -> None:
    told = Told(with_clock())
    index = told.session.turns[0].index
    assert segment_text(told.fold, index, 99) is None
    assert segment_text(told.fold, 99, 0) is None
    far = segment_text(told.fold, index, 5, 10**9)
    assert far is not None
    assert far.text == ""
