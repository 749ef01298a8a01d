"""Inline suppression: `# prefixguard: ignore[PG101] reason`, `//` in TypeScript.

Fifth step of the linter. A comment speaks for its own line, or for the next
line of code when it stands alone; `ignore-file[...]` for the whole file. A
suppression that is unknown, unused or without a reason is reported itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from prefixguard.lint.facts import Comment
from prefixguard.lint.project import SourceFile
from prefixguard.lint.verdict import LintFinding

_FORM = re.compile(r"^(ignore(?:-file)?)\s*(?:\[([^\]]*)\])?\s*[:,-]*\s*(.*?)\s*(?:\*/)?$")
_CODE = re.compile(r"^PG\d{3}$")


@dataclass(slots=True)
class Suppression:
    """One comment. rows: the lines it speaks for; empty for the whole file."""

    comment: Comment
    codes: tuple[str, ...]
    reason: str
    rows: frozenset[int]
    used: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to say of a suppression itself."""

    file: int
    row: int
    column: int
    message: str


def read(file: SourceFile, known: frozenset[str]) -> tuple[list[Suppression], list[Remark]]:
    """The suppressions of a file, and what is wrong with them."""
    found: list[Suppression] = []
    remarks: list[Remark] = []
    for comment in file.module.comments:
        match = _FORM.match(comment.text)
        if match is None:
            remarks.append(
                Remark(
                    file.index,
                    comment.row,
                    comment.column,
                    f"unknown instruction {comment.text!r}; write ignore[PG101] and a reason",
                )
            )
            continue
        codes = tuple(code.strip() for code in (match[2] or "").split(",") if code.strip())
        bad = [code for code in codes if not _CODE.match(code) or (known and code not in known)]
        for code in bad:
            remarks.append(  # noqa: PERF401
                Remark(file.index, comment.row, comment.column, f"unknown code {code!r} in a suppression")
            )
        if not codes:
            remarks.append(
                Remark(
                    file.index, comment.row, comment.column, "a suppression needs its codes: ignore[PG101]"
                )
            )
            continue
        if not match[3]:
            remarks.append(
                Remark(
                    file.index, comment.row, comment.column, "a suppression needs a reason after its codes"
                )
            )
        rows: frozenset[int] = frozenset()
        if match[1] == "ignore":
            rows = frozenset(
                {comment.row, _next_code_row(file, comment.row)} if comment.alone else {comment.row}
            )
        found.append(Suppression(comment, tuple(c for c in codes if c not in bad), match[3], rows))
    return found, remarks


def _next_code_row(file: SourceFile, row: int) -> int:
    for later in range(row + 1, row + 20):
        line = file.line(later).strip()
        if line and not line.startswith(("#", "//")):
            return later
    return row


def apply(
    findings: list[LintFinding], files: list[SourceFile], known: frozenset[str], read_files: set[int]
) -> tuple[list[LintFinding], list[tuple[LintFinding, str]], list[Remark]]:
    """Findings that stay, findings that are suppressed with their reason, and remarks.

    A suppression may stand at the finding, at any line it spans, or at the sink
    where its trace ends.
    """
    kept: list[LintFinding] = []
    suppressed: list[tuple[LintFinding, str]] = []
    remarks: list[Remark] = []
    tables: dict[int, list[Suppression]] = {}
    for index in sorted(read_files):
        tables[index], said = read(files[index], known)
        remarks.extend(said)
    for finding in findings:
        places = [
            (finding.file, row) for row in range(finding.at[0], min(finding.at[2], finding.at[0] + 3) + 1)
        ]
        if finding.trace:
            end = finding.trace[-1]
            places.append((end.file, end.at[0]))
        reason = None
        for file, row in places:
            for suppression in tables.get(file, ()):
                if finding.code in suppression.codes and (not suppression.rows or row in suppression.rows):
                    suppression.used.add(finding.code)
                    reason = suppression.reason
        if reason is None:
            kept.append(finding)
        else:
            suppressed.append((finding, reason))
    for index, table in tables.items():
        for suppression in table:
            for code in suppression.codes:
                if code not in suppression.used:
                    remarks.append(  # noqa: PERF401
                        Remark(
                            index,
                            suppression.comment.row,
                            suppression.comment.column,
                            f"unused suppression of {code}",
                        )
                    )
    return kept, suppressed, remarks
