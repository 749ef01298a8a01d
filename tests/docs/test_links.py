"""Every link of the documentation leads somewhere, and every page can be reached. Nothing is fetched."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

from docs.site.contents import CATALOGUE, FIRST_PAGE, ROOT, contents, table
from docs.site.links import anchors, led, links, outside
from prefixguard.rulebook import Rulebook

PAGES = sorted(
    {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    | {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    | {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("README.md")}
    | {path.relative_to(ROOT).as_posix() for path in (ROOT / "fixtures").rglob("README.md")}
)


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def broken(path: str, content: str) -> list[str]:
    """What is wrong with each link of a page at that path."""
    found = []
    for line, target in links(content):
        if outside(target):
            continue
        name, _, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
        if name and (place.startswith("..") or not (ROOT / place).exists()):
            found.append(f"{path}:{line}: {target}: there is no such file")
        elif anchor and place.endswith(".md") and anchor not in anchors(text(place) if name else content):
            found.append(f"{path}:{line}: {target}: there is no such heading")
    return found


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_to_files_and_headings(path: str) -> None:
    assert broken(path, text(path)) == []


def test_a_broken_link_is_seen() -> None:
    page = "see [a](gate.md), [b](gone.md), [c](gate.md#the-policy), [d](gate.md#gone), `[e](f.md)`\n"
    page += "```\n[g](h.md)\n```\n## Here\n[i](#here) [j](#there) [k](https://example.org/x)\n"
    assert [fault.split(": ", 1)[1] for fault in broken("docs/x.md", page)] == [
        "gone.md: there is no such file",
        "gate.md#gone: there is no such heading",
        "#there: there is no such heading",
    ]


def test_leading_links_elsewhere_touches_nothing_else() -> None:
    page = '[a](b.md "t") `[c](d.md)` ![e](f.svg)\n\n~~~\n[g](h.md)\n~~~\n'
    assert led(page, lambda target: target) == page
    assert led(page, str.upper) == page.replace("b.md", "B.MD").replace("f.svg", "F.SVG")


def test_headings_have_the_anchors_of_a_code_host() -> None:
    page = "# The gate: a `build`\n## A, to begin\n## A, to begin\n```\n# none\n```\n### [x](y) & z_1\n"
    assert anchors(page) == {"the-gate-a-build", "a-to-begin", "a-to-begin-1", "x--z_1"}


def test_every_page_has_its_place_in_the_contents() -> None:
    named = {page.path for page in table().pages} | {FIRST_PAGE}
    assert {path for path in PAGES if path.startswith("docs/")} <= named, "add it to docs/site/contents.toml"
    assert {page.path for page in contents().pages} <= named
    assert CATALOGUE in named


def test_every_page_begins_with_its_title() -> None:
    for page in contents().pages:
        assert text(page.path).startswith("# "), page.path


def test_the_picture_is_plain_svg() -> None:
    for picture in Path(ROOT / "docs").glob("*.svg"):
        drawn = picture.read_text(encoding="utf-8")
        assert "prefers-color-scheme: dark" in drawn
        assert "<title" in drawn
        assert "\n\n" not in drawn, "a blank line would end the block of HTML on the site"
        assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("path", [path for path in PAGES if path != CATALOGUE])
def test_codes_that_are_named_are_in_the_catalogue(path: str) -> None:
    assert set(re.findall(r"\bPG\d{3}\b", text(path))) <= set(Rulebook().findings)
