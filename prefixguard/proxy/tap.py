"""The addon that copies: an exchange's bytes, times and masked headers become a capture.

It runs in the path of the agent's requests, so it only copies references,
masks, and hands the capture to the link. An exception in here is counted and
swallowed; the request goes on.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from prefixguard.exchange import Capture, Timing
from prefixguard.proxy.account import account
from prefixguard.proxy.copies import HOOK_FAILED, Copy, Pairs
from prefixguard.proxy.frames import Frame
from prefixguard.secrets import mask_headers, mask_path

if TYPE_CHECKING:
    from mitmproxy.connection import Client
    from mitmproxy.http import Headers, HTTPFlow

SESSION_HEADER: Final = "x-prefixguard-session"
SENT_AGAIN: Final = "prefixguard-sent-again"
"""Key of `flow.metadata` on a request that went out a second time."""
PLAN: Final = "prefixguard"
"""Key of `flow.metadata` under which routing leaves a `Plan` for the tap."""


class Plan:
    """What routing decided about one flow, and what the tap has of it so far."""

    __slots__ = ("pairs", "response", "session", "started", "unknown_api", "upstream")

    def __init__(self, upstream: str, *, session: str | None, unknown_api: bool) -> None:
        self.upstream = upstream
        self.session = session
        self.unknown_api = unknown_api
        self.started = 0.0
        self.response: Copy | None = None
        self.pairs: Pairs | None = None


class Tap:
    """mitmproxy addon, behind routing. offer: takes a frame and never blocks."""

    def __init__(self, offer: Callable[[Frame], bool], agent: str | None = None) -> None:
        self._offer = offer
        self.salt = os.urandom(16)
        """For account digests; the store's own as soon as the recorder has told it."""
        self._agent = agent
        self.lost: Counter[str] = Counter()
        self.ended = 0
        """Exchanges that came to an end, recorded or not."""
        self.sent_again = 0
        """Requests that went out a second time, see `streams`."""
        self.open: dict[str, HTTPFlow] = {}
        """Flows under way, by id: what a proxy that stops must still hand over."""

    # -- hooks, in the order in which they come -----------------------------------------------

    def request(self, flow: HTTPFlow) -> None:
        """The request is complete and about to be sent.

        mitmproxy holds a request until all of it is there. Passing it on in
        pieces would cost more CPU for large bodies than recording does.
        """
        plan = flow.metadata.get(PLAN)
        if plan is not None and flow.response is None:
            plan.started = time.perf_counter()
            self.open[flow.id] = flow

    def responseheaders(self, flow: HTTPFlow) -> None:
        """A response begins: from here on it passes chunk by chunk."""
        response = flow.response
        if response is None or response.status_code == 101:
            return
        response.stream = True
        self.sent_again += SENT_AGAIN in flow.metadata
        plan = flow.metadata.get(PLAN)
        if plan is not None:
            try:
                plan.response = Copy(plan.started)
                response.stream = plan.response
            except Exception:  # noqa: BLE001  the response must go on
                self._count(HOOK_FAILED)

    def response(self, flow: HTTPFlow) -> None:
        """The response is complete."""
        if flow.websocket is None:
            self._finish(flow, aborted=False)

    def error(self, flow: HTTPFlow) -> None:
        """The client went away, or the upstream did, or it was never reached."""
        self._finish(flow, aborted=flow.response is not None or _client_left(flow))

    def websocket_message(self, flow: HTTPFlow) -> None:
        """A message passed, in one direction or the other."""
        if flow.websocket is None or not flow.websocket.messages:
            return
        message = flow.websocket.messages[-1]
        # mitmproxy keeps every message for as long as the connection lives; agents keep it for hours.
        flow.websocket.messages.clear()
        plan = flow.metadata.get(PLAN)
        if plan is None:
            return
        try:
            self._pair(flow, plan, message.content, from_client=message.from_client)
        except Exception:  # noqa: BLE001  the message must go on
            self._count(HOOK_FAILED)

    def websocket_end(self, flow: HTTPFlow) -> None:
        """The WebSocket was closed, by either side."""
        self._finish(flow, aborted=True)

    def client_disconnected(self, client: Client) -> None:
        """A connection ended; what is still open on it has no other end."""
        if self.open:
            for flow in [flow for flow in self.open.values() if flow.client_conn.id == client.id]:
                self._finish(flow, aborted=True)

    # -- from a flow to a capture -------------------------------------------------------------

    def flush(self) -> None:
        """Hand over what is still under way, as aborted: the proxy is stopping."""
        for flow in list(self.open.values()):
            self._finish(flow, aborted=True)

    def _count(self, reason: str) -> None:
        self.lost[reason] += 1

    def _finish(self, flow: HTTPFlow, *, aborted: bool) -> None:
        if self.open.pop(flow.id, None) is None:
            return
        try:
            plan: Plan = flow.metadata[PLAN]
            if plan.pairs is not None:
                self._finish_pair(flow, plan, plan.pairs, aborted=aborted)
            elif flow.websocket is None:
                self.ended += 1
                self._http(flow, plan, aborted=aborted)
        except Exception:  # noqa: BLE001  the request must go on
            self._count(HOOK_FAILED)

    def _http(self, flow: HTTPFlow, plan: Plan, *, aborted: bool) -> None:
        response = plan.response
        if response is not None and response.failed is not None:
            self._count(response.failed)
            return
        came, marks = (response.chunks, response.marks) if response is not None else ([], [])
        body = flow.request.raw_content or b""
        self._hand_over(
            flow, plan, flow.id, flow.request.timestamp_start, plan.started, body, came, marks, aborted
        )

    def _pair(self, flow: HTTPFlow, plan: Plan, content: bytes, *, from_client: bool) -> None:
        pairs = plan.pairs
        if pairs is None:
            pairs = plan.pairs = Pairs()
        if not from_client:
            if pairs.answer(content):
                self._finish_pair(flow, plan, pairs, aborted=False)
        elif pairs.opens(content):
            self._finish_pair(flow, plan, pairs, aborted=True)
            pairs.begin(content)

    def _finish_pair(self, flow: HTTPFlow, plan: Plan, pairs: Pairs, *, aborted: bool) -> None:
        request, response = pairs.request, pairs.response
        if request is None or response is None:
            return
        pairs.request = pairs.response = None
        self.ended += 1
        if response.failed is not None:
            self._count(response.failed)
        else:
            name = f"{flow.id}:{pairs.count}"
            self._hand_over(
                flow, plan, name, pairs.t, pairs.started, request, response.chunks, response.marks, aborted
            )

    def _hand_over(
        self,
        flow: HTTPFlow,
        plan: Plan,
        identity: str,
        t: float,
        started: float,
        body: bytes,
        came: Sequence[bytes],
        marks: Sequence[tuple[int, float]],
        aborted: bool,
    ) -> None:
        head, answer, websocket = flow.request, flow.response, plan.pairs is not None
        headers = _plain(head.headers)
        if plan.session is not None:
            headers[SESSION_HEADER] = plan.session
        capture = Capture(
            id=identity,
            t=t,
            method=_printable(head.method),
            path=_masked(_printable(head.path)),
            upstream=plan.upstream,
            headers=mask_headers(headers),
            body=b"",
            # A WebSocket's 101 says nothing of the requests inside it.
            status=None if answer is None else 200 if websocket else answer.status_code,
            response_headers=mask_headers(_plain(answer.headers)) if answer is not None else {},
            response_body=b"",
            timing=Timing(
                first_token_ms=marks[0][1] if marks else None,
                total_ms=(time.perf_counter() - started) * 1000,
            ),
            aborted=aborted,
            transport="websocket" if websocket else "http",
            account=account(headers, head.path, self.salt),
            agent=self._agent,
        )
        frame = Frame(capture, tuple(marks), unknown_api=plan.unknown_api, body=body, came=tuple(came))
        self._offer(frame)


def _plain(headers: Headers) -> dict[str, str]:
    """Names in lower case; fields that occur more than once joined as RFC 9110 allows."""
    plain: dict[str, str] = {}
    for name, value in headers.fields:
        key = name.decode("latin-1").lower()
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        plain[key] = f"{plain[key]}, {text}" if key in plain else text
    return plain


def _masked(path: str) -> str:
    """Without the keys in it. Nearly all paths are the same few, without a query."""
    return mask_path(path) if "?" in path else _masked_once(path)


@lru_cache(maxsize=256)
def _masked_once(path: str) -> str:
    return mask_path(path)


def _printable(text: str) -> str:
    """Text that every encoder takes: mitmproxy hands on undecodable bytes as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _client_left(flow: HTTPFlow) -> bool:
    return flow.error is not None and "client" in flow.error.msg.lower()
