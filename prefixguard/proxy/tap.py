"""The addon that copies: an exchange's bytes, times and masked headers become a capture.

It runs in the path of the agent's requests, so it only copies references,
masks, and hands the capture to the link. An exception in here is counted and
swallowed; the request goes on.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from prefixguard.exchange import Capture, Timing
from prefixguard.proxy.account import account
from prefixguard.proxy.frames import Frame
from prefixguard.secrets import mask_headers, mask_path

if TYPE_CHECKING:
    from mitmproxy.http import Headers, HTTPFlow

SESSION_HEADER: Final = "x-prefixguard-session"
PLAN: Final = "prefixguard"
"""Key of `flow.metadata` under which routing leaves a `Plan` for the tap."""
HOOK_FAILED: Final = "an error in the recording hooks"
TOO_LARGE: Final = "the response is too large to record"
MAX_RESPONSE_BYTES: Final = 128 * 2**20
_MARKS: Final = 64

_PAIR_OPENS = re.compile(rb'"type"\s*:\s*"response\.(create|append)"')
_PAIR_CLOSES = re.compile(rb'"type"\s*:\s*"(response\.(completed|failed|incomplete|done)|error)"')
_HEAD = 4096
"""How far into a WebSocket message its type is looked for."""


class Plan:
    """What routing decided about one flow, and what the tap has of it so far."""

    __slots__ = ("pairs", "session", "started", "tap", "unknown_api", "upstream")

    def __init__(self, upstream: str, *, session: str | None, unknown_api: bool) -> None:
        self.upstream = upstream
        self.session = session
        self.unknown_api = unknown_api
        self.started = 0.0
        self.tap: StreamTap | None = None
        self.pairs: PairTap | None = None


class StreamTap:
    """Sees every chunk of a response as it passes. Returns each object it was given, whatever happens."""

    __slots__ = ("chunks", "failed", "marks", "on_failure", "size", "started")

    def __init__(self, started: float, on_failure: Callable[[str], None]) -> None:
        self.started = started
        self.on_failure = on_failure
        self.chunks: list[bytes] = []
        self.marks: list[tuple[int, float]] = []
        self.size = 0
        self.failed = False

    def __call__(self, data: bytes) -> bytes:
        if data and not self.failed:
            try:
                self._keep(data)
            except Exception:  # noqa: BLE001  the stream must go on
                self._give_up(HOOK_FAILED)
        return data

    def _keep(self, data: bytes) -> None:
        if self.size + len(data) > MAX_RESPONSE_BYTES:
            self._give_up(TOO_LARGE)
            return
        self.chunks.append(data)
        self.size += len(data)
        if len(self.marks) < _MARKS:
            self.marks.append((self.size, (time.perf_counter() - self.started) * 1000))

    def _give_up(self, reason: str) -> None:
        self.failed = True
        self.chunks.clear()
        self.on_failure(reason)


class PairTap:
    """One request and the messages that answer it, inside a WebSocket."""

    __slots__ = ("count", "request", "started", "t", "tap")

    def __init__(self) -> None:
        self.count = 0
        self.request: bytes | None = None
        self.started = self.t = 0.0
        self.tap: StreamTap | None = None


class Tap:
    """mitmproxy addon. offer: takes a frame and never blocks."""

    def __init__(self, offer: Callable[[Frame], bool], agent: str | None = None) -> None:
        self._offer = offer
        self.salt = os.urandom(16)
        """For account digests; the store's own as soon as the recorder has told it."""
        self._agent = agent
        self.lost: Counter[str] = Counter()
        self.ended = 0
        """Exchanges that came to an end, recorded or not."""
        self.open: dict[str, HTTPFlow] = {}
        """Flows under way, by id: what a proxy that stops must still hand over."""

    def request(self, flow: HTTPFlow) -> None:
        """The request is complete and about to be sent."""
        plan = flow.metadata.get(PLAN)
        if plan is not None and flow.response is None:
            plan.started = time.perf_counter()
            self.open[flow.id] = flow

    def responseheaders(self, flow: HTTPFlow) -> None:
        """The response begins: from here on it passes chunk by chunk."""
        response = flow.response
        if response is None or response.status_code == 101:
            return
        plan = flow.metadata.get(PLAN)
        if plan is None:
            response.stream = True
            return
        try:
            plan.tap = StreamTap(plan.started, self._count)
            response.stream = plan.tap
        except Exception:  # noqa: BLE001  the response must go on
            response.stream = True
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
                self._finish_pair(flow, plan, aborted=aborted)
            elif flow.websocket is None:
                self.ended += 1
                if plan.tap is None or not plan.tap.failed:
                    self._capture_http(flow, plan, aborted=aborted)
        except Exception:  # noqa: BLE001  the request must go on
            self._count(HOOK_FAILED)

    def _capture_http(self, flow: HTTPFlow, plan: Plan, *, aborted: bool) -> None:
        tap, response = plan.tap, flow.response
        body = b"".join(tap.chunks) if tap is not None else b""
        if not body and response is not None:
            body = response.raw_content or b""
        self._hand_over(
            flow,
            plan,
            capture_id=flow.id,
            t=flow.request.timestamp_start,
            request=flow.request.raw_content or b"",
            response=body,
            tap=tap,
            started=plan.started,
            aborted=aborted,
        )

    def _pair(self, flow: HTTPFlow, plan: Plan, content: bytes, *, from_client: bool) -> None:
        pairs = plan.pairs
        if pairs is None:
            pairs = plan.pairs = PairTap()
        if from_client:
            if _PAIR_OPENS.search(content, 0, _HEAD):
                self._finish_pair(flow, plan, aborted=True)
                pairs.request, pairs.t, pairs.started = content, time.time(), time.perf_counter()
                pairs.tap = StreamTap(pairs.started, self._count)
        elif pairs.tap is not None:
            pairs.tap(content + b"\n")
            if _PAIR_CLOSES.search(content, 0, _HEAD):
                self._finish_pair(flow, plan, aborted=False)

    def _finish_pair(self, flow: HTTPFlow, plan: Plan, *, aborted: bool) -> None:
        pairs = plan.pairs
        if pairs is None or pairs.request is None or pairs.tap is None:
            return
        request, tap = pairs.request, pairs.tap
        pairs.request = pairs.tap = None
        pairs.count += 1
        self.ended += 1
        if not tap.failed:
            self._hand_over(
                flow,
                plan,
                capture_id=f"{flow.id}:{pairs.count}",
                t=pairs.t,
                request=request,
                response=b"".join(tap.chunks),
                tap=tap,
                started=pairs.started,
                aborted=aborted,
            )

    def _hand_over(
        self,
        flow: HTTPFlow,
        plan: Plan,
        *,
        capture_id: str,
        t: float,
        request: bytes,
        response: bytes,
        tap: StreamTap | None,
        started: float,
        aborted: bool,
    ) -> None:
        head, answer, websocket = flow.request, flow.response, plan.pairs is not None
        headers = _plain(head.headers)
        if plan.session is not None:
            headers[SESSION_HEADER] = plan.session
        marks = tap.marks if tap is not None else []
        capture = Capture(
            id=capture_id,
            t=t,
            method=_printable(head.method),
            path=mask_path(_printable(head.path)),
            upstream=plan.upstream,
            headers=mask_headers(headers),
            body=request,
            # A WebSocket's 101 says nothing of the requests inside it.
            status=None if answer is None else 200 if websocket else answer.status_code,
            response_headers=mask_headers(_plain(answer.headers)) if answer is not None else {},
            response_body=response,
            timing=Timing(
                first_token_ms=marks[0][1] if marks else None,
                total_ms=(time.perf_counter() - started) * 1000,
            ),
            aborted=aborted,
            transport="websocket" if websocket else "http",
            account=account(headers, head.path, self.salt),
            agent=self._agent,
        )
        self._offer(Frame(capture, tuple(marks), unknown_api=plan.unknown_api))


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


def _printable(text: str) -> str:
    """Text that every encoder takes: mitmproxy hands on undecodable bytes as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _client_left(flow: HTTPFlow) -> bool:
    return flow.error is not None and "client" in flow.error.msg.lower()
