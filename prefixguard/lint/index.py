"""What `blame` needs of the source: templates with their holes, literals, and the linter's findings.

Beside the last step of the linter, over `facts`: f-strings and template
strings, text put together with `+`, `%` and `format`, lists that are joined,
constants with placeholders, and prompt files (`.j2`, `.md`, `.txt`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from prefixguard.blame import Hole, Literal, SourceIndex, Static
from prefixguard.lint import facts as f
from prefixguard.lint import walk
from prefixguard.lint.project import SKIPPED_FOLDERS, SourceFile
from prefixguard.lint.run import Options, Report, lint

_PLACEHOLDER = re.compile(
    r"\{\{.*?\}\}|\$\{?\w+\}?|(?<!\{)\{[\w.!:\[\]% -]*\}(?!\})|%\(?\w*\)?[sdifr]|<<\w+>>"
)
_TEMPLATES = {".j2", ".jinja", ".jinja2", ".md", ".txt", ".prompt", ".tmpl", ".mustache", ".hbs"}
_LARGEST = 400_000


def source_index(paths: Iterable[Path], options: Options | None = None) -> SourceIndex:
    """Lint these paths and index what was seen."""
    roots = list(paths)
    return index_of(lint(roots, options or Options()), roots)


def index_of(report: Report, roots: Iterable[Path] = ()) -> SourceIndex:
    """The index of a run of the linter. A finding's key is its place in `report.findings`."""
    holes: list[Hole] = []
    literals: list[Literal] = []
    for file in report.project.files:
        if file.may_matter():
            _index(file, holes, literals)
    for root in roots:
        if root.is_dir():
            holes.extend(_template_files(root))
    return SourceIndex(holes, literals, [_static(report, key) for key in range(len(report.findings))])


def _static(report: Report, key: int) -> Static:
    finding = report.findings[key]
    files = report.project.files
    way = frozenset((str(files[step.file].path), step.at[0]) for step in finding.trace)
    return Static(
        finding.code,
        str(files[finding.file].path),
        finding.at[0],
        finding.position,
        finding.severity,
        way,
        key,
    )


def _index(file: SourceFile, holes: list[Hole], literals: list[Literal]) -> None:
    name = str(file.path)
    module = file.module
    bodies: list[list[f.Stmt]] = [module.body, *(function.body for function in module.functions)]
    bodies.extend(owner.body for owner in module.classes)
    for body in bodies:
        for item in walk.inside(body):
            if isinstance(item, f.Text):
                holes.extend(_holes(name, item.parts))
            elif isinstance(item, f.Op) and item.op == "+":
                holes.extend(_holes(name, _terms(item)))
            elif isinstance(item, f.Seq) and any(isinstance(part, (f.Lit, f.Text)) for part in item.items):
                holes.extend(_holes(name, item.items))
            elif isinstance(item, f.Assign) and item.op == "+=":
                holes.extend(_holes(name, [f.Lit(item.at, ""), *_terms(item.value)]))
            elif isinstance(item, f.Lit) and isinstance(item.value, str) and len(item.value) >= 4:
                holes.extend(_placeholders(name, item.at[0], item.value))
                if len(item.value.strip()) >= 6:
                    literals.append(Literal(name, item.at[0], item.value.strip()[:200]))


def _terms(node: f.Expr) -> list[f.Expr]:
    if isinstance(node, f.Op) and node.op == "+":
        return [term for operand in node.operands for term in _terms(operand)]
    return [node]


def _holes(name: str, parts: list[f.Expr]) -> Iterator[Hole]:
    """A hole for each part that is no literal, with the literal text before and behind it."""
    flat: list[tuple[str | None, int]] = []
    for part in parts:
        if isinstance(part, f.Lit) and isinstance(part.value, str):
            flat.append((part.value, part.at[0]))
        elif isinstance(part, f.Text):
            for inner in part.parts:
                literal = inner.value if isinstance(inner, f.Lit) and isinstance(inner.value, str) else None
                flat.append((literal, inner.at[0]))
        else:
            flat.append((None, part.at[0]))
    for index, (text, row) in enumerate(flat):
        if text is not None:
            continue
        before = flat[index - 1][0] if index else None
        after = flat[index + 1][0] if index + 1 < len(flat) else None
        if before or after:
            yield Hole(name, row, before or "", after or "")


def _placeholders(name: str, row: int, text: str) -> Iterator[Hole]:
    if "{" not in text and "$" not in text and "%" not in text and "<<" not in text:
        return
    at = 0
    matches = list(_PLACEHOLDER.finditer(text))
    for number, match in enumerate(matches[:60]):
        end = matches[number + 1].start() if number + 1 < len(matches) else len(text)
        yield Hole(
            name, row + text.count("\n", 0, match.start()), text[at : match.start()], text[match.end() : end]
        )
        at = match.end()


def _template_files(root: Path) -> Iterator[Hole]:
    for base, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        for name in names:
            path = Path(base, name)
            if path.suffix not in _TEMPLATES:
                continue
            try:
                if path.stat().st_size > _LARGEST:
                    continue
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            if "{{" in text or "${" in text or re.search(r"\{\w+\}", text):
                yield from _placeholders(str(path), 1, text)
