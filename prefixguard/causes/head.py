"""Names a changed text in the head: a clock, a date, an id, a counter, state, memory ... (PG101 to PG112).

The changed words and the line they stand in are held against the patterns of
`rules/causes.toml`, in order.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

import msgspec

from prefixguard.causes.evidence import Catalogue, Evidence, shortened
from prefixguard.finding import Confidence, Finding
from prefixguard.prompt import Segment
from prefixguard.rulebook import Dated


class TextCause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: the patterns that name a changed text."""

    code: str
    what: str
    value: str = ""
    line: str = ""
    not_line: str = ""
    not_value: str = ""


class CauseTable(Dated, frozen=True, forbid_unknown_fields=True):
    """The file `rules/causes.toml`."""

    instruction_files: str
    text: tuple[TextCause, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One changed place: the words before and after, their line, and the heading above it."""

    old: str
    new: str
    line: str
    heading: str


@dataclass(frozen=True, slots=True)
class _Row:
    cause: TextCause
    value: re.Pattern[str] | None
    line: re.Pattern[str] | None
    not_line: re.Pattern[str] | None
    not_value: re.Pattern[str] | None


def _compiled(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern, re.IGNORECASE) if pattern else None


class HeadCauses:
    """Names changes of system and developer text."""

    def __init__(self, table: CauseTable, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._files = re.compile(table.instruction_files, re.IGNORECASE)
        self._rows = [
            _Row(
                row,
                _compiled(row.value),
                _compiled(table.instruction_files if row.line == "@instruction_files" else row.line),
                _compiled(row.not_line),
                _compiled(row.not_value),
            )
            for row in table.text
        ]

    def name(self, evidence: Evidence) -> Finding:
        """The finding for a head segment that was changed, inserted, removed or moved."""
        parting = evidence.parting
        old = parting.old.text if parting.old else ""
        new = parting.new.text if parting.new else ""
        if parting.kind == "inserted":
            old = ""
        elif parting.kind == "removed":
            new = ""
        above = _text_above(evidence)
        code, what, change, confidence = self.classify(old, new, above)
        verb = {"inserted": "appears", "removed": "is gone", "moved": "moved"}.get(parting.kind, "changed")
        detail = f": {shortened(change.old, 40)!r} → {shortened(change.new, 40)!r}" if change else ""
        return self._catalogue.finding(
            code, f"{what} in the system text {verb}{detail}",
            evidence=f"line: {shortened(change.line, 120)}" if change else "",
            pointer=parting.pointer, confidence=confidence,
        )  # fmt: skip

    def classify(self, old: str, new: str, above: str = "") -> tuple[str, str, Change | None, Confidence]:
        """(code, what changed, the decisive change, how sure) for a text that became another."""
        found = changes(old, new, above)
        for row in self._rows:
            for change in found:
                if self._fits(row, change):
                    sure: Confidence = "high" if row.value is not None else "medium"
                    return row.cause.code, row.cause.what, change, sure
        return "PG112", "text", found[0] if found else None, "medium"

    def _fits(self, row: _Row, change: Change) -> bool:
        values = [v for v in (change.old, change.new) if v.strip()]
        if row.value is not None and not (values and all(row.value.search(v.strip()) for v in values)):
            return False
        if row.not_value is not None and any(row.not_value.search(v.strip()) for v in values):
            return False
        if row.line is not None and not any(row.line.search(t) for t in (change.line, change.heading) if t):
            return False
        return row.not_line is None or not row.not_line.search(change.line)


def _text_above(evidence: Evidence) -> str:
    """The segment before the changed one: a heading may stand in it."""
    i = evidence.parting.boundary
    segments: tuple[Segment, ...] = evidence.later.prompt.segments
    return segments[i - 1].text if 0 < i <= len(segments) and evidence.later.prompt.group(i - 1) == "head" else ""


_WORD = re.compile(r"\[[ xX~>*-]\]|[\w$€%]+(?:[-.:/+,=][\w$€%]+)*|\s+|.", re.DOTALL)
_MOST_CHANGES = 12


def changes(old: str, new: str, above: str = "") -> list[Change]:
    """The changed places of a text, widened to whole words, the first dozen of them."""
    if not old or not new:
        text = old or new
        line = text.strip().split("\n", 1)[0]
        return [Change(old.strip(), new.strip(), line, _heading(above, len(above)))]
    start = _safe_start(old, new)
    end = _safe_end(old[start:], new[start:])
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    a, b = _WORD.findall(old_middle), _WORD.findall(new_middle)
    found: list[Change] = []
    if len(a) + len(b) > 8000:
        return [_change(old, start, len(old) - end, new, start, len(new) - end)]
    at_a = [start, *(start + n for n in _ends(a))]
    at_b = [start, *(start + n for n in _ends(b))]
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal" and (old[at_a[i1] : at_a[i2]].strip() or new[at_b[j1] : at_b[j2]].strip()):
            found.append(_change(old, at_a[i1], at_a[i2], new, at_b[j1], at_b[j2]))
            if len(found) >= _MOST_CHANGES:
                break
    return found


def _ends(words: list[str]) -> list[int]:
    total, found = 0, []
    for word in words:
        total += len(word)
        found.append(total)
    return found


def _safe_start(old: str, new: str) -> int:
    """Where the first changed line starts."""
    n = min(len(old), len(new))
    same = next((i for i in range(n) if old[i] != new[i]), n)
    return old.rfind("\n", 0, same) + 1


def _safe_end(old: str, new: str) -> int:
    """How many characters after the last changed line are the same."""
    n = min(len(old), len(new))
    same = next((i for i in range(n) if old[-1 - i] != new[-1 - i]), n)
    at = old.find("\n", len(old) - same)
    return 0 if at < 0 else len(old) - at


def _change(old: str, a: int, b: int, new: str, c: int, d: int) -> Change:
    start = new.rfind("\n", 0, c) + 1
    end = new.find("\n", d)
    line = new[start : len(new) if end < 0 else end]
    if len(line) > 400:
        line = new[max(start, c - 160) : d + 160]
    return Change(old[a:b], new[c:d], line, _heading(new, start))


def _heading(text: str, before: int) -> str:
    """The nearest heading above a place: a markdown heading, an opening tag, or a line that ends in a colon."""
    for line in reversed(text[:before].splitlines()[-40:]):
        stripped = line.strip()
        if stripped.startswith(("#", "<")) or stripped.endswith(":"):
            return stripped[:200]
    return ""
