"""Listens at the HTTP clients that the SDKs send through: httpx, and httpx2 in newer ones.

A request is seen as it leaves the client and the reply as it comes back, so
that a test may put any transport, mock or network beneath it. Nothing is
changed on the way; what goes wrong here must not fail the test's request.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from time import perf_counter, time
from types import ModuleType
from typing import Any, Protocol

from prefixguard.testing.callstack import ORIGIN_DEPTH, Line

MODULES = ("httpx", "httpx2")
_ENDS = (
    b"[DONE]",
    b'"message_stop"',
    b'"response.completed"',
    b'"response.incomplete"',
    b'"response.failed"',
)


class Clock:
    """Seconds since the epoch that go on when a test freezes time."""

    # A class attribute, because tools that freeze time replace the names in modules.
    _elapsed = staticmethod(perf_counter)

    def __init__(self) -> None:
        self._base = time() - self._elapsed()

    def now(self) -> float:
        return self._base + self._elapsed()


class Call:
    """One request as a client sent it, and what came back."""

    def __init__(self, request: Any, body: bytes, lines: tuple[Line, ...], clock: Clock) -> None:
        url = request.url
        self.method: str = request.method
        self.path: str = url.raw_path.decode("ascii", "replace")
        self.upstream: str = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        self.body = body
        self.lines = lines
        self.status: int | None = None
        self.aborted = False
        self.first_ms: float | None = None
        self.total_ms: float | None = None
        self.t = clock.now()
        self._clock = clock
        self._response: Any = None
        self._chunks: list[bytes] = []
        self._plain: bytes | None = None

    def answered(self, response: Any) -> None:
        """The client has the reply, or the head of a reply that is still to be read."""
        self.status = response.status_code
        self._response = response
        try:
            self._plain = response.content
        except Exception:  # noqa: BLE001  each client has its own name for "not read yet"
            self.aborted = True  # until its end is seen
        else:
            self.total_ms = self._since()

    def failed(self) -> None:
        """No reply came."""
        self.total_ms = self._since()

    def chunk(self, data: bytes) -> None:
        """A piece of a stream passed by, as it was sent."""
        if self.first_ms is None:
            self.first_ms = self._since()
        self._chunks.append(data)

    def ended(self, *, whole: bool) -> None:
        """The stream was read to its end, or closed before it."""
        if self.total_ms is None:
            self.total_ms = self._since()
            # A client that saw the last event need not wait for the connection's end.
            self.aborted = not whole and not any(end in b"".join(self._chunks[-3:]) for end in _ENDS)

    @property
    def content_type(self) -> str:
        """What the reply says it is."""
        return str(self._response.headers.get("content-type", "")) if self._response is not None else ""

    @property
    def reply(self) -> bytes | None:
        """The reply's bytes with the content encoding taken off, as far as they came."""
        if self._plain is not None or not self._chunks:
            return self._plain
        raw = b"".join(self._chunks)
        encoding = self._response.headers.get("content-encoding")
        if not encoding:
            return raw
        try:
            again = type(self._response)(200, headers={"content-encoding": encoding}, content=raw)
            return bytes(again.content)
        except Exception:  # noqa: BLE001  a damaged or cut stream has no content
            return None

    def _since(self) -> float:
        return (self._clock.now() - self.t) * 1000


class Listener(Protocol):
    """Who wants to know of requests."""

    def sent(self, request: Any, body: bytes) -> Call | None:
        """A client is about to send this. None: not wanted."""


_listeners: list[Listener] = []
_patched: set[type] = set()
_ORIGINAL = "_prefixguard_original"
"""Attribute of our own functions: the client's function that they stand for."""
_inside: ContextVar[bool] = ContextVar("prefixguard_inside", default=False)
"""Set while a request is on its way through one of our functions, in case there are two on its way."""


def listen(listener: Listener) -> None:
    """Tells the listener of every request from now on."""
    _listeners.append(listener)
    if len(_listeners) == 1:
        for name in MODULES:
            if name in sys.modules:
                _patch(sys.modules[name])
        sys.meta_path.insert(0, _watch)
        if hasattr(sys, "set_coroutine_origin_tracking_depth"):
            _Tracking.before = sys.get_coroutine_origin_tracking_depth()
            sys.set_coroutine_origin_tracking_depth(max(_Tracking.before, ORIGIN_DEPTH))


