"""The page's own files: as a server hands them out, and bundled for a file that stands alone.

The modules in `page/` are written so that both work without a build step: every
import is one line from a neighbour, every top-level name is used once over all
modules. `bundle` puts them behind one another and takes imports and exports
away.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path

_FOLDER = Path(__file__).parent / "page"
ENTRY = "page.js"
STYLES = "page.css"
MEDIA_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class)", re.MULTILINE)


@cache
def names() -> tuple[str, ...]:
    """Every file that a browser may ask for."""
    return tuple(sorted(path.name for path in _FOLDER.iterdir() if path.suffix in MEDIA_TYPES))


@cache
def read(name: str) -> bytes:
    """A file of the page. Raises KeyError for any other name."""
    if name not in names():
        raise KeyError(name)
    return (_FOLDER / name).read_bytes()


def shell(head: str, body: str = "", title: str = "PrefixGuard") -> str:
    """The HTML document around the page. head, body: HTML that goes into them as it is."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n{head}\n</head>\n<body>\n"
        '<div id="page"><noscript>This page is drawn by its own script; '
        "`prefixguard report` prints the same in a terminal.</noscript></div>\n"
        f"{body}\n</body>\n</html>\n"
    )


def bundle(entry: str) -> str:
    """The module `entry` and all that it imports as one script of type "module", without imports."""
    parts: list[str] = []
    _collect(entry, parts, set())
    return "\n".join(parts)


def _collect(name: str, parts: list[str], seen: set[str]) -> None:
    if name in seen:
        return
    seen.add(name)
    text = read(name).decode()
    for found in _IMPORT.finditer(text):
        _collect(found[1], parts, seen)
    parts.append(f"// {name}\n" + _EXPORT.sub("", _IMPORT.sub("", text)))
