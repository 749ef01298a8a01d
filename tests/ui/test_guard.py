"""Who is let in: this page and its user; no other site, no other name, nobody without the key."""

from __future__ import annotations

import asyncio

import pytest
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from prefixguard.ui.guard import POLICY, Gate, Guard

KEY = "a-key"
HOST = "127.0.0.1:8788"


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a prompt"})


def ask(
    path: str = "/api/overview", method: str = "GET", gate: Gate | None = None, **headers: str | list[str]
) -> tuple[int, Headers, bytes]:
    """A request from the page itself, but for what is said otherwise; "-" leaves a header out."""
    sent: dict[str, str | list[str]] = {"host": HOST, "authorization": f"Bearer {KEY}"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    raw = [
        (name.encode(), one.encode())
        for name, value in sent.items()
        for one in ([value] if isinstance(value, str) else value)
        if one != "-"
    ]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}
    found: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        found.append(message)

    asyncio.run(Guard(behind, gate or Gate.of(KEY, "127.0.0.1"))(scope, receive, send))
    return found[0]["status"], Headers(raw=found[0]["headers"]), found[1]["body"]


def test_the_page_itself_gets_data() -> None:
    status, headers, body = ask(sec_fetch_site="same-origin", origin=f"http://{HOST}")
    assert (status, body) == (200, b"a prompt")
    assert headers["content-security-policy"] == POLICY
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:9000", "localhost:8788", "LOCALHOST", "[::1]:8788", "[::1]"]
)
def test_this_machine_has_several_names(host: str) -> None:
    assert ask(host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8788", "127.0.0.1.evil.example", "localhost.evil.example:8788", "",
        "127.0.0.1:8788@evil.example", "-", "[::1", "127.0.0.1:x", "2130706433",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/overview", "/page/page.js"])
def test_another_name_is_not_answered(host: str, path: str) -> None:
    status, _, body = ask(path, host=host)
    assert status == 403
    assert b"prompt" not in body


def test_two_names_are_not_answered() -> None:
    assert ask(host=[HOST, "evil.example"])[0] == 403


def test_a_name_can_be_allowed() -> None:
    assert ask(host="build.example:8788", gate=Gate.of(KEY, "0.0.0.0", ["Build.example"]))[0] == 200
    assert ask(host="0.0.0.0:8788", gate=Gate.of(KEY, "0.0.0.0"))[0] == 403
    assert ask(host="192.168.1.5", gate=Gate.of(KEY, "192.168.1.5"))[0] == 200
    assert ask(host="[fd00::5]:1", gate=Gate.of(KEY, "fd00::5"))[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:8789",
        "http://localhost:8788",
        "",
        "file://",
        "http://[",
    ],
)
def test_another_site_is_not_answered(origin: str) -> None:
    assert ask(origin=origin)[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize("path", ["/api/overview", "/api/events", "/page/page.js", "/"])
def test_what_another_site_makes_a_browser_ask_is_refused(site: str, path: str) -> None:
    assert ask(path, sec_fetch_site=site)[0] == 403
    # A frame, an image, a form: none of them is a link that somebody followed.
    assert ask(path, sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="iframe")[0] == 403


def test_a_link_leads_to_the_page_only() -> None:
    link = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert ask("/", **link)[0] == 200
    assert ask("/api/overview", **link)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(method: str) -> None:
    status, headers, _ = ask(method=method)
    assert status == 405
    assert "access-control-allow-methods" not in headers


@pytest.mark.parametrize("given", ["-", "", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", KEY])
def test_data_needs_the_key(given: str) -> None:
    status, _, body = ask(authorization=given)
    assert status == 401
    assert b"printed" in body
    assert ask("/", authorization=given)[0] == 200


def test_a_ticket_gets_the_key_once() -> None:
    gate = Gate.of(KEY, "127.0.0.1", ticket="a-ticket")
    assert ask(authorization="Bearer a-ticket", gate=gate)[0] == 401  # it opens nothing else
    assert ask("/api/key", authorization="Bearer wrong", gate=gate)[0] == 401
    assert ask("/api/key", authorization=f"Bearer {KEY}", gate=gate)[0] == 401
    assert ask("/api/key", authorization="Bearer a-ticket", gate=gate)[0] == 200
    assert ask("/api/key", authorization="Bearer a-ticket", gate=gate)[0] == 401
    assert ask("/api/key", authorization="Bearer ")[0] == 401


def test_a_key_of_other_letters_is_no_error() -> None:
    assert ask(authorization="Bearer ключ".encode().decode("latin-1"))[0] == 401


def test_websockets_are_not_spoken() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/", "headers": [(b"host", HOST.encode())]}
    asyncio.run(Guard(behind, Gate.of(KEY, "127.0.0.1"))(scope, receive, send))
    assert sent == []
