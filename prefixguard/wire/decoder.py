"""Turns exchanges into prompts and replies; remembers what each raw element became.

Agents send their whole history each turn. The decoder splits a body into the
raw bytes of its elements and reads only those it has not seen, so that a turn
costs a scan of its bytes and the reading of what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
from xxhash import xxh3_128_digest

from prefixguard.exchange import Exchange
from prefixguard.prompt import TOOLS_FIRST, Mark, Prompt, Segment
from prefixguard.wire import blocks
from prefixguard.wire.blocks import Body
from prefixguard.wire.detect import detect, is_side_traffic, model_in_path
from prefixguard.wire.format import ElementList, Format, Segments

type _Entries = list[tuple[str, Segment]]

_MODEL = ("model",)


class UnreadableError(ValueError):
    """A body that is no prompt of a known API; the message says why."""


class Decoder:
    """Reads bodies. One per analysis: it keeps the segments of the elements it has seen.

    parameters: names of the parameters that may enter a cache key, by format
    name ("*" for all). capacity: how many raw bytes' worth of elements to
    remember; the older half is forgotten beyond it.
    """

    def __init__(self, parameters: Mapping[str, tuple[str, ...]], *, capacity: int = 256 * 2**20) -> None:
        self._parameters = parameters
        self._capacity = capacity
        self._size = 0
        self._seen: dict[tuple[Callable[[Any], Any], bytes], Segments | Mark] = {}

    def format(self, exchange: Exchange) -> Format:
        """The exchange's format. Raises UnreadableError."""
        return self._open(exchange)[0]

    def _open(self, exchange: Exchange) -> tuple[Format, Body]:
        if is_side_traffic(exchange.path):
            raise UnreadableError("a side request that completes no prompt")
        try:
            body = Body(exchange.request)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableError(f"the request is no JSON object: {error}") from error
        format_ = detect(exchange.path, body.fields.keys())
        if format_ is None:
            raise UnreadableError(f"unknown API: {exchange.path}")
        return format_, body

    def prompt(self, exchange: Exchange) -> Prompt:
        """The prompt of an exchange, tools first. Raises UnreadableError."""
        format_, body = self._open(exchange)
        try:
            return self._prompt(exchange, format_, body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableError(f"malformed {format_.name} request: {error}") from error

    def _prompt(self, exchange: Exchange, format_: Format, body: Body) -> Prompt:
        tools = self._lists(body, format_.tools)
        head = self._lists(body, format_.head)
        history = self._lists(body, format_.history)
        if format_.leading_head:
            n = next((i for i, (_, s) in enumerate(history) if s.role != "system"), len(history))
            head, history = head + history[:n], history[n:]
        names = _MODEL + self._parameters.get(format_.name, ()) + self._parameters.get("*", ())
        link = format_.link(body) if format_.link else None
        return Prompt(
            api=format_.name,
            model=body.text("model") or model_in_path(exchange.path),
            tools=tuple(tools),
            head=tuple(head),
            history=tuple(history),
            order=TOOLS_FIRST,
            parameters=body.parameters(names),
            link=link,
            automatic_mark=format_.automatic_mark(body) if format_.automatic_mark else None,
            stream=body.get("stream") is True or "stream" in exchange.path.lower(),
            raw=format_.raw,
        )

    def _lists(self, body: Body, lists: tuple[ElementList, ...]) -> _Entries:
        found: _Entries = []
        for element_list in lists:
            top, _, inner = element_list.name.partition(".")
            if top not in body.fields:
                continue
            if inner:
                nested = Body(bytes(body.fields[top]))
                found += self._list(nested, inner, f"/{top}/{inner}", element_list)
            else:
                found += self._list(body, top, f"/{top}", element_list)
        return found

    def _list(self, body: Body, name: str, pointer: str, element_list: ElementList) -> _Entries:
        elements = body.elements(name)
        if elements is None:
            return self._single(body.get(name), pointer, element_list)
        found: _Entries = []
        for i, raw in enumerate(elements):
            segments = self._read(element_list.read, raw)
            if isinstance(segments, Mark):
                if found:
                    found[-1] = (found[-1][0], replace(found[-1][1], mark=segments))
                continue
            base = f"{pointer}/{i}"
            for segment in segments:
                found.append((base, segment))
        return found

    def _single(self, value: Any, pointer: str, element_list: ElementList) -> _Entries:
        """A string or an object in place of the list."""
        if isinstance(value, str) and element_list.text is not None:
            return [(pointer, segment) for segment in element_list.text(value)]
        if isinstance(value, dict):
            segments = element_list.read(value)
            return [] if isinstance(segments, Mark) else [(pointer, segment) for segment in segments]
        return []

    def _read(self, read: Callable[[Any], Segments | Mark], raw: msgspec.Raw) -> Segments | Mark:
        view = memoryview(raw)
        key = (read, xxh3_128_digest(view))
        segments = self._seen.get(key)
        if segments is None:
            segments = self._seen[key] = read(blocks.decode(raw))
            self._size += view.nbytes
            if self._size > self._capacity:
                self._forget()
        return segments

    def _forget(self) -> None:
        keep = list(self._seen.items())[len(self._seen) // 2 :]
        self._seen = dict(keep)
        self._size //= 2

    def reply(self, exchange: Exchange) -> Segments:
        """The segments of the reply, as a client would send them back; empty when there is none."""
        if exchange.response is None:
            return ()
        try:
            format_, _ = self._open(exchange)
            return format_.reply(blocks.decode(exchange.response))
        except (UnreadableError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            return ()
