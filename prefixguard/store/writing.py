"""Writes exchanges: each as the difference to an earlier one of its session.

Holds in memory the last bodies of the sessions that are being recorded, so that
a turn costs what is new in it. All methods run inside a transaction that holds
the write lock.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import Connection, func, insert, select, update

from prefixguard.exchange import Rendered, SessionKey
from prefixguard.store import headers, schema
from prefixguard.store.recipes import (
    MAX_DEPTH,
    TOKENS_BYTES,
    Part,
    body_digest,
    pack_numbers,
    steps,
    token_cuts,
)
from prefixguard.store.recording import Kept
from prefixguard.store.slices import SliceWriter
from prefixguard.store.slicing import Copy, Cuts, cut, cut_like, shared_bytes, shared_prefix

_BASES_A_SESSION = 4
"""How many earlier bodies of a session are looked at: its sub-agents interleave."""
_REMEMBERED_BYTES = 64 * 1024 * 1024
_SCOPES = 1024
# Statements that every turn needs are built once.
_STATE = select(
    select(schema.meta.c.value).where(schema.meta.c.name == "deletions").scalar_subquery(),
    select(func.max(schema.exchange.c.number)).scalar_subquery(),
    select(func.max(schema.slice_.c.number)).scalar_subquery(),
)
_ADD_EXCHANGE = insert(schema.exchange)
_ADD_RECIPE = insert(schema.recipe)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,79}")


@dataclass(slots=True, eq=False)
class _Body:
    """A body that was written lately, as a base for the next ones."""

    exchange: int
    depth: int
    numbers: tuple[int, ...]
    body: bytes
    cuts: Cuts


class Writer:
    """Turns what is kept into rows."""

    def __init__(self) -> None:
        self._slices = SliceWriter()
        self._recent: OrderedDict[tuple[str, Part], list[_Body]] = OrderedDict()
        self._recent_bytes = 0
        self._headers: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self._sessions: dict[str, bool] = {}
        self._deletions = ""
        self._next = 0
        self._exchanges: list[dict[str, object]] = []
        self._recipes: list[dict[str, object]] = []

    def begin(self, connection: Connection) -> None:
        """Starts a transaction: numbers go on where the store's end is now."""
        deletions, exchanges, slices = connection.execute(_STATE).one()
        if deletions != self._deletions:
            self.forget()
            self._deletions = deletions
        self._next = (exchanges or 0) + 1
        self._slices.begin((slices or 0) + 1)

    def forget(self) -> None:
        """Drops what is remembered: after a transaction that failed, or when exchanges were deleted."""
        self._slices.forget()
        self._recent.clear()
        self._recent_bytes = 0
        self._headers.clear()
        self._sessions.clear()
        self._exchanges = []
        self._recipes = []

    def flush(self, connection: Connection) -> None:
        """Writes the collected rows."""
        self._slices.flush(connection)
        if self._exchanges:
            connection.execute(_ADD_EXCHANGE, self._exchanges)
            self._exchanges = []
        if self._recipes:
            connection.execute(_ADD_RECIPE, self._recipes)
            self._recipes = []

    def exchange(self, connection: Connection, kept: Kept) -> None:
        """Adds one exchange."""
        capture = kept.capture
        number = self._next
        self._next += 1
        session = self.session(connection, kept.session, capture.agent)
        scope = session or f"{capture.upstream} {capture.account}"
        packed, headers_base = self._pack_headers(scope, number, headers.document(capture))
        response = self._body(connection, scope, number, kept)
        self._exchanges.append(
            {
                "number": number,
                "id": capture.id,
                "session": session,
                "started": capture.t,
                "method": capture.method,
                "path": capture.path,
                "upstream": capture.upstream,
                "status": capture.status,
                "transport": capture.transport,
                "aborted": capture.aborted,
                "account": capture.account,
                "agent": capture.agent,
                "first_token_ms": capture.timing.first_token_ms,
                "total_ms": capture.timing.total_ms,
                "recording": kept.recording,
                "request_encoding": kept.request_encoding,
                "response_encoding": kept.response_encoding,
                "response_type": kept.response_type,
                "headers": packed,
                "headers_base": headers_base,
                "response_slice": response,
            }
        )

    def rendered(self, connection: Connection, number: int, scope: str, rendered: Rendered) -> None:
        """Adds the token ids of an exchange. The first ones stay: later exchanges may build on them."""
        query = select(schema.rendered.c.exchange).where(schema.rendered.c.exchange == number)
        if connection.execute(query).first() is not None:
            return
        connection.execute(insert(schema.rendered), {"exchange": number, "engine": rendered.engine})
        self._tokens(connection, scope, number, Part.PROMPT, rendered.prompt)
        if rendered.reply is not None:
            self._tokens(connection, scope, number, Part.REPLY, rendered.reply)

    def session(self, connection: Connection, key: SessionKey | str | None, agent: str | None) -> str | None:
        """The id of the session that `key` names, made when it is new; a string is an id found by content."""
        if key is None:
            return None
        if isinstance(key, str):
            key = SessionKey("content", "", key)
        name = session_name(key)
        has_agent = self._sessions.get(name)
        if has_agent is None:
            known = connection.execute(
                select(schema.session.c.agent).where(schema.session.c.id == name)
            ).first()
            if known is None:
                row = {
                    "id": name,
                    "key_kind": key.kind,
                    "key_name": key.name,
                    "key_value": key.value,
                    "agent": agent,
                }
                connection.execute(insert(schema.session), row)
            has_agent = (agent if known is None else known[0]) is not None
        if not has_agent and agent is not None:
            connection.execute(update(schema.session).where(schema.session.c.id == name).values(agent=agent))
            has_agent = True
        self._sessions[name] = has_agent
        return name

    def _pack_headers(self, scope: str, number: int, document: bytes) -> tuple[bytes, int | None]:
        # A session's headers are nearly the same each time: the first ones are the others' dictionary.
        base = self._headers.get(scope)
        if base is None:
            self._headers[scope] = (number, document)
            if len(self._headers) > _SCOPES:
                self._headers.popitem(last=False)
            return headers.pack(document), None
        return headers.pack(document, base[1]), base[0]

    def _body(self, connection: Connection, scope: str, number: int, kept: Kept) -> int | None:
        """Adds the recipe of the request; the number of the response's slice, if there is a response."""
        body = kept.body
        base = self._nearest(scope, Part.REQUEST, body)
        copies: list[Copy] = []
        if base is None:
            cuts = cut(body)
        else:
            cuts, copies = cut_like(body, base.body, base.cuts)
        starts = [0, *cuts.ends]
        numbers = [-1] * len(cuts.ends)
        if base is not None:
            for copy in copies:
                numbers[copy.index : copy.index + copy.count] = base.numbers[
                    copy.base : copy.base + copy.count
                ]
        fresh = [index for index, known in enumerate(numbers) if known < 0]
        contents = [body[starts[index] : starts[index + 1]] for index in fresh]
        if kept.response_body:
            contents.append(kept.response_body)
        found = self._slices.numbers(connection, contents)
        for index, known in zip(fresh, found, strict=False):
            numbers[index] = known
        self._recipe(scope, Part.REQUEST, base, copies, _Body(number, 0, tuple(numbers), body, cuts))
        return found[-1] if kept.response_body else None

    def _tokens(
        self, connection: Connection, scope: str, number: int, part: Part, tokens: array[int]
    ) -> None:
        contents = list(token_cuts(tokens))
        raw = b"".join(contents)
        base = self._nearest(scope, part, raw)
        same = 0 if base is None else shared_prefix(base.body, raw) // TOKENS_BYTES
        numbers = (*(base.numbers[:same] if base else ()), *self._slices.numbers(connection, contents[same:]))
        copies = [Copy(0, 0, same)] if same else []
        ends = [min(end + TOKENS_BYTES, len(raw)) for end in range(0, len(raw), TOKENS_BYTES)]
        cuts = Cuts(ends, [b""] * len(ends), [False] * len(ends))
        self._recipe(scope, part, base, copies, _Body(number, 0, numbers, raw, cuts))

    def _recipe(self, scope: str, part: Part, base: _Body | None, copies: list[Copy], made: _Body) -> None:
        recent = self._recent.setdefault((scope, part), [])
        if base is not None and 2 * sum(copy.count for copy in copies) > len(base.numbers):
            # The same thread has moved on: its next turn will build on this one.
            recent.remove(base)
            self._recent_bytes -= len(base.body)
        if base is None or base.depth + 1 >= MAX_DEPTH or not copies:
            base, copies = None, []
        made.depth = base.depth + 1 if base else 0
        self._recipes.append(
            {
                "exchange": made.exchange,
                "part": int(part),
                "base": base.exchange if base else None,
                "steps": pack_numbers(steps(made.numbers, copies)),
                "digest": body_digest(made.body),
            }
        )
        self._remember(scope, part, made)

    def _nearest(self, scope: str, part: Part, body: bytes) -> _Body | None:
        """The remembered body of this scope that resembles `body` most."""
        candidates = self._recent.get((scope, part))
        if not candidates:
            return None
        shared, nearest = max(
            ((shared_prefix(candidate.body, body), candidate) for candidate in candidates),
            key=lambda found: found[0],
        )
        if len(candidates) == 1 or 2 * shared > len(nearest.body):
            return nearest
        # Something changes near the start each time: the threads are told apart by what follows.
        return max(candidates, key=lambda candidate: shared_bytes(body, candidate.body, candidate.cuts))

    def _remember(self, scope: str, part: Part, made: _Body) -> None:
        recent = self._recent[scope, part]
        self._recent.move_to_end((scope, part))
        recent.insert(0, made)
        self._recent_bytes += len(made.body)
        while len(recent) > _BASES_A_SESSION:
            self._recent_bytes -= len(recent.pop().body)
        while self._recent_bytes > _REMEMBERED_BYTES and len(self._recent) > 1:
            _, dropped = self._recent.popitem(last=False)
            self._recent_bytes -= sum(len(body.body) for body in dropped)


def session_name(key: SessionKey) -> str:
    """The id of a session: the key's own value where it can stand in a command line, else a digest of it."""
    if _PLAIN.fullmatch(key.value):
        return key.value
    return blake2b(key.value.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
