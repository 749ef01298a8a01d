"""Where two prompts part, and what that costs: kept, lost, re-billed.

Re-billed tokens are those that a client sends again although they had been
cached and no longer can be read. See `docs/architecture.md` for the exact
definitions.
"""

from __future__ import annotations

import re
from collections import Counter as Multiset
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.prompt import Kind, Parameter, Prompt, Segment
from prefixguard.rendering.prefixes import shared_characters, shared_suffix
from prefixguard.tokens.counter import Counter
from prefixguard.tokens.layout import KeyedParameters, Layout, common_segments
from prefixguard.turn import Certainty, DivergenceKind

_WINDOW = 96
_PIECE = 16


@dataclass(frozen=True, slots=True)
class Parting:
    """The first place where a prompt leaves an earlier one.

    boundary: segments that both share from the start. char: characters shared
    inside the next segment. old, new: the segments there, None beyond an end.
    parameter: (before, after) when a keyed parameter differs; `boundary` is
    then where its level starts.
    """

    boundary: int
    char: int
    kind: DivergenceKind
    certainty: Certainty
    pointer: str
    within: str
    old: Segment | None = None
    new: Segment | None = None
    parameter: tuple[Parameter | None, Parameter | None] | None = None


def part(earlier: Layout, later: Layout, blind: Sequence[str] = ()) -> Parting | None:
    """The divergence of `later` from `earlier`, or None for a pure append, a repetition or a prefix.

    blind: differences that the server does not see ("ids", "keys", "query").
    """
    a, b = earlier.prompt, later.prompt
    common = common_segments(a, b)
    changed = _changed_parameter(earlier.keyed, later.keyed, b)
    if changed is not None and changed[0] <= common:
        return _parameter_parting(*changed)
    if common < min(len(a.segments), len(b.segments)):
        return None if _text_goes_on(a, b, common) else _segment_parting(a, b, common, blind)
    return None


def _text_goes_on(a: Prompt, b: Prompt, i: int) -> bool:
    """Whether a raw prompt is the other with more text behind it: one segment, and still an append."""
    if not (a.raw and b.raw and i == len(a.segments) - 1):
        return False
    old, new = a.segments[i], b.segments[i]
    return old.kind is new.kind is Kind.TEXT and new.text.startswith(old.text)


def shape_difference(a: Prompt, b: Prompt) -> Parting | None:
    """The first segment that both share in content, but not in its JSON shape (string or blocks)."""
    segments_a, segments_b = a.segments, b.segments
    n = min(len(segments_a), len(segments_b))
    if segments_a[:n] == segments_b[:n]:  # the very same objects
        return None
    for i in range(n):
        old, new = segments_a[i], segments_b[i]
        if old is new:
            continue
        if old.exact != new.exact:
            return None
        if old.shape != new.shape:
            return Parting(i, 0, "shape", "server", b.pointer(i), "turn", old, new)
    return None


def _changed_parameter(
    old: KeyedParameters, new: KeyedParameters, prompt: Prompt
) -> tuple[int, Certainty, Parameter | None, Parameter | None] | None:
    inner = len(getattr(prompt, prompt.order[0]))
    levels: tuple[tuple[int, Certainty, tuple[Parameter, ...], tuple[Parameter, ...]], ...] = (
        (0, "certain", old.top, new.top),
        (inner, "certain", old.head, new.head),
        (prompt.head_length, "certain", old.history, new.history),
        (0, "server", old.unknown, new.unknown),
    )
    for at, certainty, before, after in levels:
        if before == after:
            continue
        was = {p.name: p for p in before}
        now = {p.name: p for p in after}
        for name in [*now, *was]:
            if was.get(name) != now.get(name):
                return at, certainty, was.get(name), now.get(name)
    return None


def _parameter_parting(
    at: int, certainty: Certainty, before: Parameter | None, after: Parameter | None
) -> Parting:
    one = after or before
    assert one is not None
    return Parting(
        at, 0, "parameter", certainty, one.pointer, "turn" if after else "parent", parameter=(before, after)
    )


