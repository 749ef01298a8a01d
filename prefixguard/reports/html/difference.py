"""Where two prompts part, side by side: the same place before and after, by words and by tokens.

The texts are windows around the first difference: a segment may be a megabyte,
what is to be seen is a line. Where the prompts are not at hand, the short
windows that the analysis keeps are shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

from prefixguard.divergence import shape_difference
from prefixguard.prompt import Segment
from prefixguard.reports.text.explanation import KINDS, place
from prefixguard.tokens.counter import Tokenizer
from prefixguard.tokens.layout import Layout, common_segments
from prefixguard.tokens.splitting import split
from prefixguard.turn import Divergence, Turn

type Op = Literal["same", "differs"]
type Span = tuple[Op, str]

_BEFORE = 280  # characters of shared text in front of the difference
_BEHIND = 720  # characters from it on
_TOKENS_BEFORE, _TOKENS_BEHIND = 32, 64
_ALIKE_BY_CHANCE = 3  # characters between two differences that are no common ground
_ALIKE_AGAIN = 24  # characters from which on two texts go on alike
_NAMES = 256  # tools named in an order
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_CUT = re.compile(r"(?<=\S) ")
_WHOLE = frozenset({"inserted", "removed", "moved", "reordered"})
"""Kinds where another segment stands at the place: words that both happen to have mean nothing."""


class Side(msgspec.Struct, frozen=True):
    """One of the two texts. chars: its whole length; start: where the window begins, in characters.

    words: the window in spans that the other side has, too, or not. tokens:
    the same by tokens, one span each; empty where they cannot be had.
    """

    chars: int
    start: int
    words: list[Span]
    tokens: list[Span]


class Difference(msgspec.Struct, frozen=True):
    """The divergence of a turn.

    against: index of the turn held beside it. what: the kind of change, in
    words. where, detail: as the terminal report writes them. before, after: None
    where there is nothing on that side. tokenizer: whose tokens they are, None
    without any; tokens_exact: whether the server has the same. order: names of
    the tools before and after, where the change is in the tools.
    """

    against: int
    pointer: str
    kind: str
    certainty: str
    what: str
    where: str
    detail: list[str]
    before: Side | None
    after: Side | None
    tokenizer: str | None
    tokens_exact: bool
    order: tuple[list[str], list[str]] | None


def difference(turn: Turn, layout: Layout | None, earlier: Layout | None) -> Difference | None:
    """The divergence of a turn, or None where it has none.

    layout, earlier: its prompt, and the one it is held against in the same
    order; None where they are not at hand.
    """
    divergence = turn.divergence
    if divergence is None:
        return None
    old, new = _texts(divergence, layout, earlier)
    tokenizer = layout.counter.tokenizer if layout is not None else None
    before, after = _sides(old, new, divergence, tokenizer)
    where, detail = place(turn, divergence)
    shown = bool((before and before.tokens) or (after and after.tokens))
    return Difference(
        against=divergence.against,
        pointer=divergence.pointer,
        kind=divergence.kind,
        certainty=divergence.certainty,
        what=KINDS[divergence.kind],
        where=where,
        detail=detail,
        before=before,
        after=after,
        tokenizer=_named(tokenizer) if tokenizer is not None and shown else None,
        tokens_exact=tokenizer is not None and tokenizer.exact,
        order=_order(divergence, layout, earlier),
    )


def _texts(
    divergence: Divergence, layout: Layout | None, earlier: Layout | None
) -> tuple[str | None, str | None]:
    """The whole texts at the place, as far as they are at hand."""
    short = divergence.before or None, divergence.after or None
    if layout is None or earlier is None or divergence.kind == "parameter":
        return short
    if divergence.kind == "shape":
        parting = shape_difference(earlier.prompt, layout.prompt)
        return (parting.old.text, parting.new.text) if parting and parting.old and parting.new else short
    boundary = common_segments(earlier.prompt, layout.prompt)
    old, new = _at(earlier, boundary), _at(layout, boundary)
    if divergence.before and not _quoted(divergence.before, divergence.before_at, old):
        return short  # the windows are of another place: what a server rendered, say
    if divergence.after and not _quoted(divergence.after, divergence.after_at, new):
        return short
    return _text(old, new), _text(new, old)


def _at(layout: Layout, i: int) -> Segment | None:
    return layout.prompt.segments[i] if i < len(layout.prompt.segments) else None


def _quoted(window: str, at: int, segment: Segment | None) -> bool:
    return segment is not None and window[at:].rstrip("…")[:64] in segment.text


def _text(segment: Segment | None, other: Segment | None) -> str | None:
    """A segment's text; its structure where both texts are the same."""
    if segment is None:
        return None
    if other is not None and other.text == segment.text:
        return segment.json or segment.media or segment.call_id or segment.text
    return segment.text


