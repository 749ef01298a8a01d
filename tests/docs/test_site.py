"""The site: generated pages are up to date, addresses are kept, llms.txt leads to pages, and it builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site.assemble import ADDRESS, assemble, pages
from docs.site.build import WITHOUT_GROUP, build, installed
from docs.site.generated import RENEW
from docs.site.generated import pages as generated
from docs.site.links import links, outside
from prefixguard.caches.choose import cache_rules
from prefixguard.lint.formats import rule
from prefixguard.rulebook import Rulebook


@pytest.fixture(scope="module")
def assembled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "pages"
    assemble(folder)
    return folder


@pytest.mark.parametrize(("path", "made"), generated().items(), ids=lambda value: getattr(value, "name", ""))
def test_a_generated_page_is_up_to_date(path: Path, made: str) -> None:
    assert path.read_text(encoding="utf-8") == made, RENEW


def test_every_cache_rule_is_told_with_its_date_and_source() -> None:
    (page,) = [made for path, made in generated().items() if path.name == "caches.md"]
    plain = page.replace("\\", "")
    for cache in cache_rules(Rulebook()):
        checked = "checked" if cache.verified else "not checked"
        assert f"{cache.source} ({cache.date.isoformat()}, {checked})" in plain


def test_every_finding_has_the_page_that_the_linter_names(assembled: Path) -> None:
    for code, finding in Rulebook().findings.items():
        address = rule.url(code)
        page = (assembled / address.removeprefix(f"{ADDRESS}/") / "index.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {code} {finding.name}\n")
        for example in finding.examples:
            assert example.bad.strip() in page
            assert example.good.strip() in page


def test_links_between_pages_stay_on_the_site(assembled: Path) -> None:
    extra = assembled / "extra"
    for page in assembled.rglob("*.md"):
        for line, target in links(page.read_text(encoding="utf-8")):
            if extra in page.parents or outside(target) or target.startswith("#"):
                continue
            assert (page.parent / target.partition("#")[0]).is_file(), f"{page}:{line}: {target}"


def test_llms_txt_follows_the_convention_and_its_links_exist(assembled: Path) -> None:
    text = (assembled / "extra/llms.txt").read_text(encoding="utf-8")
    title, summary, *_ = text.split("\n\n")
    assert title == "# PrefixGuard"
    assert summary.startswith("> ")
    assert "\n" not in summary
    assert not re.search(r"^###", text, re.MULTILINE)
    listed = re.findall(r"^- \[[^\]]+\]\((\S+)\)(?:: .+)?$", text, re.MULTILINE)
    assert len(listed) == len([line for line in text.splitlines() if line.startswith("- ")]) > 10
    for address in listed:
        assert (assembled / "extra" / address.removeprefix(f"{ADDRESS}/")).is_file(), address


def test_pages_for_language_models_lead_to_each_other(assembled: Path) -> None:
    extra = assembled / "extra"
    whole = (extra / "llms-full.txt").read_text(encoding="utf-8")
    checked = 0
    for page in extra.rglob("*.html.md"):
        text = page.read_text(encoding="utf-8")
        assert text in whole
        for _, target in links(text):
            if target.startswith(ADDRESS):
                place = target.removeprefix(f"{ADDRESS}/").partition("#")[0]
                assert (extra / place).is_file(), f"{page}: {target}"
                checked += 1
            else:
                assert outside(target) or target.startswith("#"), f"{page}: {target}"
    assert checked > 20


def test_no_page_is_lost() -> None:
    names = [path for path, _ in pages()]
    assert len(names) == len(set(names))
    assert "CONTRIBUTING.md" in names


@pytest.mark.filterwarnings("ignore:.*MystReferenceResolver")
@pytest.mark.skipif(not installed(), reason=WITHOUT_GROUP)
def test_the_site_builds_without_a_warning_and_asks_nobody(tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert build(site, tmp_path / "work") == 0
    for code in Rulebook().findings:
        assert (site / "findings" / code / "index.html").is_file()
    assert "PG101" in (site / "searchindex.js").read_text(encoding="utf-8")
    loaded = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(https?:)?//""")
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        found = [match[0] for match in loaded.finditer(html) if 'rel="canonical"' not in match[0]]
        assert not found, f"{page}: {found}"
        assert "<pre>" not in html, "code that scrolls can be reached by keyboard"
        assert 'role="heading">' not in html, "a heading has a level"
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?https?:", style.read_text(encoding="utf-8")), style
