"""Third step of a build: Sphinx turns the assembled pages into the site."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from docs.site.assemble import ADDRESS, assemble
from docs.site.contents import ROOT

GROUP = ("sphinx", "myst_parser", "furo")
_COMPLETED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    "<pre>": '<pre tabindex="0">',
}
WITHOUT_GROUP = "the group `docs` is not installed: uv run --group docs python -m docs.site"


def installed() -> bool:
    """Whether the group `docs` is there."""
    return all(find_spec(name) for name in GROUP)


def build(site: Path, work: Path | None = None, address: str = ADDRESS) -> int:
    """Builds the site into the folder `site`. Returns Sphinx's exit status: a warning is an error.

    work: where pages are assembled and read pages are kept; by default a folder of build/.
    address: where the site will stand.
    """
    from sphinx.cmd.build import main

    work = work or ROOT / "build/docs"
    assemble(work / "pages", address)
    os.environ["PREFIXGUARD_DOCS_ADDRESS"] = address
    settings = Path(__file__).parent
    options = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(work / "read"), "-c", str(settings)]
    status = main([*options, str(work / "pages"), str(site)])
    shutil.copytree(work / "pages/extra", site, dirs_exist_ok=True)
    for page in site.rglob("*.html"):
        page.write_text(_accessible(page.read_text(encoding="utf-8")), encoding="utf-8")
    return status


def _accessible(html: str) -> str:
    """A page with what the theme leaves out for keyboards and screen readers."""
    for bare, completed in _COMPLETED.items():
        html = html.replace(bare, completed)
    return html
