"""Joins both halves: from a break on the wire to the line of code that made it.

Below the wings and above `turn`: it takes what the linter saw of the source
(prompt templates with their literal parts, string literals, findings) as plain
values in a `SourceIndex`, and a turn of the analysis, and says which line the
divergence comes from and how sure that is. `lint.index` fills the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from prefixguard.finding import Confidence, Finding, SourceLine
from prefixguard.turn import Analysis, Divergence, Session, Turn

_NEAR = 72
"""How many characters of a value may already agree before the divergence: most of a timestamp does."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A place in a template where a value is put in: the literal text around it. Rows count from 1."""

    filename: str
    row: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A string literal of some length, for texts that appear out of nowhere ("[removed]")."""

    filename: str
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Static:
    """A finding of the linter, with the lines of its way from source to sink."""

    code: str
    filename: str
    row: int
    position: str
    severity: str
    way: frozenset[tuple[str, int]]
    key: int = 0


@dataclass(frozen=True, slots=True)
class Blame:
    """The line that made a break. finding: index of the linter's finding that says the same, or None."""

    line: SourceLine
    confidence: Confidence
    why: str
    finding: int | None = None


# Codes under which the linter and the wire may see one and the same fault.
_FACES: Mapping[str, frozenset[str]] = {
    "PG112": frozenset({"PG101", "PG103", "PG104", "PG105", "PG106", "PG107", "PG108", "PG109", "PG110", "PG303", "PG209", "PG311"}),  # noqa: E501
    "PG111": frozenset({"PG106", "PG108"}),
    "PG101": frozenset({"PG103", "PG102"}),
    "PG103": frozenset({"PG101"}),
    "PG105": frozenset({"PG107"}),
    "PG106": frozenset({"PG209", "PG107"}),
    "PG107": frozenset({"PG105", "PG108", "PG311"}),
    "PG108": frozenset({"PG106", "PG107", "PG303"}),
    "PG110": frozenset({"PG104", "PG209"}),
    "PG201": frozenset({"PG209", "PG110", "PG404"}),
    "PG202": frozenset({"PG209"}),
    "PG206": frozenset({"PG104"}),
    "PG301": frozenset({"PG303", "PG313", "PG302"}),
    "PG302": frozenset({"PG304", "PG311", "PG301", "PG306"}),
    "PG303": frozenset({"PG301", "PG302"}),
    "PG304": frozenset({"PG302", "PG311"}),
    "PG306": frozenset({"PG302", "PG311", "PG307"}),
    "PG307": frozenset({"PG306", "PG203", "PG311"}),
    "PG308": frozenset({"PG309", "PG311"}),
    "PG309": frozenset({"PG308", "PG311", "PG101", "PG106"}),
    "PG311": frozenset({"PG302", "PG304", "PG309", "PG107", "PG101", "PG104"}),
    "PG313": frozenset({"PG301", "PG302"}),
    "PG401": frozenset({"PG404"}),
    "PG402": frozenset({"PG404"}),
    "PG403": frozenset({"PG101", "PG104", "PG404"}),
    "PG404": frozenset({"PG401", "PG402", "PG209"}),
}  # fmt: skip
_GROUPS = {"tools": {"tools"}, "head": {"system"}, "history": {"history", "messages"}}


