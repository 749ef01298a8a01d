"""Turns exchanges into prompts and replies; remembers what each raw element became.

Agents send their whole history each turn. The decoder splits a body into the
raw bytes of its elements and reads only those it has not seen, so that a turn
costs a scan of its bytes and the reading of what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace
from xxhash import xxh3_128_digest

from prefixguard.exchange import Exchange
from prefixguard.prompt import TOOLS_FIRST, Mark, Parameter, Prompt, Segment
from prefixguard.wire import blocks
from prefixguard.wire.blocks import Body
from prefixguard.wire.bookmarks import Bookmarks, Resumed, Told
from prefixguard.wire.detect import detect, is_side_traffic, model_in_path
from prefixguard.wire.format import ElementList, Format, Segments

type _Entry = tuple[str, Segment]
type _Entries = list[_Entry]

_MODEL = ("model",)
_SHARED_GROUPS = 4096
_WHOLE_LISTS = 256


class UnreadableError(ValueError):
    """A body that is no prompt of a known API; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An exchange as its format reads it. body: the request's fields; response: parsed, or None."""

    format: Format
    body: Body
    prompt: Prompt
    reply: Segments
    response: Any


class _Element:
    """What a raw element became: segments (or a mark), and its entries at the place where it last stood."""

    __slots__ = ("base", "became", "entries")

    def __init__(self, became: Segments | Mark) -> None:
        self.became = became
        self.base = ""
        self.entries: tuple[_Entry, ...] = ()

    def at(self, base: str, segments: Segments) -> tuple[_Entry, ...]:
        """(base pointer, segment) for each segment. A history that grows asks for the same place again."""
        if self.base != base:
            self.base = base
            self.entries = tuple([(base, segment) for segment in segments])
        return self.entries


