"""The pages as the generator reads them: copied out of the repository, links led to where pages will stand.

Second step of a build, without the generator: docs/*.md and two pages of the root, a page for each finding,
and, for language models, llms.txt, llms-full.txt and each page's Markdown beside it.

Addresses are promises. A page stands at NAME.html, a finding at findings/PG101/, which is what the linter's
JSON and SARIF name.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import groupby
from pathlib import Path

from docs.site.contents import CATALOGUE, DOCS, FIRST_PAGE, ROOT, contents, title_of
from docs.site.first_page import first_page, llms_txt
from docs.site.links import led, outside
from prefixguard.lint.formats.rule import DOCS as FINDINGS_ADDRESS
from prefixguard.reports.manual import finding_entry
from prefixguard.reports.rules import FAMILIES
from prefixguard.rulebook import FindingRule, Rulebook

ADDRESS = FINDINGS_ADDRESS.rpartition("/")[0]
"""Where the site stands: the linter's links lead there."""
REPOSITORY = "https://github.com/prefixguard/prefixguard"
_PICTURES = (".svg", ".png")


def assemble(folder: Path, address: str = ADDRESS) -> None:
    """Writes the generator's sources to `folder`, and what is copied as it is to `folder/extra`.

    address: where the site will stand, for llms.txt, which holds whole addresses.
    """
    if folder.exists():
        shutil.rmtree(folder)
    extra = folder / "extra"
    whole = []
    for path, text in pages():
        name = name_of(path)
        _write(folder / f"{name}.md", led(_drawn(text), partial(_site, path)))
        plain = led(text, partial(_plain, path, address))
        _write(extra / f"{name}.html.md", plain)
        whole.append(f"<!-- {address}/{name}.html -->\n\n{plain}")
    _write(folder / "index.md", _index(folder))
    _write(extra / "llms.txt", llms_txt(lambda path: f"{address}/{name_of(path)}.html.md"))
    _write(extra / "llms-full.txt", "\n\n".join(whole))
    for picture in [*DOCS.glob("*.svg"), *DOCS.glob("images/*")]:
        for place in (folder, extra):
            target = place / picture.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, target)


def pages() -> Iterator[tuple[str, str]]:
    """(path in the repository, text) of every page; a finding's path is that of its rule."""
    yield FIRST_PAGE, first_page()
    findings = list(Rulebook().findings.values())
    for page in contents().pages:
        if page.path == CATALOGUE:
            yield page.path, _catalogue(findings)
            for rule in findings:
                yield f"rules/findings/{rule.code}.toml", _finding(rule)
        else:
            yield page.path, (ROOT / page.path).read_text(encoding="utf-8")


def name_of(path: str) -> str:
    """A page's name on the site, without an ending."""
    if path == FIRST_PAGE:
        return "index"
    if path == CATALOGUE:
        return "findings/index"
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return f"findings/{stem}/index" if path.startswith("rules/findings/") else stem.lower()


def resolved(path: str, target: str) -> tuple[str, str]:
    """(path in the repository, anchor) of a link on the page at `path`. A code's anchor is its page."""
    name, _, anchor = target.partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
    code = re.match(r"pg\d{3}(?=-)", anchor)
    if place == CATALOGUE and code:
        return f"rules/findings/{code[0].upper()}.toml", ""
    return ("docs/README.md" if place in ("docs", "README.md") else place), anchor


def _site(path: str, target: str) -> str:
    """A link for the generator: to another page's source, a picture, or the file in the repository."""
    return _to(path, target, lambda place: f"{name_of(place)}.md")


def _plain(path: str, address: str, target: str) -> str:
    """A link for a language model: the whole address of another page's Markdown."""
    if target.startswith("#"):
        return target
    found = _to(path, target, lambda place: f"{name_of(place)}.html.md")
    if outside(found):
        return found
    return f"{address}/{posixpath.normpath(posixpath.join(posixpath.dirname(name_of(path)), found))}"


def _to(path: str, target: str, file: Callable[[str], str]) -> str:
    if outside(target):
        return target
    place, anchor = resolved(path, target)
    mark = f"#{anchor}" if anchor else ""
    if place in _known():
        if place == path and not target.startswith(("http", "/")) and target.startswith("#"):
            return target
        here = posixpath.dirname(name_of(path))
        return posixpath.relpath(file(place), here or ".") + mark
    if place.startswith("docs/") and place.endswith(_PICTURES):
        return posixpath.relpath(place.removeprefix("docs/"), posixpath.dirname(name_of(path)) or ".")
    kind = "tree" if (ROOT / place).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{place}{mark}"


@cache
def _known() -> frozenset[str]:
    """The pages that other pages can lead to."""
    codes = {f"rules/findings/{code}.toml" for code in Rulebook().findings}
    return frozenset({FIRST_PAGE, *(page.path for page in contents().pages)} | codes)


def _drawn(text: str) -> str:
    """The text with drawings written into it, so that they follow the reader's choice of dark or light."""

    def drawing(match: re.Match[str]) -> str:
        drawn = (DOCS / match[1]).read_text(encoding="utf-8").strip()
        return f'<div class="drawing" tabindex="0">\n{drawn}\n</div>'

    return re.sub(r"^!\[[^\]]*\]\((\w[\w-]*\.svg)\)$", drawing, text, flags=re.MULTILINE)


def _index(folder: Path) -> str:
    """The first page with the site's navigation, which a code host must not show."""
    text = (folder / "index.md").read_text(encoding="utf-8")
    trees = []
    for part in contents().part:
        names = "\n".join(f"{title_of(page.path)} <{name_of(page.path)}>" for page in part.pages)
        trees.append(f"```{{toctree}}\n:hidden:\n:caption: {part.title}\n\n{names}\n```")
    return text + "\n" + "\n\n".join(trees) + "\n"


def _catalogue(findings: list[FindingRule]) -> str:
    """The site's page of all findings: a table per family, in the place of the one long page."""
    long_page = (ROOT / CATALOGUE).read_text(encoding="utf-8")
    parts = [long_page.partition("\n## ")[0].rpartition("\n\n")[0]]
    for family, members in groupby(findings, lambda rule: rule.code[:3]):
        rows = [
            f"| [{rule.code} {rule.name}](../rules/findings/{rule.code}.toml) | {rule.title} "
            f"| {rule.severity} | {', '.join(rule.seen_by)} |"
            for rule in members
        ]
        head = ["| finding | what | severity | seen by |", "| --- | --- | --- | --- |"]
        parts.append(f"## {FAMILIES.get(family, family)}\n\n" + "\n".join(head + rows))
    names = "\n".join(f"{rule.code} {rule.name} <{rule.code}/index>" for rule in findings)
    return "\n\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{names}\n```"]) + "\n"


def _finding(rule: FindingRule) -> str:
    """A finding's own page."""
    seen = [f"`prefixguard rules {rule.code}` prints this page in the terminal."]
    if "lint" in rule.seen_by:
        seen.append(f"`prefixguard lint --select {rule.code} PATH` looks for it alone.")
    return "\n\n".join([finding_entry(rule), " ".join(seen)]) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