class SourceIndex:
    """What the linter saw of a project's source, ready to be asked about breaks."""

    def __init__(
        self, holes: Iterable[Hole] = (), literals: Iterable[Literal] = (), findings: Iterable[Static] = ()
    ) -> None:
        self.holes = tuple(holes)
        self.literals = tuple(literals)
        self.findings = tuple(findings)

    def locate(self, turn: Turn, before: str = "", after: str = "") -> Blame | None:
        """The line that made a turn's break, or None when nothing in the source fits.

        before, after: the texts of the earlier and the later segment where the
        caller has more of them than the divergence's own windows.
        """
        divergence = turn.divergence
        if divergence is None:
            return None
        codes = [finding.code for finding in turn.findings if finding.primary] or [
            f.code for f in turn.findings
        ]
        common, old, new = _parted(divergence, before, after)
        marker = self._appeared(new, old)
        if marker is not None and marker[1]:
            return self._beside(marker[0])
        template = self._template(common, old, new)
        static = self._static(codes, divergence, template)
        if static is not None:
            return static
        if template is not None:
            hole, sure = template
            return Blame(
                SourceLine(hole.filename, hole.row),
                "medium" if sure else "low",
                "the literal text around the divergence stands here",
            )
        return marker[0] if marker is not None else None

    def _beside(self, blame: Blame) -> Blame:
        """A literal that took the place of a text, and the linter's finding on the same line if there is one."""  # noqa: E501
        for static in self.findings:
            if static.filename == blame.line.filename and abs(static.row - blame.line.row) <= 1:
                why = "the text that took the place of another stands here, and the linter finds the edit"
                return Blame(SourceLine(static.filename, static.row), "high", why, static.key)
        return blame

    def _template(self, common: str, old: str, new: str) -> tuple[Hole, bool] | None:
        """The template whose literal parts stand around the divergence, and whether it is the only one."""
        best: Hole | None = None
        score = second = 0.0
        for hole in self.holes:
            value = _fit(hole, common, old, new)
            if value > score:
                if best is not None and (best.filename, best.row) != (hole.filename, hole.row):
                    second = score
                best, score = hole, value
            elif (
                best is not None and value > second and (best.filename, best.row) != (hole.filename, hole.row)
            ):
                second = value
        if best is None or score < 4:
            return None
        return best, score - second >= 3

    def _static(
        self, codes: list[str], divergence: Divergence, template: tuple[Hole, bool] | None
    ) -> Blame | None:
        ranked: list[tuple[float, Static]] = []
        positions = _GROUPS.get(divergence.group, set())
        for static in self.findings:
            score = 0.0
            for rank, code in enumerate(codes[:3]):
                if static.code == code:
                    score = max(score, 4.0 - rank)
                elif static.code in _FACES.get(code, ()):
                    score = max(score, 2.0 - rank * 0.5)
            on_way = template is not None and (
                (template[0].filename, template[0].row) in static.way
                or (template[0].filename == static.filename and abs(template[0].row - static.row) <= 1)
            )
            if on_way:
                score += 5.0
            if score <= 0 or (score < 4 and not on_way and positions and static.position not in positions):
                continue
            if positions and static.position in positions:
                score += 1.0
            score += {"error": 0.6, "warning": 0.3}.get(static.severity, 0.0)
            ranked.append((score, static))
        if not ranked:
            return None
        ranked.sort(key=lambda item: -item[0])
        score, best = ranked[0]
        alone = len(ranked) == 1 or score - ranked[1][0] >= 0.5
        confidence: Confidence = (
            "high" if score >= 8 and alone else "medium" if alone or score >= 8 else "low"
        )
        why = "the linter finds the same fault here"
        if score >= 8:
            why += ", and the literal text around the divergence stands on its way"
        return Blame(SourceLine(best.filename, best.row), confidence, why, best.key)

    def _appeared(self, new: str, old: str) -> tuple[Blame, bool] | None:
        """A literal that stands in the new text and not in the old one, the longest first; whether it is all of it."""  # noqa: E501
        fitting = [literal for literal in self.literals if literal.text in new and literal.text not in old]
        if not fitting:
            return None
        longest = max(len(literal.text) for literal in fitting)
        best = [literal for literal in fitting if len(literal.text) == longest]
        rows = {(literal.filename, literal.row) for literal in best}
        confidence: Confidence = "medium" if len(rows) == 1 and longest >= 8 else "low"
        whole = longest >= 0.8 * len(new.strip()) and longest >= 6
        line = SourceLine(best[0].filename, best[0].row)
        return Blame(line, confidence, "the text that appeared is a literal here"), whole


def _parted(divergence: Divergence, before: str, after: str) -> tuple[str, str, str]:
    """The common text up to the divergence, and what the old and the new text go on with."""
    old, new = divergence.before, divergence.after
    if before and after:
        at = divergence.char_offset
        return after[max(0, at - 400) : at], before[at : at + 400], after[at : at + 400]
    common = new[: divergence.after_at] if divergence.after_at else old[: divergence.before_at]
    return common, old[divergence.before_at :], new[divergence.after_at :]


def _fit(hole: Hole, common: str, old: str, new: str) -> float:
    """How well a hole fits around a divergence; 0 where it does not."""
    before, after = hole.before[-48:], hole.after[:32]
    if len(before.strip()) + len(after.strip()) < 3:
        return 0.0
    score = 0.0
    if before.strip():
        at = common.rfind(before)
        if at < 0:
            # A window may begin inside the literal part.
            short = before[-12:]
            at = common.rfind(short) if len(short.strip()) >= 3 else -1
            if at < 0:
                return 0.0
            before = short
        gap = len(common) - (at + len(before))
        if gap > _NEAR:
            return 0.0
        score += min(len(before.strip()), 24) - gap * 0.05
    elif common.strip() and not common.endswith(("\n", " ")) and len(common) > _NEAR:
        return 0.0
    if after.strip():
        head = after.strip()[:16]
        if head in new[:260] or head in old[:260]:
            score += min(len(head), 12)
        else:
            score -= 4
    return score


def with_sources(analysis: Analysis, index: SourceIndex) -> Analysis:
    """The analysis with the line of code at the findings of each break that the index can place."""
    return replace(analysis, sessions=tuple(_with_sources(session, index) for session in analysis.sessions))


def _with_sources(session: Session, index: SourceIndex) -> Session:
    turns = []
    for turn in session.turns:
        blame = index.locate(turn) if turn.is_break or turn.findings else None
        if blame is None or blame.confidence == "low":
            turns.append(turn)
            continue
        turns.append(replace(turn, findings=tuple(_at(finding, blame) for finding in turn.findings)))
    return replace(session, turns=tuple(turns))


def _at(finding: Finding, blame: Blame) -> Finding:
    return finding.but(source=blame.line) if finding.primary and finding.by == "client" else finding


def confirmed(analysis: Analysis, index: SourceIndex) -> dict[int, list[tuple[str, int]]]:
    """For each finding of the linter that breaks of recorded sessions confirm: session and turn of each."""
    found: dict[int, list[tuple[str, int]]] = {}
    for session in analysis.sessions:
        for turn in session.turns:
            if not turn.is_break:
                continue
            blame = index.locate(turn)
            if blame is not None and blame.finding is not None and blame.confidence != "low":
                found.setdefault(blame.finding, []).append((session.id, turn.index))
    return found