def _sides(
    old: str | None, new: str | None, divergence: Divergence, tokenizer: Tokenizer | None
) -> tuple[Side | None, Side | None]:
    whole = divergence.kind in _WHOLE
    at = 0 if whole or old is None or new is None else _parts_at(old, new)
    start = _start(new if new is not None else old or "", at)
    a, b = _window(old, start, at), _window(new, start, at)
    words_a, words_b = _compared(_WORD.findall(a), _WORD.findall(b), whole=whole, join=True)
    if not whole and start + len(a) < len(old or "") and start + len(b) < len(new or ""):
        _trim(words_a, words_b)
    tokens_a, tokens_b = _token_spans(a, b, tokenizer, whole=whole)
    return (
        Side(len(old), start, words_a, tokens_a) if old is not None else None,
        Side(len(new), start, words_b, tokens_b) if new is not None else None,
    )


def _parts_at(old: str, new: str) -> int:
    at = next((i for i, (x, y) in enumerate(zip(old, new, strict=False)) if x != y), None)
    return min(len(old), len(new)) if at is None else at


def _start(text: str, at: int) -> int:
    """Where a window begins: at the start, or a little before `at` where no token crosses."""
    if at <= _BEFORE:
        return 0
    cut = _CUT.search(text, at - _BEFORE, at)
    return cut.start() if cut else at - _BEFORE


def _window(text: str | None, start: int, at: int) -> str:
    return "" if text is None else text[start : at + _BEHIND]


def _compared(
    a: Sequence[str], b: Sequence[str], *, whole: bool, join: bool
) -> tuple[list[Span], list[Span]]:
    """Both sequences as spans; `join` puts neighbours of one kind together."""
    if whole:
        one: list[Span] = [("differs", piece) for piece in a]
        other: list[Span] = [("differs", piece) for piece in b]
    else:
        one, other = [], []
        for tag, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            op: Op = "same" if tag == "equal" else "differs"
            one += [(op, piece) for piece in a[a1:a2]]
            other += [(op, piece) for piece in b[b1:b2]]
    return (_smooth(_joined(one)), _smooth(_joined(other))) if join else (one, other)


def _smooth(spans: list[Span]) -> list[Span]:
    """The spans, a blank or a comma between two that differ taken with them."""
    last = len(spans) - 1
    return _joined(
        [
            ("differs", text)
            if op == "same" and 0 < i < last and len(text) < _ALIKE_BY_CHANCE
            else (op, text)
            for i, (op, text) in enumerate(spans)
        ]
    )


def _trim(one: list[Span], other: list[Span]) -> None:
    """Takes away what differs only because one window reaches further than the other."""
    same = [spans[-2] for spans in (one, other) if len(spans) > 1 and spans[-1][0] == "differs"]
    if not same or any(op != "same" or len(text) < _ALIKE_AGAIN for op, text in same):
        return
    for spans in (one, other):
        if spans[-1][0] == "differs":
            spans.pop()


def _joined(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for op, text in spans:
        if found and found[-1][0] == op:
            found[-1] = (op, found[-1][1] + text)
        else:
            found.append((op, text))
    return found


def _token_spans(
    a: str, b: str, tokenizer: Tokenizer | None, *, whole: bool
) -> tuple[list[Span], list[Span]]:
    if tokenizer is None:
        return [], []
    one, other = split(tokenizer, a), split(tokenizer, b)
    if one is None or other is None:
        return [], []
    first = 0
    if not whole:
        same = (i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y)
        first = next(same, min(len(one), len(other)))
    start = max(0, first - _TOKENS_BEFORE)
    end = first + _TOKENS_BEHIND
    return _compared(one[start:end], other[start:end], whole=whole, join=False)


def _named(tokenizer: Tokenizer) -> str:
    base = getattr(tokenizer, "base", tokenizer)
    return str(base.name).removeprefix("tiktoken:")


def _order(
    divergence: Divergence, layout: Layout | None, earlier: Layout | None
) -> tuple[list[str], list[str]] | None:
    if layout is None or earlier is None or divergence.group != "tools" or divergence.kind not in _WHOLE:
        return None
    before, after = (
        [segment.name or "?" for _, segment in one.prompt.tools[:_NAMES]] for one in (earlier, layout)
    )
    return before, after
