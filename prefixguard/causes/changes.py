"""Where two versions of a text differ, and the words around each place that say what it is.

Stands between `divergence` (which segment) and `causes/head` (what its change
is called). Lines are aligned first and words inside them, so that a long
system text costs little more than its changed part.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

from prefixguard.rendering.prefixes import shared_characters, shared_suffix

_WORD = re.compile(r"\[[ xX~>*-]\]|[\w$€%]+(?:[-.:/+,][\w$€%]+)*|[^\w\s]")
_CLAUSE = re.compile(r"[,;|]\s|[.!?]\s|[。！？；，]")
_SENTENCE = re.compile(r"[.!?]\s|[。！？]")
_MOST_CHANGES = 24
_MOST_CHARACTERS = 16_000
"""Of a line that was replaced by another; the start of it says enough."""
_MOST_LINES = 4000
_LONG_LINE = 400


@dataclass(frozen=True, slots=True)
class Span:
    """A changed piece inside its line."""

    line: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """The changed words."""
        return self.line[self.start : self.end].strip()


@dataclass(frozen=True, slots=True)
class Change:
    """One changed place.

    before, after: the words in their lines, empty where nothing stood there.
    key: what stands before the change in its clause ("Customer:"). label: the
    words of its sentence that stay the same. heading: the nearest heading, opening
    tag or line with a colon above. above: the line right above.
    paragraph: how many blank lines stand before it.
    """

    before: Span
    after: Span
    key: str
    label: str
    heading: str
    above: str
    paragraph: int = 0

    @property
    def line(self) -> str:
        """The line as it is now; as it was, when it is gone."""
        return self.after.line or self.before.line


def changes(old: str, new: str, above: str = "") -> list[Change]:
    """The changed places of a text in their order, the first two dozen of them.

    An empty `old` or `new` stands for a block that was not there. above: text
    before this one, where a heading may stand.
    """
    if not old.strip() or not new.strip():
        return [_whole(old.strip(), new.strip(), above)]
    a, b = old.splitlines(), new.splitlines()
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(middle_a) + len(middle_b) > _MOST_LINES:
        middle_a, middle_b = middle_a[:40], middle_b[:40]
    found: list[Change] = []
    before = [*above.splitlines()[-40:], *b[:start]]
    for i1, i2, j1, j2 in _gaps(middle_a, middle_b):
        gone, come = middle_a[i1:i2], middle_b[j1:j2]
        lines = [*before, *middle_b[:j1]]
        for i in range(max(len(gone), len(come))):
            was, now = gone[i] if i < len(gone) else "", come[i] if i < len(come) else ""
            if was.split() != now.split():
                found += _in_line(was, now, [*lines, *come[:i]])
            if len(found) >= _MOST_CHANGES:
                return found[:_MOST_CHANGES]
    return found


def _gaps(a: list[str], b: list[str]) -> list[tuple[int, int, int, int]]:
    """(from, to, from, to) of the stretches of both lists that lie between what they share in order."""
    found = []
    i = j = 0
    for block in LCSseq.opcodes(a, b):
        if block.tag == "equal":
            if (i, j) != (block.src_start, block.dest_start):
                found.append((i, block.src_start, j, block.dest_start))
            i, j = block.src_end, block.dest_end
    if i < len(a) or j < len(b):
        found.append((i, len(a), j, len(b)))
    return found


def _whole(old: str, new: str, above: str) -> Change:
    """A block that came or went: its first line stands for it."""

    def first(text: str) -> Span:
        line = text.split("\n", 1)[0][:_LONG_LINE]
        return Span(line, 0, len(line))

    one = first(new or old)
    heading = _heading(above.splitlines())
    label = one.line if _is_heading(one.line) or ":" in one.line[:60] else ""
    return Change(first(old), first(new), label, label, heading, (above.splitlines() or [""])[-1])


def _in_line(old: str, new: str, lines: list[str]) -> list[Change]:
    """The changed words of one line."""
    heading, above = _heading(lines), next((x for x in reversed(lines) if x.strip()), "")
    paragraph = sum(1 for x in lines if not x.strip())
    old, new = _around(old, new)
    whole = Change(Span(old, 0, len(old)), Span(new, 0, len(new)), "", "", heading, above, paragraph)
    if not old.strip() or not new.strip():
        return [whole]
    a, b = list(_WORD.finditer(old)), list(_WORD.finditer(new))
    gaps = _gaps([m[0] for m in a], [m[0] for m in b])
    unlike = 2 * sum(i2 - i1 + j2 - j1 for i1, i2, j1, j2 in gaps) > len(a) + len(b)
    if len(gaps) > 2 and unlike:  # other text, in which the words that happen to be shared say nothing
        gaps = [(gaps[0][0], gaps[-1][1], gaps[0][2], gaps[-1][3])]
    gone, come = (
        {n for i1, i2, _, _ in gaps for n in range(i1, i2)},
        {n for *_, j1, j2 in gaps for n in range(j1, j2)},
    )
    kept = [m for n, m in enumerate(a) if n not in gone], [m for n, m in enumerate(b) if n not in come]
    starts = [m.start() for m in kept[0]], [m.start() for m in kept[1]]
    found = []
    for i1, i2, j1, j2 in gaps[:_MOST_CHANGES]:
        before, after = _cut(old, a, i1, i2), _cut(new, b, j1, j2)
        in_new = bool(after.text)
        at = b[j1].start() if in_new else a[i1].start()
        start, end = _sentence(new if in_new else old, at)
        first, last = (bisect_left(starts[in_new], place) for place in (start, end))
        label = " ".join(m[0] for m in kept[1][first:last])
        side = after if in_new else before
        clause = side.line[: side.start]
        key = clause[next((m.end() for m in reversed(list(_CLAUSE.finditer(clause)))), 0) :]
        found.append(Change(before, after, key.strip(), label, heading, above, paragraph))
    return found or [whole]


def _around(old: str, new: str) -> tuple[str, str]:
    """Two versions of a long line, without the equal text far from where they differ, or far behind it."""
    if len(old) + len(new) < 4 * _LONG_LINE:
        return old, new
    start = shared_characters(old, new)
    end = shared_suffix(old[start:], new[start:])
    left = max(0, old.rfind(" ", 0, max(0, start - _LONG_LINE)))
    right = max(0, end - _LONG_LINE)
    return old[left : len(old) - right][:_MOST_CHARACTERS], new[left : len(new) - right][:_MOST_CHARACTERS]


def _sentence(line: str, at: int) -> tuple[int, int]:
    """Where the sentence around a place begins and ends."""
    start = max(
        (m.end() for m in _SENTENCE.finditer(line, max(0, at - _LONG_LINE), at)),
        default=max(0, at - _LONG_LINE),
    )
    end = _SENTENCE.search(line, at)
    return start, end.start() + 1 if end else len(line)


def _cut(line: str, words: list[re.Match[str]], start: int, end: int) -> Span:
    """The words from `start` to `end`, in a line shortened around them when it is long."""
    at = words[start].start() if start < len(words) else len(line)
    to = min(words[end - 1].end(), at + _LONG_LINE) if end > start else at
    if len(line) > _LONG_LINE:
        left = max(0, at - _LONG_LINE // 2)
        return Span(line[left : to + _LONG_LINE // 2], at - left, to - left)
    return Span(line, at, to)


def _is_heading(line: str) -> bool:
    stripped = line.strip()
    return stripped.startswith(("#", "<", "[")) or stripped.endswith((":", "："))


def _heading(lines: list[str]) -> str:
    """The nearest heading above a place: markdown, an opening tag, or a line that ends in a colon."""
    for line in reversed(lines[-40:]):
        if _is_heading(line) and not line.strip().startswith("</") and "[ ]" not in line:
            start = max((m.end() for m in _SENTENCE.finditer(line)), default=0)
            return line[start:].strip()[:200] or line.strip()[:200]
    return ""
