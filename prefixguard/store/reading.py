"""Reads exchanges back, byte for byte, from one consistent state of the store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import msgspec
import zstandard
from sqlalchemy import Connection, Row, select

from prefixguard.exchange import Capture, Exchange, Rendered, Timing
from prefixguard.store import headers, schema
from prefixguard.store.errors import StoreDamagedError
from prefixguard.store.recipes import Part, Recipe, body_digest, tokens_of, unpack_numbers
from prefixguard.store.slices import SliceReader
from prefixguard.wire.streams import assemble

_REMEMBERED_RECIPES = 256
ORIGINAL_ENCODING = "x-original-content-encoding"


class Reader:
    """Reads through one connection; keeps what neighbouring exchanges share."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._slices = SliceReader(connection)
        self._numbers: OrderedDict[tuple[int, Part], tuple[int, ...]] = OrderedDict()
        self._headers: dict[int, bytes] = {}

    def captures(self, *where: Any) -> Iterator[Capture]:
        """The exchanges in raw form, in order of time."""
        for row in self._rows(*where):
            yield self.capture(row)

    def exchanges(self, *where: Any) -> Iterator[Exchange]:
        """The exchanges in order of time."""
        for row in self._rows(*where):
            yield self.exchange(row)

    def numbered(self, *where: Any) -> Iterator[tuple[int, Exchange]]:
        """The exchanges with their numbers, in order of time."""
        for row in self._rows(*where):
            yield row.number, self.exchange(row)

    def _rows(self, *where: Any) -> Iterator[Row[Any]]:
        columns = schema.exchange.c
        query = select(schema.exchange).where(*where).order_by(columns.started, columns.number)
        yield from self._connection.execute(query.execution_options(yield_per=256))

    def exchange(self, row: Row[Any]) -> Exchange:
        """One exchange, as the analysis wants it."""
        request_headers, _ = self._both_headers(row)
        body = self._response(row)
        response = assemble(body, row.response_type) if body else None
        extra = {"id": msgspec.json.encode(row.id)}
        if row.session is not None:
            extra["session"] = msgspec.json.encode(row.session)
        if row.recording != "full":
            extra["recording"] = msgspec.json.encode(row.recording)
        if row.agent is not None:
            extra["agent"] = msgspec.json.encode(row.agent)
        if row.account is not None:
            extra["account"] = msgspec.json.encode(row.account)
        return Exchange(
            t=row.started,
            path=row.path,
            request=self.body(row.number, Part.REQUEST),
            headers=request_headers,
            response=response,
            status=row.status,
            upstream=row.upstream,
            method=row.method,
            timing=Timing(row.first_token_ms, row.total_ms),
            aborted=row.aborted,
            transport=row.transport,
            rendered=self._rendered(row.number),
            extra=extra,
        )

    def capture(self, row: Row[Any]) -> Capture:
        """One exchange in its raw form, less its content encodings: see `Store.capture`."""
        request_headers, response_headers = self._both_headers(row)
        return Capture(
            id=row.id,
            t=row.started,
            method=row.method,
            path=row.path,
            upstream=row.upstream,
            headers=_without_encoding(request_headers, row.request_encoding),
            body=self.body(row.number, Part.REQUEST),
            status=row.status,
            response_headers=_without_encoding(response_headers, row.response_encoding),
            response_body=self._response(row),
            timing=Timing(row.first_token_ms, row.total_ms),
            aborted=row.aborted,
            transport=row.transport,
            account=row.account,
            agent=row.agent,
        )

    def body(self, exchange: int, part: Part) -> bytes:
        """The bytes of one part, rebuilt and checked. Raises StoreDamagedError."""
        recipe = self._recipe(exchange, part)
        body = self._slices.join(self._resolve(exchange, part, recipe))
        if body_digest(body) != recipe.digest:
            raise StoreDamagedError(
                f"exchange {exchange}: the {part.name.lower()} read is not the one written"
            )
        return body

    def numbers(self, exchange: int, part: Part) -> tuple[int, ...]:
        """The slice numbers of one part."""
        return self._resolve(exchange, part, self._recipe(exchange, part))

    def header_document(self, exchange: int) -> bytes:
        """Both sides' headers as JSON."""
        known = self._headers.get(exchange)
        if known is None:
            columns = schema.exchange.c
            row = self._connection.execute(
                select(columns.headers, columns.headers_base).where(columns.number == exchange)
            ).first()
            if row is None:
                raise StoreDamagedError(f"exchange {exchange} is missing, and others build on its headers")
            known = self._unpack_headers(exchange, row[0], row[1])
            if row[1] is None and len(self._headers) < _REMEMBERED_RECIPES:
                self._headers[exchange] = known
        return known

    def _recipe(self, exchange: int, part: Part) -> Recipe:
        columns = schema.recipe.c
        query = select(columns.base, columns.steps, columns.digest)
        row = self._connection.execute(
            query.where(columns.exchange == exchange, columns.part == int(part))
        ).first()
        if row is None:
            raise StoreDamagedError(f"exchange {exchange}: its {part.name.lower()} is missing")
        try:
            return Recipe(row[0], unpack_numbers(row[1]), bytes(row[2]))
        except (zstandard.ZstdError, ValueError, IndexError) as error:
            raise StoreDamagedError(
                f"exchange {exchange}: its {part.name.lower()} cannot be read: {error}"
            ) from error

    def _resolve(self, exchange: int, part: Part, recipe: Recipe) -> tuple[int, ...]:
        chain = [(exchange, recipe)]
        numbers: tuple[int, ...] = ()
        while (base := chain[-1][1].base) is not None:
            known = self._numbers.get((base, part))
            if known is not None:
                numbers = known
                break
            chain.append((base, self._recipe(base, part)))
        for _, step in reversed(chain):
            numbers = step.apply(numbers)
        self._numbers[exchange, part] = numbers
        if len(self._numbers) > _REMEMBERED_RECIPES:
            self._numbers.popitem(last=False)
        return numbers

    def _response(self, row: Row[Any]) -> bytes:
        return b"" if row.response_slice is None else self._slices.join([row.response_slice])

    def _rendered(self, exchange: int) -> Rendered | None:
        query = select(schema.rendered.c.engine).where(schema.rendered.c.exchange == exchange)
        engine = self._connection.execute(query).scalar_one_or_none()
        if engine is None:
            return None
        columns = schema.recipe.c
        parts = (
            self._connection.execute(select(columns.part).where(columns.exchange == exchange)).scalars().all()
        )
        reply = tokens_of(self.body(exchange, Part.REPLY)) if Part.REPLY in parts else None
        return Rendered(engine, tokens_of(self.body(exchange, Part.PROMPT)), reply)

    def _both_headers(self, row: Row[Any]) -> tuple[dict[str, str], dict[str, str]]:
        return headers.parse(self._unpack_headers(row.number, row.headers, row.headers_base))

    def _unpack_headers(self, exchange: int, packed: bytes, base: int | None) -> bytes:
        try:
            return headers.unpack(packed, None if base is None else self.header_document(base))
        except zstandard.ZstdError as error:
            raise StoreDamagedError(f"exchange {exchange}: its headers cannot be read: {error}") from error


def _without_encoding(found: dict[str, str], encoding: str | None) -> dict[str, str]:
    """The header that no longer holds is renamed, so that nobody decodes the body twice."""
    if encoding is None:
        return found
    return {ORIGINAL_ENCODING if name == "content-encoding" else name: value for name, value in found.items()}
