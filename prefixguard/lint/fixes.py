"""`--fix`: the mechanical mends that cannot change what a program means, only an order.

Beside the formats. A fix is a few replaced bytes; a file with fixes is parsed
again, and left as it was when the new text has a parse error that the old one
had not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.facts import At
from prefixguard.lint.frontends import lower
from prefixguard.lint.project import Project, SourceFile
from prefixguard.lint.verdict import LintFinding


@dataclass(frozen=True, slots=True)
class Fix:
    """Insertions into one file: (row, column in bytes, text), rows and columns from 1."""

    message: str
    file: int
    insertions: tuple[tuple[int, int, str], ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "applicability": "safe",
            "message": self.message,
            "edits": [
                {
                    "location": {"row": row, "column": column},
                    "end_location": {"row": row, "column": column},
                    "content": text,
                }
                for row, column, text in self.insertions
            ],
        }


def fix_of(project: Project, finding: LintFinding) -> Fix | None:
    """The mechanical mend of a finding, or None."""
    if finding.code not in {"PG209", "PG201", "PG202"} or "hash" in finding.what:
        return None
    file = project.files[finding.file]
    if file.language != "python":
        return None
    target = _iterated(file, finding.at)
    if target is None:
        return None
    row, column, end_row, end_column = target
    return Fix("Sort it", finding.file, ((row, column, "sorted("), (end_row, end_column, ")")))


def _iterated(file: SourceFile, at: At) -> At | None:
    """The expression at a place, if sorting it is what a loop, a join or a list needs there."""
    module = file.module
    bodies = [
        module.body,
        *(function.body for function in module.functions),
        *(owner.body for owner in module.classes),
    ]
    for body in bodies:
        for item in walk.inside(body):
            if isinstance(item, f.Comp) and item.kind in {"list", "generator", "dict"}:
                for clause in item.clauses:
                    if clause.source.at == at and _sortable(clause.source):
                        return at
            elif (
                isinstance(item, f.Loop)
                and item.source is not None
                and item.target is not None
                and item.source.at == at
            ):
                if _sortable(item.source):
                    return at
            elif (
                isinstance(item, f.Call)
                and item.args
                and isinstance(item.func, f.Attr)
                and item.func.name == "join"
            ):
                inner = item.args[0].value
                if (at in (inner.at, item.at)) and _sortable(inner) and not isinstance(inner, f.Comp):
                    return inner.at
            elif (
                isinstance(item, f.Call)
                and walk.last_name(item.func) == "list"
                and len(item.args) == 1
                and item.args[0].value.at == at
            ):
                return at
            elif isinstance(item, f.Assign) and item.value.at == at and isinstance(item.value, f.Call):  # noqa: SIM102
                if walk.dotted(item.value.func) in {"os.listdir", "glob.glob", "listdir", "glob"}:
                    return at
    return None


def _sortable(node: f.Expr) -> bool:
    """Whether it is the unordered thing itself: a name, a set, a listing, not a pair of things."""
    if isinstance(node, f.Call):
        return walk.last_name(node.func) in {
            "listdir", "glob", "iglob", "iterdir", "rglob", "set", "frozenset", "union", "intersection",
            "difference",
            "keys",
        }  # fmt: skip
    return (
        isinstance(node, (f.Name, f.Attr))
        or (isinstance(node, f.Seq) and node.kind == "set")
        or (isinstance(node, f.Comp) and node.kind == "set")
    )


def applied(project: Project, findings: list[LintFinding]) -> tuple[int, list[str]]:
    """Write all fixes. How many were made, and the files left alone, because their result did not parse."""
    by_file: dict[int, list[Fix]] = {}
    for finding in findings:
        fix = fix_of(project, finding)
        if fix is not None:
            fixes = by_file.setdefault(fix.file, [])
            if fix not in fixes:
                fixes.append(fix)
    made = 0
    left: list[str] = []
    for index, fixes in by_file.items():
        file = project.files[index]
        text = _inserted(file.source, fixes)
        if len(lower(text, file.language).errors) > len(file.module.errors):
            left.append(str(file.path))
            continue
        file.path.write_bytes(text)
        made += len(fixes)
    return made, left


def _inserted(source: bytes, fixes: list[Fix]) -> bytes:
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    places = [
        (starts[row - 1] + column - 1, order, text)
        for fix in fixes
        for order, (row, column, text) in enumerate(fix.insertions)
    ]
    out = source
    for position, _, text in sorted(set(places), reverse=True):
        out = out[:position] + text.encode() + out[position:]
    return out
