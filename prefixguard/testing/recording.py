"""What a test sent to models, recorded at the clients or handed in as bodies, and held to be stable."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from prefixguard.testing import clients
from prefixguard.testing.callstack import Line, user_lines

if TYPE_CHECKING:
    from prefixguard.exchange import Exchange
    from prefixguard.testing.bodies import Body
    from prefixguard.testing.stability import Limits
    from prefixguard.turn import Analysis

NOTHING = (
    "no request to a model was recorded: the code under test sent none, or it sent them through a client "
    "that is neither httpx nor httpx2; hand such bodies in with record()"
)


class Recording:
    """Records every call of an SDK that is made while it is entered, and the bodies that are handed in.

    root: files below it are named relative to it; the working folder by default.
    """

    def __init__(self, root: Path | None = None, limits: Limits | None = None) -> None:
        self.root = root or Path.cwd()
        self._limits = limits
        self._clock = clients.Clock()
        self._entries: list[clients.Call | Exchange] = []

    def __enter__(self) -> Self:
        clients.listen(self)
        return self

    def __exit__(self, *exception: object) -> None:
        clients.stop(self)

    def __len__(self) -> int:
        return len(self._entries)

    def sent(self, request: Any, body: bytes) -> clients.Call | None:
        """A client is about to send this; what is no prompt for a model is let pass."""
        if request.method != "POST" or not _is_prompt(request.url.path, body):
            return None
        call = clients.Call(request, body, user_lines(self.root), self._clock)
        self._entries.append(call)
        return call

    def record(
        self,
        body: Body,
        *,
        path: str | None = None,
        response: Body | None = None,
        upstream: str | None = None,
    ) -> None:
        """Takes a request body that was built and not sent.

        path: where it would have gone ("/v1/messages"); by its fields when
        None. response: what would have come back; without it, what the next
        body of the conversation says it was. Raises InputError.
        """
        from prefixguard.exchange import Exchange
        from prefixguard.testing.bodies import encode_body, guess_path

        raw = encode_body(body)
        self._entries.append(
            Exchange(
                t=self._clock.now(),
                path=path or guess_path(raw),
                request=raw,
                response=None if response is None else encode_body(response),
                upstream=upstream,
                extra=_extra(user_lines(self.root)),
            )
        )

    def clear(self) -> None:
        """Forgets what was recorded so far."""
        self._entries.clear()

    def exchanges(self) -> list[Exchange]:
        """Everything so far, in the order in which it was sent, secrets masked."""
        return [_exchange(entry) if isinstance(entry, clients.Call) else entry for entry in self._entries]

    def analysis(self, server: str | None = None) -> Analysis:
        """What the analysis says of it. server: the cache rule; None for any prefix."""
        from prefixguard.analysis import Options, analyze
        from prefixguard.rulebook import Rulebook
        from prefixguard.testing.bodies import with_replies
        from prefixguard.testing.stability import ANY_PREFIX

        rulebook = Rulebook()
        options = Options(server=server or ANY_PREFIX)
        return analyze(with_replies(self.exchanges()), rulebook, options)

    def complaint(self, **changes: Any) -> str | None:
        """Why the prefix is not stable, for people; None when it is. changes: see `assert_prefix_stable`."""
        from prefixguard.callsite import callers
        from prefixguard.rulebook import Rulebook
        from prefixguard.testing.stability import Limits, complaint, stability, stable_ratio

        limits = (self._limits or Limits()).but(changes)
        catalogue = Rulebook().findings
        _check_codes(limits.allow, catalogue)
        exchanges = self.exchanges()
        if not exchanges:
            return NOTHING
        analysis = self.analysis(limits.server)
        unread = [t for session in analysis.sessions for t in session.turns if t.note]
        if len(unread) == len(exchanges):
            return f"none of {len(unread)} requests could be read: {unread[0].note}"
        stacks = {index: callers(exchange.extra) for index, exchange in enumerate(exchanges)}
        return complaint(stability(analysis, limits), limits, stable_ratio(analysis), catalogue, stacks)

    def assert_prefix_stable(
        self,
        *,
        max_breaks: int | None = None,
        max_rebilled_tokens: int | None = None,
        min_ratio: float | None = None,
        allow: str | Iterable[str] | None = None,
        server: str | None = None,
    ) -> None:
        """Raises UnstablePrefixError with the whole story when the requests break the prefix.

        max_breaks: breaks that pass (0). max_rebilled_tokens: tokens that
        breaks may send again. min_ratio: of the tokens that earlier requests
        sent, the least share that their successors send unchanged. allow: codes
        of the catalogue, or their beginnings, that do not count. server: the
        cache rule to judge by; by default, any prefix counts from the first
        token on. What is not given is what the test's marker, the command line
        or the configuration says.
        """
        __tracebackhide__ = True
        told = self.complaint(
            max_breaks=max_breaks,
            max_rebilled_tokens=max_rebilled_tokens,
            min_ratio=min_ratio,
            allow=None if allow is None else as_codes(allow),
            server=server,
        )
        if told is not None:
            from prefixguard.testing.stability import UnstablePrefixError

            raise UnstablePrefixError(told)

    def write_log(self, path: Path) -> int:
        """Writes an exchange log that every command reads; how many exchanges. Replaces a file as a whole."""
        from prefixguard.importers import write_log

        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as stream:
                count = write_log(self.exchanges(), stream)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return count


def assert_prefix_stable(
    what: Recording | Iterable[Body],
    *,
    path: str | None = None,
    max_breaks: int | None = None,
    max_rebilled_tokens: int | None = None,
    min_ratio: float | None = None,
    allow: str | Iterable[str] | None = None,
    server: str | None = None,
) -> None:
    """Asserts that requests keep their prefix: those of a recording, or bodies in the order of their turns.

    path: where the bodies would have gone; by their fields when None. The
    others: see `Recording.assert_prefix_stable`. Raises UnstablePrefixError.
    """
    __tracebackhide__ = True
    if isinstance(what, Recording):
        recording = what
    else:
        recording = Recording()
        for body in what:
            recording.record(body, path=path)
    recording.assert_prefix_stable(
        max_breaks=max_breaks,
        max_rebilled_tokens=max_rebilled_tokens,
        min_ratio=min_ratio,
        allow=allow,
        server=server,
    )


def as_codes(codes: str | Iterable[str]) -> tuple[str, ...]:
    """Codes in capitals, from one text with commas or from many."""
    texts = [codes] if isinstance(codes, str) else list(codes)
    return tuple(code.strip().upper() for text in texts for code in text.split(",") if code.strip())


def _check_codes(codes: Iterable[str], catalogue: Iterable[str]) -> None:
    """A misspelt code would let nothing pass, and say nothing about it."""
    from prefixguard.errors import InputError

    for code in codes:
        if not any(name.startswith(code) for name in catalogue):
            raise InputError(f"allow: {code!r} is no code, nor the start of one; see `prefixguard rules`")


def _is_prompt(path: str, body: bytes) -> bool:
    """Whether a request carries a prompt: by its path and fields, so that an app's own API is none."""
    import msgspec

    from prefixguard.wire.detect import detect, is_side_traffic, model_in_path

    if is_side_traffic(path):
        return False
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if detect(path, frozenset()) is None:
        return "anthropic_version" in fields and "messages" in fields
    return "model" in fields or model_in_path(path) is not None or path.endswith("/completion")


def _exchange(call: clients.Call) -> Exchange:
    from prefixguard.exchange import Exchange, Timing
    from prefixguard.secrets import mask_headers, mask_path
    from prefixguard.wire.streams import assemble

    reply = call.reply
    return Exchange(
        t=call.t,
        path=mask_path(call.path),
        request=call.body,
        headers=mask_headers(call.headers),
        response=assemble(reply, call.content_type) if reply else None,
        status=call.status,
        upstream=mask_path(call.upstream),
        method=call.method,
        timing=Timing(call.first_ms, call.total_ms),
        aborted=call.aborted,
        extra=_extra(call.lines),
    )


def _extra(lines: tuple[Line, ...]) -> dict[str, bytes]:
    from prefixguard.callsite import Caller, as_extra

    return as_extra(tuple(Caller(*line) for line in lines))
