"""What the documentation holds, and in which order: `contents.toml`, read and completed.

First step of a build. Pages that the table does not name come last, so that none is
lost; pages that it names and that are not there are left out.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
FIRST_PAGE = "docs/README.md"
CATALOGUE = "docs/findings.md"
"""One long page for a code host; the site has a page for each finding in its place."""


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page as the table names it."""

    page: str
    about: str = ""

    @property
    def path(self) -> str:
        """The Markdown file, from the root of the repository."""
        return self.page if self.page.endswith(".md") else f"docs/{self.page}.md"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pages under one heading."""

    title: str
    pages: tuple[Page, ...]


class Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table."""

    title: str
    summary: str
    details: str
    part: tuple[Part, ...]

    @property
    def pages(self) -> list[Page]:
        return [page for part in self.part for page in part.pages]


def table() -> Contents:
    """The table as it is written. Raises msgspec.ValidationError naming what is wrong in it."""
    return msgspec.toml.decode((DOCS / "site/contents.toml").read_bytes(), type=Contents)


def contents() -> Contents:
    """The table with the pages that are there, those it does not name last."""
    written = table()
    parts = [
        Part(part.title, tuple(page for page in part.pages if (ROOT / page.path).is_file()))
        for part in written.part
    ]
    named = {page.path for page in written.pages} | {FIRST_PAGE}
    more = tuple(Page(path.stem) for path in sorted(DOCS.glob("*.md")) if f"docs/{path.name}" not in named)
    if more:
        parts.append(Part("More", more))
    return msgspec.structs.replace(written, part=tuple(part for part in parts if part.pages))


def title_of(path: str) -> str:
    """The title of a Markdown file of the repository: its first heading."""
    for line in (ROOT / path).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return Path(path).stem
