"""Asks a model server for JSON over HTTP. The one place in `engines` that opens connections."""

from __future__ import annotations

import http.client
import ipaddress
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from prefixguard.errors import ServerError

_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, and when it came: milliseconds from the request's last byte."""

    status: int
    content_type: str
    body: bytes
    first_ms: float
    total_ms: float


class JsonClient:
    """A server at a base URL. Loopback addresses are never sent through a proxy of the environment.

    url: with or without a trailing `/v1`. key: sent as a bearer token where the server wants one.
    timeout: seconds for each request.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0) -> None:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerError(f"{url!r} is no server address; write it as http://127.0.0.1:8080")
        self.url = urllib.parse.urlunsplit(
            (parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", "")
        )
        self._timeout = timeout
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        handlers = [urllib.request.ProxyHandler({})] if is_loopback(parts.hostname) else []
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> Any:
        """The JSON answer. Raises ServerError when there is none."""
        return self._ask(path, None)

    def post(self, path: str, body: bytes | dict[str, Any]) -> Any:
        """The JSON answer to a JSON body. Raises ServerError when there is none."""
        return self._ask(path, body if isinstance(body, bytes) else msgspec.json.encode(body))

    def text(self, path: str) -> str:
        """The answer as text. Raises ServerError when there is none."""
        with self._open(path, None, self._headers) as response:
            body: bytes = response.read()
            return body.decode("utf-8", "replace")

    def timed(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a JSON body, streamed or whole. Raises ServerError when it is an error."""
        begun = time.perf_counter()
        with self._open(path, body, {**self._headers, **(headers or {})}) as response:
            try:
                pieces: list[bytes] = []
                first: float | None = None
                while piece := response.read1():
                    pieces.append(piece)
                    if first is None and not _only_comments(piece):
                        first = time.perf_counter()
            except (OSError, http.client.HTTPException) as error:
                raise ServerError(f"{self.url}{path} broke off its answer: {error}") from error
            done = time.perf_counter()
            kind = response.headers.get("content-type") or ""
            first = done if first is None else first
            return Answer(
                response.status, kind, b"".join(pieces), (first - begun) * 1000, (done - begun) * 1000
            )

    def _ask(self, path: str, body: bytes | None) -> Any:
        with self._open(path, body, self._headers) as response:
            try:
                return msgspec.json.decode(response.read())
            except (OSError, http.client.HTTPException) as error:
                raise ServerError(f"{self.url} does not answer: {error}") from error
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ServerError(f"{self.url}{path} gave no JSON: is it a model server?") from error

    def _open(self, path: str, body: bytes | None, headers: Mapping[str, str]) -> Any:
        request = urllib.request.Request(self.url + path, body, dict(headers))  # noqa: S310 - the scheme was checked
        try:
            return self._opener.open(request, timeout=self._timeout)
        except urllib.error.HTTPError as error:
            raise ServerError(f"{self.url}{path} answered {error.code}: {_reason(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"{self.url} does not answer: {getattr(error, 'reason', error)}") from error


def _only_comments(piece: bytes) -> bool:
    """Whether a piece of a stream says nothing: servers send such lines while a long prompt is evaluated."""
    return all(not line.strip() or line.startswith(b":") for line in piece.splitlines())


def is_loopback(host: str) -> bool:
    """Whether a host is this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: urllib.error.HTTPError) -> str:
    """The server's own message, on one line."""
    try:
        text = error.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)
    try:
        inner = msgspec.json.decode(text)["error"]
        text = inner["message"] if isinstance(inner, dict) else str(inner)
    except (msgspec.DecodeError, KeyError, TypeError):
        pass
    text = " ".join(str(text).split()) or str(error.reason)
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 3] + "..."