def _segment_parting(a: Prompt, b: Prompt, i: int, blind: Sequence[str]) -> Parting:
    old, new = a.segments[i], b.segments[i]
    kind = _kind(a, b, i)
    char = shared_characters(old.text, new.text) if old.role == new.role else 0
    certainty: Certainty = "server" if kind != "reordered" and _reserialised(old, new) else "certain"
    if "ids" in blind and old.loose is not None and old.loose == new.loose:
        certainty = "server"
    if kind == "removed":
        return Parting(i, 0, kind, certainty, a.pointer(i), "parent", old, new)
    if kind == "inserted":
        return Parting(i, 0, kind, certainty, b.pointer(i), "turn", old, new)
    return Parting(i, char, kind, certainty, _pointer(b, i, old, new), "turn", old, new)


_ID_FIELDS = {
    Kind.TOOL_CALL: {"/function/arguments": "/id", "/arguments": "/call_id", "/input": "/call_id"},
    Kind.TOOL_RESULT: {"/content": "/tool_call_id", "/output": "/call_id"},
}
"""Where the id of a call or result stands, beside its content."""


def _pointer(b: Prompt, i: int, old: Segment, new: Segment) -> str:
    """Where the new segment stands; its id, when nothing else of it differs."""
    base, pointer = b.entries[i][0], new.pointer
    if old.loose is not None and old.loose == new.loose:
        for content, name in _ID_FIELDS.get(new.kind, {}).items():
            if pointer.endswith(content):
                return base + pointer.removesuffix(content) + name
    return base + pointer


def _reserialised(old: Segment, new: Segment) -> bool:
    """Equal but for ids, a URL's query, or the way that JSON is written: some servers never see that."""
    if old.loose is not None and old.loose == new.loose:
        return True
    structured = old.kind in (Kind.TOOL, Kind.TOOL_CALL, Kind.OTHER, Kind.MEDIA)
    return structured and old.kind is new.kind and old.alike == new.alike


def _kind(a: Prompt, b: Prompt, i: int) -> DivergenceKind:
    old, new = a.segments[i], b.segments[i]
    group_a, group_b = a.group(i), b.group(i)
    if group_a == group_b == "tools" and old.alike != new.alike:
        if Multiset(s.exact for _, s in a.tools) == Multiset(s.exact for _, s in b.tools):
            return "reordered"
        if old.name == new.name:
            return "changed"
    if group_a != group_b:
        return "removed" if a.order.index(group_a) < a.order.index(group_b) else "inserted"
    if old.alike == new.alike:
        return "changed"
    later_a = [s.alike for s in a.segments[i + 1 :]]
    later_b = [s.alike for s in b.segments[i + 1 :]]
    old_stays, new_was = old.alike in later_b, new.alike in later_a
    if old_stays and new_was:
        return "moved"
    if new_was:
        return "removed"
    if old_stays:
        return "inserted"
    return "changed"


def windows(parting: Parting) -> tuple[str, int, str, int]:
    """Readable pieces of before and after around the divergence, and its offset in each."""
    if parting.parameter is not None:
        was, now = parting.parameter
        return (was.value if was else ""), 0, (now.value if now else ""), 0
    before, before_at = _window(parting.old, parting.char)
    after, after_at = _window(parting.new, parting.char)
    return before, before_at, after, after_at


def _window(segment: Segment | None, char: int) -> tuple[str, int]:
    if segment is None:
        return "", 0
    start = max(0, char - _WINDOW)
    text = segment.text[start : char + 2 * _WINDOW]
    at = char - start
    if start:
        text, at = "…" + text, at + 1
    if char + 2 * _WINDOW < len(segment.text):
        text += "…"
    return text, at


