"""The report as one file: what stands in it, what cannot stand in it, and the command that writes it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from browser.sessions import HOSTILE, coding_session, hostile_session
from click.testing import CliRunner
from ui.agents import record

from prefixguard.analysis import Fold, Options
from prefixguard.cli import root
from prefixguard.errors import InputError
from prefixguard.exchange import Exchange
from prefixguard.importers import write_log
from prefixguard.reports.html import Listed, assets, turn_view
from prefixguard.reports.html.document import ReportedSession, html_report
from prefixguard.reports.json import encode
from prefixguard.rulebook import Rulebook
from prefixguard.store import Store

RULEBOOK = Rulebook()


def reported(log: list[Exchange]) -> tuple[str, list[ReportedSession]]:
    fold = Fold(RULEBOOK, Options.standard(RULEBOOK))
    for exchange in log:
        fold.step(exchange)
    analysis = fold.result()
    sessions = [ReportedSession(Listed(str(i), s), fold) for i, s in enumerate(analysis.sessions, 1)]
    return html_report(sessions, RULEBOOK.findings, analysis.prices, "1").decode(), sessions


def blocks(document: str) -> dict[str, Any]:
    """The data as the page unpacks it, by name."""
    found = re.findall(r'<script type="text/plain" id="data-([^"]+)">([A-Za-z0-9+/=]*)</script>', document)
    return {name: json.loads(gzip.decompress(base64.b64decode(packed))) for name, packed in found}


def test_no_text_of_a_prompt_stands_in_the_markup() -> None:
    document, _ = reported(hostile_session())
    outside = re.sub(r'<script type="text/plain"[^>]*>[A-Za-z0-9+/=]*</script>', "", document)
    for harm in HOSTILE[:5]:
        assert harm not in outside
    assert "broken out" not in outside
    assert "\u2028" not in outside
    assert outside.lower().count("</script>") == 2  # the set-up and the page's own
    assert not re.search(r"<[a-z]+[^>]*\son[a-z]+=", outside)


def test_allows_its_own_script_and_style_only() -> None:
    document, _ = reported(coding_session(2))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', document)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', document, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", document, re.DOTALL)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for name, content in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_turns_unpack_to_their_views() -> None:
    """What the page makes of the packed turns is what a server would send."""
    log = coding_session(8)
    document, (session,) = reported(log)
    found = blocks(document)
    rows = found["segments-1"]
    for turn in session.listed.session.turns:
        part = found["places-1"]["turns"][str(turn.index)]
        packed = found[f"turns-1-{part}"][str(turn.index)]
        view = json.loads(encode(turn_view(session.listed, turn, RULEBOOK.findings, session.prompts)))
        if packed["prompt"] is not None:
            runs = packed["prompt"]["segments"]
            packed["prompt"]["segments"] = [row for first, n in runs for row in rows[first : first + n]]
        assert packed == view


def test_every_text_of_every_prompt_is_there() -> None:
    document, (session,) = reported(coding_session(4))
    found = blocks(document)
    for turn in session.listed.session.turns:
        laid = session.prompts.laid_out(turn.index)
        if laid is None:  # the request that the server refused
            assert turn.status == 529
            continue
        for segment in laid[0].prompt.segments:
            part = found["places-1"]["texts"][segment.exact.hex()]
            assert found[f"texts-1-{part}"][segment.exact.hex()] == [[0, segment.text]]


def test_a_session_is_stored_once() -> None:
    """Twice the turns are not twice the file: prompts share their segments."""
    short, _ = reported(coding_session(6))
    long, _ = reported(coding_session(12))
    style_and_script = len(assets.bundle("embedded.js")) + len(assets.read("page.css"))
    assert len(long) - style_and_script < 3 * (len(short) - style_and_script)


def test_no_sessions() -> None:
    document = html_report([], RULEBOOK.findings, None, "1").decode()
    assert blocks(document)["overview"]["sessions"] == []


# The page's own files.

_TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


def test_bundled_modules_share_no_name() -> None:
    modules = [name for name in assets.names() if name.endswith(".js")]
    found = Counter(name for module in modules for name in _TOP_LEVEL.findall(assets.read(module).decode()))
    assert [name for name, count in found.items() if count > 1] == []


def test_bundle_leaves_no_import_and_ends_no_script() -> None:
    bundle = assets.bundle("embedded.js")
    assert not re.search(r"^\s*(import|export)\b", bundle, re.MULTILINE)
    assert "</script" not in bundle.lower()
    assert "<!--" not in bundle
    for name in assets.names():
        if name.endswith(".js"):
            assert bundle.count(f"// {name}\n") == 1


@pytest.mark.parametrize("name", [name for name in assets.names() if name.endswith(".js")])
def test_page_makes_no_markup_of_texts(name: str) -> None:
    source = assets.read(name).decode()
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
    ):
        assert way not in source


def test_no_other_file_is_handed_out() -> None:
    for name in ("../assets.py", "page", "", "page.js.map"):
        with pytest.raises(KeyError):
            assets.read(name)


# The command.


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    with path.open("wb") as stream:
        write_log(coding_session(2), stream)
    return path


def test_report_writes_a_file(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    done = CliRunner().invoke(root, ["report", str(log), "--format", "html", "-o", str(target)])
    assert (done.exit_code, done.output) == (0, "")
    assert blocks(target.read_text())["session-1"]["entry"]["id"] == "7f3a19c2-fix-invoice-tax"


def test_report_to_standard_output_is_the_same(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    CliRunner().invoke(root, ["report", str(log), "--format", "html", "-o", str(target)])
    done = CliRunner().invoke(root, ["report", str(log), "--format", "html"])
    assert done.stdout_bytes == target.read_bytes()


def test_several_logs_of_one_session_id_are_told_apart(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "after.jsonl"
    other.write_bytes(log.read_bytes())
    done = CliRunner().invoke(root, ["report", str(log), str(other), "--format", "html"])
    sessions = blocks(done.stdout)["overview"]["sessions"]
    assert [entry["key"] for entry in sessions] == ["1", "2"]
    assert [Path(entry["source"]).name for entry in sessions] == ["requests.jsonl", "after.jsonl"]


def test_a_log_that_is_not_there() -> None:
    done = CliRunner().invoke(root, ["report", "nowhere.jsonl", "--format", "html"])
    assert isinstance(done.exception, InputError)  # the command line prints it and exits with 2
    assert str(done.exception) == "nowhere.jsonl: no such file"


@pytest.mark.parametrize("mode", ["hashes", "redacted"])
def test_recordings_that_keep_less_say_so(tmp_path: Path, mode: Any) -> None:
    """Through the record itself: what was not kept cannot be in the file."""
    path = str(tmp_path / "record.sqlite")
    with Store.open(path, mode=mode) as store:
        record(store, "cut-down", clock=True, turns=4)
    done = CliRunner().invoke(root, ["report", "--store", path, "--format", "html"])
    found = blocks(done.stdout)
    (entry,) = found["overview"]["sessions"]
    assert entry["recording"] == mode
    assert found["turns-1-0"]["1"]["limits"]
    texts = json.dumps([block for name, block in found.items() if name.startswith("texts-")])
    assert ("You are" in texts) == (mode == "redacted")
