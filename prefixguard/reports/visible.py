"""Makes text out of prompts safe and readable on a terminal, and marks where two texts part.

Prompts hold what tools printed: escape sequences, control characters, text
direction marks. None of it may reach the terminal as it is, and where two texts
differ only in such characters, a reader must be able to see them.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from rich.text import Text

from prefixguard.turn import Divergence

# Control characters but line feed, the marks that turn the direction of text, and halves of surrogate pairs.
_UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_SHORT = {"\t": "\\t", "\r": "\\r", "\x1b": "\\e"}
_ALIKE_AGAIN = 12  # characters: fewer agree by chance
_ALIKE_TO_THE_END = 4
_DOTS = "..."
_GONE = ("[-", "-]", "bold red")
_NEW = ("{+", "+}", "bold green")
_BLANK = {" ": "·", "\n": "\\n", "\u00a0": "\\u00a0"}


def safe(text: str) -> str:
    """`text` without a character that could act on a terminal; line feeds stay."""
    return _UNSAFE.sub(_spelled, text)


def one_line(text: str) -> str:
    """`text` on one line, safe, with line feeds spelled."""
    return safe(text).replace("\n", "\\n")


def _spelled(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"


def windows(divergence: Divergence, *, reach: int | None = None) -> tuple[Text | None, Text | None]:
    """The texts around a divergence, before and after; see `marked`."""
    return marked(divergence.before, divergence.before_at, divergence.after, divergence.after_at, reach=reach)


def marked(
    before: str, before_at: int, after: str, after_at: int, *, reach: int | None = None
) -> tuple[Text | None, Text | None]:
    """Two texts that part at the given offsets, each with its own part marked as `git diff --word-diff` does.

    `[-...-]` is what stood there, `{+...+}` what stands there now; the marks
    are there without colours too. None where there is nothing to show.
    reach: put it on one line, with so many characters of each part at most.
    """
    cut_before, cut_after = _together_again(before[before_at:], after[after_at:])
    return (
        _window(before, before_at, before_at + cut_before, _GONE, reach),
        _window(after, after_at, after_at + cut_after, _NEW, reach),
    )


def around(before: str, after: str, reach: int = 96) -> tuple[str, int, str, int]:
    """Windows of two texts around the first character in which they differ, as `marked` takes them."""
    at = next((i for i, (x, y) in enumerate(zip(before, after, strict=False)) if x != y), None)
    if at is None:
        at = min(len(before), len(after))
    start = max(0, at - reach)
    return before[start : at + reach], at - start, after[start : at + reach], at - start


def _together_again(one: str, other: str) -> tuple[int, int]:
    """How much of each text differs before they go on alike for a while, or to the end of a window."""
    for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        reaches_end = block.a + block.size == len(one) or block.b + block.size == len(other)
        if block.size >= (_ALIKE_TO_THE_END if reaches_end else _ALIKE_AGAIN):
            return block.a, block.b
    return len(one), len(other)


def _window(text: str, start: int, end: int, mark: tuple[str, str, str], reach: int | None) -> Text | None:
    if not text:
        return None
    left, right, style = mark
    head, middle, tail = safe(text[:start]), _shown(text[start:end]), safe(text[end:])
    if reach is not None:
        head, middle, tail = (part.replace("\n", "\\n") for part in (head, middle, tail))
        head = _DOTS + head[-reach:] if len(head) > reach else head
        middle = middle[:reach] + _DOTS if len(middle) > reach else middle
        tail = tail[:reach] + _DOTS if len(tail) > reach else tail
    result = Text(overflow="fold", no_wrap=False)
    result.append(head, "dim")
    result.append(left + middle + right, style)
    result.append(tail, "dim")
    return result


def _shown(text: str) -> str:
    """The differing part, with white space spelled where there is nothing else to see."""
    if text.strip():
        return safe(text)
    return "".join(_BLANK.get(character, character) for character in _UNSAFE.sub(_spelled, text))
