"""The addon that decides where a request goes, answers the proxy's own pages, and refuses the rest.

First of our addons in the path of a request. It changes the request's target,
its `Host`, and takes `x-prefixguard-session` off; nothing else. What it decides
about recording it leaves on the flow for the tap.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from mitmproxy import http

from prefixguard.proxy.hosts import is_address, is_loopback
from prefixguard.proxy.metrics import CONTENT_TYPE as TEXT_FORMAT
from prefixguard.proxy.tap import PLAN, SESSION_HEADER, Plan
from prefixguard.proxy.upstreams import Target
from prefixguard.proxy.via import via_of

if TYPE_CHECKING:
    from mitmproxy.connection import Client

    from prefixguard.proxy.upstreams import Router

HEALTH: Final = "/prefixguard/health"
METRICS: Final = "/prefixguard/metrics"
_OWN: Final = "/prefixguard/"
_LOCAL_NAMES: Final = frozenset(
    {"localhost", "host.docker.internal", "gateway.docker.internal", "host.containers.internal"}
)
_SESSION: Final = SESSION_HEADER.encode()
_TAKEN_OFF: Final = frozenset({_SESSION, b"proxy-connection", b"proxy-authorization"})


class Routing:
    """mitmproxy addon.

    forward: also act as an HTTP(S) proxy for any host. names: more host names
    under which clients may call us. health: the values of the health page.
    metrics: the page for Prometheus.
    environ: says which proxy leads to the upstreams, see `via`.
    """

    def __init__(
        self,
        router: Router,
        health: Callable[[], Mapping[str, object]],
        *,
        metrics: Callable[[], bytes] | None = None,
        forward: bool = False,
        listen_host: str = "127.0.0.1",
        names: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._router = router
        self._health = health
        self._metrics = metrics
        self._forward = forward
        self._guarded = is_loopback(listen_host)
        self._names = _LOCAL_NAMES | {name.lower() for name in (*names, listen_host)}
        self._tunnels: set[str] = set()
        self._credentials: dict[tuple[str, int], str | None] = {}
        self._via = cache(partial(via_of, environ=environ or {}))
        self.port = 0
        """The port that the proxy listens on; known once it does."""
        self.counts: Counter[str] = Counter()

    def http_connect(self, flow: http.HTTPFlow) -> None:
        """A client asks for a tunnel: only forward mode gives one."""
        if self._forward:
            self._tunnels.add(flow.client_conn.id)
            request = flow.request
            self._lead(flow, Target("https", request.host, request.port))
        else:
            self._refuse(flow, 403, "this proxy opens no tunnels; start it with --mode forward")

    def client_disconnected(self, client: Client) -> None:
        """A connection ended."""
        self._tunnels.discard(client.id)

    def http_connect_upstream(self, flow: http.HTTPFlow) -> None:
        """We ask the proxy of this machine for a tunnel to an upstream."""
        address = flow.server_conn.address
        credentials = self._credentials.get((address[0], address[1])) if address else None
        if credentials is not None:
            flow.request.headers["Proxy-Authorization"] = credentials

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """A request begins."""
        if flow.error is not None:
            return
        try:
            if flow.client_conn.id in self._tunnels or (self._forward and not self._is_ours(flow.request)):
                self._pass_on(flow)
            else:
                self._route(flow)
        except Exception as error:
            # A request that we could not route must not go to some default place.
            flow.metadata.pop(PLAN, None)
            if flow.client_conn.id not in self._tunnels:
                self._refuse(flow, 502, f"the request could not be routed: {error}")
            raise

    def _route(self, flow: http.HTTPFlow) -> None:
        request = flow.request
        if self._guarded and not self._is_known_name(request.host):
            self._refuse(
                flow,
                403,
                f"unknown host name {request.host!r}: a web page may have been made to call this proxy; "
                "if it is yours, name it with --allow-host",
            )
            return
        path = request.path
        if path.startswith(_OWN):
            self._own_page(flow, path)
            return
        named = _by_name(request)
        route = self._router.route(path, {name.decode("latin-1"): "" for name in named})
        if route is None:
            self._refuse(
                flow,
                404,
                f"no upstream is configured for {path.partition('?')[0]}: "
                "start the proxy with --upstream URL, or put /openai, /anthropic or /to/NAME before the path",
            )
            return
        self._plan(flow, named, route.target.origin, route.path)
        self._aim(request, route.target, route.path)
        self._lead(flow, route.target)

    def _lead(self, flow: http.HTTPFlow, target: Target) -> None:
        """Take the way to a target that this machine has to take."""
        via = self._via(target)
        if via is None or (via.port == self.port and is_loopback(via.host)):
            return
        flow.server_conn.via = (via.scheme, (via.host, via.port))
        self._credentials[via.host, via.port] = via.credentials

    def _pass_on(self, flow: http.HTTPFlow) -> None:
        request = flow.request
        if flow.client_conn.id not in self._tunnels:
            self._lead(flow, Target("http", request.host, request.port))
        if self._router.opens(request.host):
            default = 443 if request.scheme == "https" else 80
            port = "" if request.port == default else f":{request.port}"
            self._plan(flow, _by_name(request), f"{request.scheme}://{request.host}{port}", request.path)
        else:
            request.stream = True
        self._take_off(request)

    def _plan(self, flow: http.HTTPFlow, named: Mapping[bytes, bytes], upstream: str, path: str) -> None:
        request = flow.request
        if named.get(b"upgrade", b"").lower() == b"websocket":
            recorded, unknown = self._router.is_websocket_api(path), False
        else:
            verdict = self._router.verdict(request.method, path)
            # In forward mode a host's other traffic is none of our business.
            unknown = verdict == "unknown" and flow.client_conn.id not in self._tunnels
            recorded = verdict == "record" or unknown
        if recorded:
            session = named.get(_SESSION)
            flow.metadata[PLAN] = Plan(
                upstream,
                session=None if session is None else session.decode("utf-8", "replace"),
                unknown_api=unknown,
            )
            self.counts["unknown_api" if unknown else "exchanges"] += 1
        else:
            request.stream = True
            self.counts["side_traffic"] += 1

    def _aim(self, request: http.Request, target: Target, path: str) -> None:
        data = request.data
        data.scheme = target.scheme.encode()
        data.host = target.host
        data.port = target.port
        data.path = path.encode("utf-8", "surrogateescape")
        host = target.origin.partition("://")[2].encode("idna" if not target.host.isascii() else "ascii")
        # The name's case and the place among the headers stay as the client chose them.
        data.headers.fields = tuple(
            (name, host if name.lower() == b"host" else value)
            for name, value in data.headers.fields
            if name.lower() not in _TAKEN_OFF
        )

    def _take_off(self, request: http.Request) -> None:
        fields = request.data.headers.fields
        kept = tuple(field for field in fields if field[0].lower() not in _TAKEN_OFF)
        if len(kept) != len(fields):
            request.data.headers.fields = kept

    def _own_page(self, flow: http.HTTPFlow, path: str) -> None:
        page = path.partition("?")[0]
        if page == METRICS and self._metrics is not None:
            flow.response = http.Response.make(
                200, self._metrics(), {"content-type": TEXT_FORMAT, "cache-control": "no-store"}
            )
            return
        if page != HEALTH:
            self._refuse(flow, 404, f"there is no such page; there are {HEALTH} and {METRICS}")
            return
        body = json.dumps(self._health(), indent=1).encode()
        flow.response = http.Response.make(
            200, body, {"content-type": "application/json", "cache-control": "no-store"}
        )

    def _refuse(self, flow: http.HTTPFlow, status: int, message: str) -> None:
        self.counts["refused"] += 1
        body = json.dumps({"error": {"type": "prefixguard", "message": f"prefixguard: {message}"}}).encode()
        flow.response = http.Response.make(status, body, {"content-type": "application/json"})

    def _is_ours(self, request: http.Request) -> bool:
        host = request.host.lower()
        return request.port == self.port and (host in self._names or is_loopback(host))

    def _is_known_name(self, host: str) -> bool:
        host = host.lower().rstrip(".")
        return host in self._names or host.endswith(".localhost") or is_address(host)


def _by_name(request: http.Request) -> dict[bytes, bytes]:
    """The headers by lower-case name, in one walk; mitmproxy's own look-up walks through all for each."""
    return {name.lower(): value for name, value in request.data.headers.fields}
