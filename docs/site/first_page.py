"""The first page, docs/README.md, and llms.txt: one list of all pages, for readers and for language models.

Both follow the convention of llms.txt: a title, what it is in one quoted paragraph, more, then lists of links
with a remark each, under headings.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from docs.site.contents import FIRST_PAGE, Contents, contents, title_of
from docs.site.generated import NOTICE

_PICTURE = "![A prompt whose system text changed: what stands behind it is billed again](prefix.svg)"


def first_page() -> str:
    """docs/README.md: links lead to the pages beside it."""
    table = contents()
    start = posixpath.dirname(FIRST_PAGE)
    lists = _lists(table, lambda path: posixpath.relpath(path, start))
    more = [table.details.strip(), _PICTURE, *lists, NOTICE]
    return "\n\n".join([f"# {table.title}", _one_line(table.summary), *more]) + "\n"


def llms_txt(address: Callable[[str], str]) -> str:
    """llms.txt. address: what to link for a Markdown file, named by its path in the repository."""
    table = contents()
    parts = [f"# {table.title}", f"> {_one_line(table.summary)}", _one_line(table.details)]
    return "\n\n".join([*parts, *_lists(table, address)]) + "\n"


def _lists(table: Contents, address: Callable[[str], str]) -> list[str]:
    found = []
    for part in table.part:
        rows = [
            f"- [{title_of(page.path)}]({address(page.path)})" + (f": {page.about}" if page.about else "")
            for page in part.pages
        ]
        found.append(f"## {part.title}\n\n" + "\n".join(rows))
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