class _Latest:
    """The segments read last, by identity: a text that comes again (a reply and its echo, a message
    that has lost its breakpoint) is held once."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._segments: dict[bytes, Segment] = {}

    def share(self, segment: Segment) -> Segment:
        """The segment, with the texts and digests of an equal one that was read before."""
        known = self._segments.get(segment.exact)
        if known is None:
            self._segments[segment.exact] = segment
            if len(self._segments) > self._most:
                del self._segments[next(iter(self._segments))]
            return segment
        return replace(
            segment, text=known.text, exact=known.exact, alike=known.alike, loose=known.loose, json=known.json
        )


def _parameters(exchange: Exchange, body: Body, names: tuple[str, ...]) -> tuple[Parameter, ...]:
    """The named parameters; the model stands in the path for some APIs."""
    found = body.parameters(names)
    model = model_in_path(exchange.path) if "model" not in body.fields else None
    return found if model is None else (Parameter("model", "", f'"{model}"'), *found)


class Decoder:
    """Reads bodies. One per analysis: it keeps the segments of the elements it has seen.

    parameters: names of the parameters that may enter a cache key, by format
    name ("*" for all). capacity: how many raw bytes' worth of elements to
    remember; those that were not met again for long are forgotten.
    """

    def __init__(self, parameters: Mapping[str, tuple[str, ...]], *, capacity: int = 32 * 2**20) -> None:
        self._parameters = parameters
        self._capacity = capacity
        self._size = 0
        self._seen: dict[Callable[[Any], Any], dict[bytes, _Element]] = {}
        self._before: dict[Callable[[Any], Any], dict[bytes, _Element]] = {}
        self._settings: dict[tuple[Parameter, ...], tuple[Parameter, ...]] = {}
        self._groups: dict[tuple[_Entry, ...], tuple[_Entry, ...]] = {}
        self._whole: dict[tuple[ElementList, str, bytes], tuple[_Entry, ...]] = {}
        self._bases: dict[str, list[str]] = {}
        self._bookmarks = Bookmarks()
        self._latest = _Latest()

    def _resumed(self, exchange: Exchange) -> tuple[Format, Resumed] | None:
        """A body that begins as an earlier one did, and speaks the same format."""
        resumed = None if is_side_traffic(exchange.path) else self._bookmarks.resume(exchange.request)
        if resumed is None:
            return None
        format_ = detect(exchange.path, resumed.body.fields.keys())
        return (format_, resumed) if format_ is not None and format_.name == resumed.told.format else None

    def _open(self, exchange: Exchange) -> tuple[Format, Body]:
        if is_side_traffic(exchange.path):
            raise UnreadableError("a side request that completes no prompt")
        try:
            body = Body(exchange.request)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableError(f"the request is no JSON object: {error}") from error
        format_ = detect(exchange.path, body.fields.keys())
        if format_ is None:
            raise UnreadableError(f"unknown API: {exchange.path}")
        return format_, body

    def read(self, exchange: Exchange) -> Reading:
        """Request and response of an exchange, each scanned once. Raises UnreadableError."""
        format_, body, prompt = self._read(exchange)
        response = _parsed(exchange.response)
        reply = tuple([self._latest.share(segment) for segment in _reply(format_, response)])
        return Reading(format_, body, prompt, reply, response)

    def prompt(self, exchange: Exchange) -> Prompt:
        """The prompt of an exchange, tools first. Raises UnreadableError."""
        return self._read(exchange)[2]

    def reply(self, exchange: Exchange) -> Segments:
        """The segments of the reply, as a client would send them back; empty when there is none."""
        try:
            format_, _ = self._open(exchange)
        except UnreadableError:
            return ()
        return _reply(format_, _parsed(exchange.response))

    def _read(self, exchange: Exchange) -> tuple[Format, Body, Prompt]:
        known = self._resumed(exchange)
        if known is None:
            format_, body = self._open(exchange)
            resumed = None
        else:
            format_, resumed = known
            body = resumed.body
        try:
            return format_, body, self._prompt(exchange, format_, body, resumed)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableError(f"malformed {format_.name} request: {error}") from error

    def _prompt(self, exchange: Exchange, format_: Format, body: Body, resumed: Resumed | None) -> Prompt:
        tools = self._lists(body, format_.tools)
        head = self._lists(body, format_.head)
        history, told = self._history(exchange, format_, body, resumed)
        leading = 0
        if format_.leading_head:
            leading = next((i for i, (_, s) in enumerate(history) if s.role != "system"), len(history))
            head, history = head + history[:leading], history[leading:]
        names = _MODEL + self._parameters.get(format_.name, ()) + self._parameters.get("*", ())
        link = format_.link(body) if format_.link else None
        prompt = Prompt(
            api=format_.name,
            model=body.text("model") or model_in_path(exchange.path),
            tools=self._shared(tools),
            head=self._shared(head),
            history=tuple(history),
            order=TOOLS_FIRST,
            parameters=self._same_parameters(_parameters(exchange, body, names)),
            link=link,
            automatic_mark=format_.automatic_mark(body) if format_.automatic_mark else None,
            stream=body.get("stream") is True or "stream" in exchange.path.lower(),
            raw=format_.raw,
        )
        if resumed is not None and resumed.told.prompt is not None and resumed.place.entries > leading:
            prompt.continues(resumed.told.prompt, resumed.place.entries - leading)
        if told is not None:
            told.prompt = prompt
        return prompt

    def _history(
        self, exchange: Exchange, format_: Format, body: Body, resumed: Resumed | None
    ) -> tuple[_Entries, Told | None]:
        """The history's entries; of a resumed body, those known and those of the elements behind them."""
        (element_list,) = format_.history
        elements = body.elements(element_list.name) if element_list.name in body.fields else None
        if elements is None:
            return self._lists(body, format_.history), None
        found: _Entries = []
        first = 0
        if resumed is not None:
            found = list(resumed.told.entries[: resumed.place.entries])
            first = resumed.place.elements
        sizes = self._elements(found, elements, f"/{element_list.name}", element_list, first)
        told = self._bookmarks.keep(
            exchange.request, body, format_.name, element_list.name, tuple(found), elements, sizes, resumed
        )
        return found, told

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

    def _list(self, body: Body, name: str, pointer: str, element_list: ElementList) -> Sequence[_Entry]:
        """The entries of a list; one that comes again as it was is not split into its elements."""
        raw = body.fields.get(name)
        if raw is None:
            return ()
        key = (element_list, pointer, xxh3_128_digest(memoryview(raw)))
        known = self._whole.get(key)
        if known is not None:
            return known
        found: _Entries = []
        elements = body.elements(name)
        if elements is None:
            found = self._single(body.get(name), pointer, element_list)
        else:
            self._elements(found, elements, pointer, element_list)
        if len(self._whole) >= _WHOLE_LISTS:
            self._whole.clear()
        self._whole[key] = tuple(found)
        return found

    def _elements(
        self, found: _Entries, elements: list[msgspec.Raw], pointer: str, element_list: ElementList,
        first: int = 0,
    ) -> list[int]:  # fmt: skip
        """Appends the entries of elements, which are numbered from `first`. Returns how many each became."""
        read = element_list.read
        seen, before = self._seen.setdefault(read, {}), self._before.get(read, {})
        bases = self._pointers(pointer, first + len(elements))
        sizes = []
        for i, raw in enumerate(elements, start=first):
            view = memoryview(raw)
            key = xxh3_128_digest(view)
            element = seen.get(key)
            if element is None and (element := before.pop(key, None)) is not None:
                seen[key] = element
                self._size += view.nbytes
            if element is None:
                read_now = read(blocks.decode(raw))
                if not isinstance(read_now, Mark):
                    read_now = tuple([self._latest.share(segment) for segment in read_now])
                element = seen[key] = _Element(read_now)
                self._size += view.nbytes
            became = element.became
            if isinstance(became, Mark):
                if found:
                    found[-1] = (found[-1][0], replace(found[-1][1], mark=became))
                sizes.append(0)
                continue
            found += element.at(bases[i], became)
            sizes.append(len(became))
        if self._size > self._capacity // 2:
            self._before, self._seen, self._size = self._seen, {}, 0
        return sizes

    def _pointers(self, pointer: str, count: int) -> list[str]:
        """The pointers of a list's elements, at least `count`; made once and shared by all prompts."""
        bases = self._bases.setdefault(pointer, [])
        bases += [f"{pointer}/{i}" for i in range(len(bases), count)]
        return bases

    def _shared(self, entries: _Entries) -> tuple[_Entry, ...]:
        """The group as a tuple; turns with the same tools and head share one."""
        group = tuple(entries)
        if len(self._groups) > _SHARED_GROUPS:
            self._groups.clear()
        return self._groups.setdefault(group, group)

    def _single(self, value: Any, pointer: str, element_list: ElementList) -> _Entries:
        """A string or an object in place of the list."""
        if isinstance(value, str) and element_list.text is not None:
            return [(pointer, segment) for segment in element_list.text(value)]
        if isinstance(value, dict):
            segments = element_list.read(value)
            return [] if isinstance(segments, Mark) else [(pointer, segment) for segment in segments]
        return []

    def _same_parameters(self, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        """The parameters, one copy for all turns that send the same."""
        if len(self._settings) > _SHARED_GROUPS:
            self._settings.clear()
        return self._settings.setdefault(parameters, parameters)


def _parsed(response: bytes | None) -> Any:
    """The response as plain objects; None when there is none, or none that can be read."""
    if response is None:
        return None
    try:
        return blocks.decode(response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _reply(format_: Format, response: Any) -> Segments:
    try:
        return format_.reply(response)
    except (msgspec.EncodeError, UnicodeEncodeError, RecursionError, ValueError, TypeError):
        return ()
