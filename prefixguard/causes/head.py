"""Names a changed text in the head: a clock, a date, an id, a counter, state, memory ... (PG101 to PG112).

Each changed place and the words around it are held against the patterns of
`rules/causes.toml`: what the changed words look like decides first, then a
heading that names its whole section, then what stands right before the change,
its sentence, its heading, the line above.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

import msgspec

from prefixguard.causes.changes import Change, Span, changes
from prefixguard.causes.evidence import Catalogue, Evidence, shortened
from prefixguard.finding import Confidence, Finding
from prefixguard.prompt import Segment
from prefixguard.rulebook import Dated


class TextCause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: the patterns that name a changed text; `rules/causes.toml` explains them."""

    code: str
    what: str
    within: str = ""
    value: str = ""
    line: str = ""
    not_line: str = ""
    not_value: str = ""
    section: bool = False


class CauseTable(Dated, frozen=True, forbid_unknown_fields=True):
    """The file `rules/causes.toml`."""

    instruction_files: str
    text: tuple[TextCause, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A change and what it is called."""

    code: str
    what: str
    change: Change | None
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class _Row:
    cause: TextCause
    within: re.Pattern[str] | None
    value: re.Pattern[str] | None
    line: re.Pattern[str] | None
    not_line: re.Pattern[str] | None
    not_value: re.Pattern[str] | None


def _compiled(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern, re.IGNORECASE) if pattern else None


_JOINTS = re.compile(r"[_<>/\"'`*]+|(?<=[a-z])(?=[A-Z])")


def _words(text: str) -> str:
    """A label with names taken apart: `<user_email>` and `userEmail` become "user email"."""
    return f"{text}\n{_JOINTS.sub(' ', text)}" if text else ""


_REACH = 80
"""How far around the changed words a pattern that holds them may reach."""
_MOST_CAUSES = 3
"""Causes in one text that are worth a finding each."""


class HeadCauses:
    """Names changes of system and developer text."""

    def __init__(self, table: CauseTable, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._rows = [
            _Row(
                row,
                _compiled(row.within),
                _compiled(row.value),
                _compiled(table.instruction_files if row.line == "@instruction_files" else row.line),
                _compiled(row.not_line),
                _compiled(row.not_value),
            )
            for row in table.text
        ]
        self._shaped = [row for row in self._rows if row.within is not None or row.value is not None]
        self._sections = [row for row in self._rows if row.cause.section]

    def name(self, evidence: Evidence) -> list[Finding]:
        """The findings for a head segment that differs, came, went or moved, the decisive one first."""
        parting = evidence.parting
        old = parting.old.text if parting.old else ""
        new = parting.new.text if parting.new else ""
        if parting.kind == "inserted":
            old = ""
        elif parting.kind == "removed":
            new = ""
        verb = {"inserted": "appears", "removed": "is gone", "moved": "moved"}.get(parting.kind, "changed")
        return self.findings(old, new, _text_above(evidence), parting.pointer, verb)

    def findings(
        self, old: str, new: str, above: str, pointer: str, verb: str = "changed", *,
        where: str = "the system text",
    ) -> list[Finding]:  # fmt: skip
        """One finding for each cause of a text's change, in the order of their places."""
        found = []
        for named in self.classify(old, new, above):
            change = named.change
            was, now = (change.before.text, change.after.text) if change else ("", "")
            detail = f": {shortened(was, 40)!r} → {shortened(now, 40)!r}" if was or now else ""
            found.append(
                self._catalogue.finding(
                    named.code, f"{named.what} in {where} {verb}{detail}",
                    evidence=f"line: {shortened(change.line, 120)}" if change else "",
                    pointer=pointer, confidence=named.confidence,
                )
            )  # fmt: skip
        return found

    def classify(self, old: str, new: str, above: str = "") -> list[Named]:
        """What a text's changes are, each code once, in the order of their places; never empty.

        The first is what the cache meets first; of the others only sure ones are named.
        """
        found: dict[str, Named] = {}
        places = groupby(changes(old, new, above), key=lambda change: (change.heading, change.paragraph))
        for _, group in places:
            named = self._best(list(group))
            if not found or (named.confidence == "high" and len(found) < _MOST_CAUSES):
                found.setdefault(named.code, named)
        return list(found.values()) or [Named("PG112", "text", None, "medium")]

    def _best(self, group: list[Change]) -> Named:
        """The name of neighbouring changes: the first row that fits one, over ever wider surroundings."""
        keys = [_words(change.key) for change in group]
        labels = [_words(change.label) for change in group]
        headings = [_words(change.heading) for change in group]
        passes: list[tuple[Confidence, list[_Row], list[str]]] = [
            ("high", self._shaped, keys),
            ("high", self._shaped, labels),
            ("high", self._shaped, headings),
            ("high", self._sections, headings),
            ("high", self._rows, keys),
            ("high", self._rows, labels),
            ("high", self._rows, headings),
            ("medium", self._rows, [_words(change.above) for change in group]),
            ("low", self._rows, [_words(change.line) for change in group]),
        ]
        shapes: dict[tuple[int, int], bool] = {}
        for sure, rows, texts in passes:
            for row in rows:
                for n, (change, text) in enumerate(zip(group, texts, strict=True)):
                    if row.line is not None and not row.line.search(text):
                        continue
                    known = shapes.get((id(row), n))
                    if known is None:
                        known = shapes[id(row), n] = _fits(row, change)
                    if known:
                        return Named(row.cause.code, row.cause.what, change, sure)
        return Named("PG112", "text", group[0], "medium")


def _fits(row: _Row, change: Change) -> bool:
    """Whether a row fits a change, whatever stands around it."""
    sides = [side for side in (change.before, change.after) if side.text]
    if row.value is not None and not (sides and all(row.value.search(side.text) for side in sides)):
        return False
    if row.not_value is not None and any(row.not_value.search(side.text) for side in sides):
        return False
    if row.not_line is not None and (row.not_line.search(change.line) or row.not_line.search(change.heading)):
        return False
    return row.within is None or bool(sides and all(_inside(row.within, side) for side in sides))


def _inside(pattern: re.Pattern[str], side: Span) -> bool:
    """Whether the changed words lie inside something that the pattern matches."""
    text = side.line[side.start : side.end]
    start = side.start + len(text) - len(text.lstrip())
    end = side.end - (len(text) - len(text.rstrip()))
    near = pattern.finditer(side.line, max(0, start - _REACH), end + _REACH)
    return any(m.start() <= start and end <= m.end() for m in near)


def _text_above(evidence: Evidence) -> str:
    """The segment before the changed one: a heading may stand in it."""
    i = evidence.parting.boundary
    segments: tuple[Segment, ...] = evidence.later.prompt.segments
    return (
        segments[i - 1].text
        if 0 < i <= len(segments) and evidence.later.prompt.group(i - 1) == "head"
        else ""
    )
