"""What the pages ask: the list of sessions, a session, a turn, a text, two sessions compared. All of it JSON.

The views are those of the HTML report. Lists that grow are given by what is new
since a revision, so that a turn costs its own entry and not the whole session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from prefixguard.errors import PrefixGuardError
from prefixguard.finding import SEVERITIES
from prefixguard.reports.comparison import codes, compare_sessions
from prefixguard.reports.html import Overview, segment_text, turn_view
from prefixguard.reports.html.overview import Cause
from prefixguard.reports.json import encode
from prefixguard.turn import Session, Turn
from prefixguard.ui.desk import Desk, UnknownSessionError
from prefixguard.ui.folded import Folded, Told
from prefixguard.ui.stream import Hub

type Json = dict[str, Any]
type _Answer = tuple[str, bytes | None]
"""The ETag, or "", and the body; None where the page has it already."""

JSON = "application/json"


LEAST_TEXT, MOST_TEXT = 2, 500
MOST_FOUND = 100


class NotThereError(Exception):
    """A turn or a text that does not exist."""


@dataclass(frozen=True, slots=True)
class Api:
    """The handlers. opening: the overview without sessions, for what it says of version and prices."""

    desk: Desk
    hub: Hub
    opening: Overview

    async def overview(self, request: Request) -> Response:
        """`/api/overview?since=N`: the entries that changed behind revision N, all keys, the causes."""
        since, known = _number(request, "since"), _known(request)

        def answer(desk: Desk) -> _Answer:
            tag = f"{self.hub.run}.{desk.revision}.{since}.{desk.waiting}.{desk.left_out}"
            return _answer(tag, known, lambda: _overview(desk, self.opening, since, self.hub.run))

        return await _answered(self.desk.ask(answer))

    async def session(self, request: Request) -> Response:
        """`/api/sessions/KEY?since=N`: its entry and causes, and the turns that changed behind revision N."""
        key, since, known = request.path_params["key"], _number(request, "since"), _known(request)

        def answer(units: tuple[Folded, ...]) -> _Answer:
            told = _told(units[0], key)
            tag = f"{self.hub.run}.{told.revision}.{since}"
            return _answer(tag, known, lambda: _session(told, since, self.hub.run))

        return await _answered(self.desk.ask_of((key,), answer))

    async def turn(self, request: Request) -> Response:
        """`/api/sessions/KEY/turns/INDEX`: the whole turn, with its prompt as segments."""
        key, index, known = request.path_params["key"], request.path_params["index"], _known(request)

        def answer(units: tuple[Folded, ...]) -> _Answer:
            told = _told(units[0], key)
            turn, changed = _turn(told, index)
            listed, fold = told.listed, units[0].fold
            assert listed is not None  # its unit is folded
            tag = f"{self.hub.run}.{changed}"
            return _answer(tag, known, lambda: turn_view(listed, turn, self.desk.findings, fold))

        return await _answered(self.desk.ask_of((key,), answer))

    async def text(self, request: Request) -> Response:
        """`/api/sessions/KEY/turns/INDEX/segments/POSITION?start=N`: a piece of a segment's text."""
        path, start = request.path_params, _number(request, "start")
        key, index, position = path["key"], path["index"], path["position"]

        def answer(units: tuple[Folded, ...]) -> _Answer:
            _turn(_told(units[0], key), index)
            fold = units[0].fold
            window = segment_text(fold, index, position, start) if fold is not None else None
            if window is None:
                raise NotThereError(f"turn {index} of session {key} has no segment {position}")
            return "", encode(window)

        return await _answered(self.desk.ask_of((key,), answer))

    async def compare(self, request: Request) -> Response:
        """`/api/compare?before=KEY&after=KEY`: the figures of two sessions side by side."""
        keys = tuple(request.query_params.get(name, "") for name in ("before", "after"))
        known = _known(request)

        def answer(units: tuple[Folded, ...]) -> _Answer:
            before, after = (_told(unit, key) for unit, key in zip(units, keys, strict=True))
            tag = f"{self.hub.run}.{before.revision}.{after.revision}"
            return _answer(tag, known, lambda: _comparison(before, after))

        return await _answered(self.desk.ask_of(keys, answer))

    async def search(self, request: Request) -> Response:
        """`/api/search?q=TEXT`: where a text came into the prompts, the newest first."""
        text = request.query_params.get("q", "").strip()
        if not LEAST_TEXT <= len(text) <= MOST_TEXT:
            return _refused(400, f"Give a text of {LEAST_TEXT} to {MOST_TEXT} characters.")
        try:
            found = await self.desk.search(text, MOST_FOUND)
        except PrefixGuardError as error:
            return _refused(503, str(error))
        places = [{"key": key, "turn": turn, "excerpt": excerpt} for key, turn, excerpt in found]
        return Response(encode({"found": places, "most": MOST_FOUND}), media_type=JSON)

    async def events(self, request: Request) -> Response:
        """`/api/events`: what changes, as server-sent events. Last-Event-ID says where to go on."""
        if self.hub.is_full:
            return _refused(503, "There are too many open pages; close some.")
        lines = self.hub.follow(request.headers.get("last-event-id"))
        return StreamingResponse(lines, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _answered(answer: Awaitable[_Answer]) -> Response:
    try:
        tag, body = await answer
    except (UnknownSessionError, NotThereError) as error:
        return _refused(404, str(error))
    headers = {"etag": tag} if tag else None
    return Response(status_code=304, headers=headers) if body is None else Response(body, 200, headers, JSON)


def _answer(tag: str, known: str, build: Callable[[], object]) -> _Answer:
    quoted = f'"{tag}"'
    return quoted, None if quoted == known else encode(build())


def _known(request: Request) -> str:
    return request.headers.get("if-none-match", "").removeprefix("W/")


def _overview(desk: Desk, opening: Overview, since: int, run: str) -> Json:
    told = {key: one for unit in desk.units for key, one in unit.sessions.items() if one.entry is not None}
    return {
        "run": run,
        "revision": desk.revision,
        "record": desk.feed_name,
        "remarks": desk.remarks,
        "version": opening.version,
        "prices": opening.prices,
        "waiting": desk.waiting,
        "left_out": desk.left_out,
        "trouble": desk.trouble,
        "keys": list(told),
        "sessions": [one.entry for one in told.values() if one.revision > since],
        "causes": merged_causes(cause for one in told.values() for cause in one.causes),
    }


def _session(told: Told, since: int, run: str) -> Json:
    """turns: pairs of (place in the session, entry)."""
    return {
        "run": run,
        "revision": told.revision,
        "entry": told.entry,
        "causes": told.causes,
        "count": len(told.entries),
        "turns": [
            (place, entry)
            for place, ((_, entry), changed) in enumerate(zip(told.entries, told.changed, strict=True))
            if changed > since
        ],
    }


def merged_causes(all_: Iterable[Cause]) -> list[Cause]:
    """The causes of several sessions as one list, the dearest first; remarks at the end."""
    by_code: dict[str, list[Cause]] = {}
    for cause in all_:
        by_code.setdefault(cause.code, []).append(cause)
    found = [_merged(causes) for causes in by_code.values()]
    found.sort(
        key=lambda c: (
            c.severity == "info",
            -(c.cost or 0.0),
            -c.tokens,
            -SEVERITIES.index(c.severity),
            -c.turns,
            c.code,
        )
    )
    return found


def _merged(causes: list[Cause]) -> Cause:
    worst = max(causes, key=lambda cause: (cause.cost or 0.0, cause.tokens))
    costs = [cause.cost for cause in causes if cause.cost is not None]
    return msgspec.structs.replace(
        worst,
        severity=max((cause.severity for cause in causes), key=SEVERITIES.index),
        turns=sum(cause.turns for cause in causes),
        sessions=sum(cause.sessions for cause in causes),
        tokens=sum(cause.tokens for cause in causes),
        cost=sum(costs) if costs else None,
        estimated=any(cause.estimated for cause in causes),
        deliberate=all(cause.deliberate for cause in causes),
    )


def _comparison(before: Told, after: Told) -> Json:
    one, other = _whole(before), _whole(after)
    return {
        "before": before.entry,
        "after": after.entry,
        "measures": [
            {
                "name": measure.name,
                "label": measure.label,
                "before": measure.written(measure.before, one),
                "after": measure.written(measure.after, other),
                "better": measure.better,
            }
            for measure in compare_sessions(one, other)
        ],
        "codes": [
            {"code": code, "name": name, "before": was, "after": now}
            for code, name, was, now in codes(one, other)
        ],
    }


def _whole(told: Told) -> Session:
    assert told.listed is not None  # its unit is folded
    return told.listed.session


def _told(unit: Folded, key: str) -> Told:
    told = unit.sessions.get(key)
    if told is None:
        raise NotThereError(f"session {key} holds no request to a model")
    return told


def _turn(told: Told, index: int) -> tuple[Turn, int]:
    for (turn, _), changed in zip(told.entries, told.changed, strict=True):
        if turn.index == index:
            return turn, changed
    raise NotThereError(f"there is no turn {index} in this session")


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    return int(text) if text.isdecimal() and len(text) < 16 else 0


def _refused(status: int, why: str) -> Response:
    return Response(encode({"error": why}), status, media_type=JSON)