def stop(listener: Listener) -> None:
    """Tells the listener nothing more. The clients are as they were when the last one stops."""
    if listener not in _listeners:
        return
    _listeners.remove(listener)
    if _listeners:
        return
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(_watch)
    if hasattr(sys, "set_coroutine_origin_tracking_depth"):
        sys.set_coroutine_origin_tracking_depth(_Tracking.before)
    for client in _patched:
        # Somebody else may have put their own function over ours; it stays, and ours lets everything pass.
        original = getattr(client.__dict__.get("send"), _ORIGINAL, None)
        if original is not None:
            client.send = original  # type: ignore[attr-defined]
    _patched.clear()


class _Tracking:
    before = 0


class _Watch(importlib.abc.MetaPathFinder):
    """Patches a client's module when it is imported while somebody listens."""

    _busy = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in MODULES or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if _listeners:
                _patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_watch = _Watch()


def _patch(module: ModuleType) -> None:
    for name, make in (("Client", _sync_send), ("AsyncClient", _async_send)):
        client = getattr(module, name, None)
        if client is None or client in _patched:
            continue
        _patched.add(client)
        if not hasattr(client.send, _ORIGINAL):
            ours = make(module, client.send)
            setattr(ours, _ORIGINAL, client.send)
            client.send = ours


def _sync_send(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    tee = _sync_tee(module)

    def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        calls = _begin(request)
        if not calls:
            return original(self, request, *args, **kwargs)
        token = _inside.set(True)
        try:
            response = original(self, request, *args, **kwargs)
        except BaseException:
            for call in calls:
                call.failed()
            raise
        finally:
            _inside.reset(token)
        _answered(calls, response, tee)
        return response

    return send


def _async_send(module: ModuleType, original: Callable[..., Any]) -> Callable[..., Any]:
    tee = _async_tee(module)

    async def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        calls = _begin(request)
        if not calls:
            return await original(self, request, *args, **kwargs)
        token = _inside.set(True)
        try:
            response = await original(self, request, *args, **kwargs)
        except BaseException:
            for call in calls:
                call.failed()
            raise
        finally:
            _inside.reset(token)
        _answered(calls, response, tee)
        return response

    return send


def _begin(request: Any) -> list[Call]:
    if not _listeners or _inside.get():
        return []
    try:
        body = bytes(request.content)
        heard = [listener.sent(request, body) for listener in _listeners]
        return [call for call in heard if call is not None]
    except Exception:  # noqa: BLE001  the request must go on; a body that is a stream is no model's prompt
        return []


def _answered(calls: list[Call], response: Any, tee: type) -> None:
    try:
        for call in calls:
            call.answered(response)
        if any(call.total_ms is None for call in calls):
            response.stream = tee(response.stream, calls)
    except Exception:  # noqa: BLE001  the reply must go on
        return


def _sync_tee(module: ModuleType) -> type:
    base: Any = module.SyncByteStream

    class Tee(base):  # type: ignore[misc]
        """A stream that passes everything on and lets the calls see it."""

        def __init__(self, inner: Any, calls: list[Call]) -> None:
            self._inner, self._calls = inner, calls

        def __iter__(self) -> Iterator[bytes]:
            for data in self._inner:
                for call in self._calls:
                    call.chunk(data)
                yield data
            for call in self._calls:
                call.ended(whole=True)

        def close(self) -> None:
            for call in self._calls:
                call.ended(whole=False)
            self._inner.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    return Tee


def _async_tee(module: ModuleType) -> type:
    base: Any = module.AsyncByteStream

    class Tee(base):  # type: ignore[misc]
        """A stream that passes everything on and lets the calls see it."""

        def __init__(self, inner: Any, calls: list[Call]) -> None:
            self._inner, self._calls = inner, calls

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for data in self._inner:
                for call in self._calls:
                    call.chunk(data)
                yield data
            for call in self._calls:
                call.ended(whole=True)

        async def aclose(self) -> None:
            for call in self._calls:
                call.ended(whole=False)
            await self._inner.aclose()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    return Tee
