"""The pages of docs/ that are made by a command and kept in the repository, for readers on a code host.

`python -m docs.site pages` renews them; a test holds them to what they are made from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.site.contents import DOCS

RENEW = "python -m docs.site pages"
NOTICE = f"This page is made by `{RENEW}`."


def pages() -> dict[Path, str]:
    """The text that each such page ought to have, the first page last: it names the titles of the others."""
    return {DOCS / f"{name}.md": make() for name, make in _makers().items()}


def renew() -> list[Path]:
    """Writes the pages that are not as they ought to be. Returns them."""
    changed = []
    for name, make in _makers().items():
        path = DOCS / f"{name}.md"
        text = make()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def _makers() -> dict[str, Callable[[], str]]:
    from docs.site.commands import reference
    from docs.site.first_page import first_page
    from prefixguard.caches.choose import cache_rules
    from prefixguard.reports.manual import caches_page, findings_page
    from prefixguard.rulebook import Rulebook

    rulebook = Rulebook()
    return {
        "cli": reference,
        "caches": lambda: caches_page(cache_rules(rulebook)),
        "findings": lambda: findings_page(rulebook.findings.values()),
        "README": first_page,
    }
