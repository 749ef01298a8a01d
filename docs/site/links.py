"""Links and headings of a Markdown text: found for the tests, led elsewhere for the site.

Only inline links, which is what the pages use. What stands in code is no link.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_LINK = re.compile(
    r"(?P<code>`+)(?:(?!(?P=code)).)*(?P=code)"  # an inline code span, passed over
    r"|(?P<open>\]\()(?P<target>[^()\s]+)(?P<rest>(?:\s+\"[^\"]*\")?\))"
)
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")


def links(text: str) -> Iterator[tuple[int, str]]:
    """(line from 1, target) of every link and picture."""
    for number, line, code in _lines(text):
        if not code:
            for match in _LINK.finditer(line):
                if match["target"]:
                    yield number, match["target"]


def led(text: str, to: Callable[[str], str]) -> str:
    """The text with each target replaced by what `to` makes of it."""

    def replaced(match: re.Match[str]) -> str:
        if not match["target"]:
            return match[0]
        return f"{match['open']}{to(match['target'])}{match['rest']}"

    return "".join(line if code else _LINK.sub(replaced, line) for _, line, code in _lines(text))


def anchors(text: str) -> set[str]:
    """The anchors of a text's headings, as code hosts form them."""
    seen: Counter[str] = Counter()
    found = set()
    for _, line, code in _lines(text):
        heading = None if code else _HEADING.match(line.rstrip("\n"))
        if heading:
            slug = _slug(heading[2])
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return found


def outside(target: str) -> bool:
    """Whether a target leads out of the repository."""
    return re.match(r"[a-z][a-z0-9+.-]*:", target) is not None


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """(number from 1, line with its end, whether it belongs to a block of code)."""
    fence = ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        mark = _FENCE.match(line)
        if fence:
            yield number, line, True
            if mark and mark[1].startswith(fence) and not line.strip(" \n`~"):
                fence = ""
        elif mark:
            fence = mark[1]
            yield number, line, True
        else:
            yield number, line, False