def token_offset(layout: Layout, boundary: int, char: int, counter: Counter) -> int:
    """Tokens of the prompt before a position."""
    tokens = layout.ends[boundary]
    if char and boundary < len(layout.counts):
        segment = layout.prompt.segments[boundary]
        text = counter.visible(segment)
        if text is segment.text:
            inside = counter.text(segment.text[:char])
        else:
            inside = layout.counts[boundary] * char // max(len(segment.text), 1)
        tokens += round(min(inside, layout.counts[boundary]) * layout.scale)
    return min(tokens, layout.total)


def rebilled(
    earlier: Layout, later: Layout, parting: Parting, got: int, keep: int, counter: Counter,
    readable: int = 0, grain: int = 0,
) -> tuple[int, int]:  # fmt: skip
    """(re-billed, spared) tokens of the lost part of `earlier`, from `got` to `keep`.

    Re-billed is what `later` sends again and cannot read. Spared is what it
    sends again inside the first `readable` tokens, which another exchange than
    `earlier` left in the cache: a client that switches back finds them.
    grain: for caches that round hits down to blocks, which is nobody's doing.
    """
    if got >= keep:
        return 0, 0
    boundary = parting.boundary
    # The shared part that can no longer be read, because no entry ends inside it.
    shared = token_offset(earlier, boundary, parting.char, counter)
    total = max(0, min(shared, keep) - got)
    if total < grain:
        total = 0
    reach = boundary
    while reach < len(later.counts) and later.ends[reach + 1] <= readable:
        reach += 1
    spares = Multiset(s.alike for s in later.prompt.segments[boundary:reach])
    spared = 0
    new = list(later.prompt.segments[reach:])
    partners = Multiset(s.alike for s in new)
    unmatched: list[tuple[Segment, int]] = []
    segments, ends = earlier.prompt.segments, earlier.ends
    for i in range(boundary, len(segments)):
        start, end = max(ends[i], got, shared), min(ends[i + 1], keep)
        if start >= keep:
            break
        if end <= start:
            continue
        segment = segments[i]
        if spares[segment.alike] > 0:
            spares[segment.alike] -= 1
            spared += end - start
        elif partners[segment.alike] > 0:
            partners[segment.alike] -= 1
            total += end - start
        else:
            unmatched.append((segment, end - start))
    if unmatched:
        left = [s for s in new if partners[s.alike] > 0]
        total += _pieces_again(unmatched, left, counter, earlier.scale)
    # Each prompt is scaled to what the server reported of it: no more is sent again than there is.
    return max(0, min(total, keep - got - spared, later.total - got)), spared


_SENTENCE = re.compile(r"[^\n.!?;。！？；]*[\n.!?;。！？；]+\s*|[^\n.!?;。！？；]+")


def _pieces_again(old: list[tuple[Segment, int]], new: list[Segment], counter: Counter, scale: float) -> int:
    """Tokens of unmatched segments that stand in other unmatched segments, piece by piece."""
    texts = [s.text for s in new if s.kind is not Kind.MEDIA]
    if not texts:
        return 0
    available = Multiset(p for text in texts for p in _split(text))
    total = 0
    for segment, most in old:
        if segment.kind is Kind.MEDIA:
            continue
        again = _again(segment.text, texts, available)
        if again:
            tokens = sum(counter.text(piece) for piece in again)
            total += min(most, round(tokens * scale))
    return total


def _again(text: str, texts: list[str], available: Multiset[str]) -> list[str]:
    """The pieces of a text that are sent again; a whole text that is quoted is one piece."""
    if len(text) >= _PIECE and any(text in other for other in texts):
        for piece in _split(text):
            available[piece] -= 1
        return [text]
    suffix = max((shared_suffix(text, other) for other in texts), default=0)
    rest, found = text, []
    if suffix >= _PIECE:
        rest = text[: len(text) - suffix]
        found.append(text[len(text) - suffix :])
        for piece in _split(found[0]):
            available[piece] -= 1
    for piece in _split(rest):
        if len(piece) >= _PIECE and available[piece] > 0:
            available[piece] -= 1
            found.append(piece)
    return found


def _split(text: str) -> list[str]:
    return [piece.strip() for piece in _SENTENCE.findall(text)]
