"""The report as one HTML file that needs nothing else: page, views and texts packed into it.

Data stands in the file as blocks of compressed JSON in base64, so that no text
of a prompt can end a block or act as markup, and the browser unpacks what is
looked at. The page runs under a policy that allows its own script and style,
and no request at all.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from prefixguard.reports.html import assets
from prefixguard.reports.html.overview import Listed, overview
from prefixguard.reports.html.segments import SegmentEntry
from prefixguard.reports.html.session import session_view
from prefixguard.reports.html.texts import Texts
from prefixguard.reports.html.turn import LaidOut, TurnView, turn_view
from prefixguard.reports.json import encode
from prefixguard.rulebook import FindingRule
from prefixguard.turn import Prices

_TURNS_A_BLOCK = 40


@dataclass(frozen=True, slots=True)
class ReportedSession:
    """A session for the report, with the fold that its turns come from."""

    listed: Listed
    prompts: LaidOut


def html_report(
    sessions: Iterable[ReportedSession],
    findings: Mapping[str, FindingRule],
    prices: Prices | None,
    version: str,
) -> bytes:
    """The whole report as one HTML document in UTF-8. findings: the catalogue.

    sessions: taken one after the other; of each only its turns are kept.
    """
    texts = Texts()
    blocks: list[str] = []
    listed: list[Listed] = []
    for session in sessions:
        blocks += _session_blocks(session, findings, texts)
        listed.append(session.listed)
    first = overview(listed, findings, prices, version)
    blocks.insert(0, _block("overview", first))
    footer = f"prefixguard {version}." + (f" Prices: {first.prices}." if first.prices else "")
    if texts.cut:
        footer += (
            f" {texts.cut:,} {'texts are' if texts.cut > 1 else 'text is'} not here in full: "
            "the report keeps at most 100,000 characters of a text, and 24 million in all."
        )
    setup = {"footer": footer, "single": listed[0].key if len(listed) == 1 else None}
    script = assets.bundle("embedded.js")
    style = assets.read(assets.STYLES).decode()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    body = "\n".join(blocks)
    body += f'\n<script type="application/json" id="setup">{_embedded(setup)}</script>'
    body += f'\n<script type="module">{script}</script>'
    return assets.shell(head, body, "PrefixGuard report").encode()


def _session_blocks(
    session: ReportedSession, findings: Mapping[str, FindingRule], texts: Texts
) -> Iterator[str]:
    listed, prompts = session.listed, session.prompts
    key = listed.key
    yield _block(f"session-{key}", session_view(listed, findings))
    rows: dict[SegmentEntry, int] = {}
    places: dict[int, int] = {}
    turns = listed.session.turns
    texts.begin()
    for number, start in enumerate(range(0, len(turns), _TURNS_A_BLOCK)):
        packed: dict[str, Any] = {}
        for turn in turns[start : start + _TURNS_A_BLOCK]:
            view = turn_view(listed, turn, findings, prompts)
            packed[str(turn.index)] = _packed(view, rows)
            places[turn.index] = number
            if view.prompt is not None:
                texts.see(view.prompt, turn.is_break, prompts, turn.index)
        yield _block(f"turns-{key}-{number}", packed)
    yield _block(f"segments-{key}", list(rows))
    where: dict[str, int] = {}
    for number, part in enumerate(texts.parts()):
        where |= dict.fromkeys(part, number)
        yield _block(f"texts-{key}-{number}", part)
    yield _block(f"places-{key}", {"turns": {str(i): n for i, n in places.items()}, "texts": where})


def _packed(view: TurnView, rows: dict[SegmentEntry, int]) -> dict[str, Any]:
    """A turn's view with its segments as runs in the session's table, which turns share."""
    fields: dict[str, Any] = msgspec.structs.asdict(view)
    if view.prompt is None:
        return fields
    runs: list[list[int]] = []
    for segment in view.prompt.segments:
        row = rows.setdefault(segment, len(rows))
        if runs and runs[-1][0] + runs[-1][1] == row:
            runs[-1][1] += 1
        else:
            runs.append([row, 1])
    fields["prompt"] = msgspec.structs.asdict(view.prompt) | {"segments": runs}
    return fields


def _block(name: str, value: object) -> str:
    packed = base64.b64encode(gzip.compress(encode(value), compresslevel=6, mtime=0)).decode()
    return f'<script type="text/plain" id="data-{name}">{packed}</script>'


def _embedded(value: object) -> str:
    """JSON that is safe inside a script element: ASCII, and nothing that could end it."""
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
