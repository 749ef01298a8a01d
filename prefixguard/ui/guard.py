"""Who may ask, and what an answer may do in a browser: the outermost layer of the app.

Prompts are private. A page of another site can make a browser on this machine
send requests here, and a name of its own can be made to point here (DNS
rebinding); other users of the machine can reach the port. So: only known host
names, only requests that this page or the user made, only reading, and data
only to who knows the key that was printed at the start.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

DATA = "/api/"
"""Paths below it give data, and need the key."""
ENTRY = "/api/key"
"""Gives the key for a ticket."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Gate:
    """Who is let in.

    key: what a page must know. hosts: the names that we answer to, without
    ports, in lower case. ticket: gets the key, once: what stands in the command
    line of a browser that is started can be read by other users of the machine.
    """

    def __init__(self, key: str, hosts: Iterable[str], ticket: str = "") -> None:
        self.key = key
        self.hosts = frozenset(host.lower() for host in hosts)
        self._ticket = ticket

    @classmethod
    def of(cls, key: str, listen: str, more: Iterable[str] = (), ticket: str = "") -> Gate:
        """For an address that is listened on. more: further names under which users call it."""
        names = [*_LOCAL, *more]
        # An address for all interfaces is no name that anybody calls.
        if listen not in ("0.0.0.0", "::", ""):  # noqa: S104
            names.append(f"[{listen}]" if ":" in listen else listen)
        return cls(key, names, ticket)

    def admits(self, given: str, path: str) -> bool:
        """Whether what a request gives as its key opens a path. Takes the ticket, if it is that."""
        if path != ENTRY:
            return hmac.compare_digest(given.encode(), self.key.encode())
        ticket = self._ticket
        if not ticket or not hmac.compare_digest(given.encode(), ticket.encode()):
            return False
        self._ticket = ""
        return True


class Guard:
    """ASGI middleware. Everything that it refuses is refused before a handler sees it."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSockets here; browsers let any site open them
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith(DATA):
                    headers["cache-control"] = "no-store"
            await send(message)

        refusal = self.refusal(scope["method"], scope["path"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, guarded)

    def refusal(self, method: str, path: str, headers: Headers) -> Response | None:
        """What a request is refused with; None where it may pass."""
        hosts = headers.getlist("host")
        name = _name_of(hosts[0]) if len(hosts) == 1 else None
        if name is None or name not in self._gate.hosts:
            return PlainTextResponse(
                "This host name is not one of this server's: see `prefixguard ui --allow-host`.\n", 403
            )
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("Nothing can be changed here.\n", 405, {"allow": "GET, HEAD"})
        origin = headers.get("origin")
        if origin is not None and not _same(origin, hosts[0]):
            return PlainTextResponse("Requests of other sites are not answered.\n", 403)
        # Browsers say who made them ask; what is typed or bookmarked is "none", and old ones say nothing.
        site = headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and not _is_link(path, headers):
            return PlainTextResponse("Requests of other sites are not answered.\n", 403)
        if path.startswith(DATA):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not self._gate.admits(given.strip(), path):
                return PlainTextResponse(
                    "Open the address that `prefixguard ui` printed: it holds the key.\n",
                    401,
                    {"www-authenticate": "Bearer"},
                )
        return None


def _name_of(host: str) -> str | None:
    """The host of a Host header without its port, in lower case; None for what is none."""
    host = host.strip().lower()
    if host.startswith("["):
        name, bracket, port = host.partition("]")
        name += bracket
        port = port.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    return name if name and (not port or port.isdecimal()) else None


def _same(origin: str, host: str) -> bool:
    """Whether an Origin is the site that a Host header names."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.strip().lower()


def _is_link(path: str, headers: Headers) -> bool:
    """Whether somebody followed a link to the page itself, which holds no data."""
    return (
        path == "/"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
