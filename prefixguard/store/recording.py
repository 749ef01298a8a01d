"""What of an exchange is kept: everything, everything but secrets, or digests only.

Between the proxy's capture and the store's tables. In every mode credentials in
headers and URLs are masked again. Both cutting modes work on the strings of a
body and leave the rest of its bytes alone, so that the analysis still sees
where two prompts part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, shake_256
from typing import TYPE_CHECKING, Literal

import msgspec

from prefixguard.errors import InputError
from prefixguard.exchange import Capture, SessionKey
from prefixguard.rulebook import Dated, read_table, rules_folder
from prefixguard.secrets import SecretRules, mask_headers, mask_path, mask_values
from prefixguard.store import encodings
from prefixguard.surrogates import paired
from prefixguard.wire.streams import assemble

if TYPE_CHECKING:
    from pathlib import Path

type Mode = Literal["full", "redacted", "hashes"]
FILE = "recording.toml"

_STRING = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?', re.DOTALL)
_PLAIN_VALUE = re.compile(rb'"[A-Za-z0-9_.:/+-]{0,64}"')
_PLAIN_NAME = re.compile(rb'"[A-Za-z_$][A-Za-z0-9_$.-]{0,63}"')
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
_CHARACTERS_A_WORD = 4
_LEAST_WORDS, _MOST_WORDS = 3, 4096
_REMEMBERED = 32 * 1024 * 1024


class RecordingRules(Dated, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`rules/recording.toml`; the fields are explained there."""

    keep: tuple[str, ...]
    keep_headers: tuple[str, ...]
    words: tuple[str, ...]


def read_recording_rules(folder: Path | None = None) -> RecordingRules:
    """The rules of a rules folder (the packaged one by default). Raises RuleError."""
    return read_table((folder or rules_folder()) / FILE, RecordingRules)


@cache
def packaged_recording_rules() -> RecordingRules:
    """The rules that came with the program."""
    return read_recording_rules()


@dataclass(frozen=True, slots=True)
class Kept:
    """What is written of a capture: bodies without content encoding, cut down to what the mode allows.

    request_encoding, response_encoding: what was taken off, or None.
    response_type: the media type, in lower case and without parameters.
    """

    capture: Capture
    body: bytes
    request_encoding: str | None
    response_body: bytes
    response_encoding: str | None
    response_type: str
    session: SessionKey | str | None
    recording: Mode


class Recording:
    """One way of recording.

    patterns: the user's own regular expressions for "redacted", searched in
    the strings of a body beside the built-in ones. salt: of the digests; the
    same one makes digests comparable. Raises InputError for a bad pattern.
    """

    def __init__(
        self,
        mode: Mode = "full",
        patterns: Sequence[str] = (),
        salt: bytes = b"",
        rules: RecordingRules | None = None,
        secrets: SecretRules | None = None,
    ) -> None:
        self.mode = mode
        self._salt = salt
        self._secrets = secrets
        self._patterns = [_compiled(pattern) for pattern in patterns]
        if mode == "hashes":
            self._rules = rules or packaged_recording_rules()
            self._keep = frozenset(b'"%s"' % name.encode() for name in self._rules.keep)
        self._known: dict[bytes, bytes] = {}
        self._known_bytes = 0

    def keep(self, capture: Capture, session: SessionKey | str | None) -> Kept:
        """What may be written of `capture`. Bodies that cannot be decoded stay as they are, whole."""
        body, request_encoding = _decoded(capture.body, capture.headers, False)
        response, response_encoding = _decoded(
            capture.response_body, capture.response_headers, capture.aborted
        )
        response_type = _media_type(capture.response_headers)
        headers = mask_headers(capture.headers, self._secrets)
        response_headers = mask_headers(capture.response_headers, self._secrets)
        path = mask_path(capture.path, self._secrets)
        upstream = mask_path(capture.upstream, self._secrets)
        if self.mode != "full":
            # A secret may be spread over the pieces of a stream, so that only the whole can be searched.
            whole = assemble(response, response_type)
            if whole is not None:
                response, response_type = whole, "application/json"
            body = self._cut_down(body)
            response = self._cut_down(response)
            path = self._text(path)
            headers = self._headers(headers)
            response_headers = self._headers(response_headers)
            session = self.session(session)
        capture = Capture(
            capture.id, capture.t, capture.method, path, upstream, headers, b"", capture.status,
            response_headers, b"", capture.timing, capture.aborted, capture.transport, capture.account,
            capture.agent,
        )  # fmt: skip
        return Kept(
            capture, body, request_encoding, response, response_encoding, response_type, session, self.mode
        )

    def text(self, text: bytes) -> bytes | None:
        """Text that was derived from bodies, as far as the mode allows it to be kept."""
        return None if self.mode == "hashes" else self._cut_down(text) if self.mode == "redacted" else text

    def session(self, session: SessionKey | str | None) -> SessionKey | str | None:
        """A session's key as far as the mode allows it to be kept."""
        if isinstance(session, SessionKey) and self.mode != "full":
            value = self._digest(session.value) if self.mode == "hashes" else self._redact(session.value)
            return SessionKey(session.kind, session.name, value)
        return session

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        if self.mode == "redacted":
            return {name: self._redact(value) for name, value in headers.items()}
        kept = self._rules.keep_headers
        return {name: value if name in kept else self._digest(value) for name, value in headers.items()}

    def _text(self, text: str) -> str:
        return self._redact(text) if self.mode == "redacted" else text

    def _digest(self, text: str) -> str:
        return "#" + blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=8).hexdigest()

    def _cut_down(self, body: bytes) -> bytes:
        if not body:
            return body
        replace = self._redact if self.mode == "redacted" else self._words
        try:
            msgspec.json.decode(body, type=msgspec.Raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            mended = paired(body)
            if mended != body:  # half of a surrogate pair
                cut = self._cut_down(mended)
                return body if cut == mended else cut
            text = body.decode("utf-8", "surrogateescape")
            return replace(text).encode("utf-8", "surrogateescape")
        if self._known_bytes > _REMEMBERED:
            self._known = {}
            self._known_bytes = 0
        return _STRING.sub(self._redacted_token if self.mode == "redacted" else self._hashed_token(), body)

    def _redacted_token(self, match: re.Match[bytes]) -> bytes:
        return self._replaced(match[1], self._redact) + (match[2] or b"")

    def _hashed_token(self) -> Callable[[re.Match[bytes]], bytes]:
        name = b""

        def replace(match: re.Match[bytes]) -> bytes:
            nonlocal name
            token, colon = match[1], match[2]
            if colon:
                name = token
                return (
                    token if _PLAIN_NAME.fullmatch(token) else self._replaced(token, self._digest)
                ) + colon
            if name in self._keep and _PLAIN_VALUE.fullmatch(token):
                return token
            return self._replaced(token, self._words)

        return replace

    def _replaced(self, token: bytes, replace: Callable[[str], str]) -> bytes:
        """A JSON string with its text replaced; the token itself, byte for byte, where nothing changes."""
        known = self._known.get(token)
        if known is None:
            try:
                text = msgspec.json.decode(token, type=str)
            except (msgspec.DecodeError, UnicodeDecodeError):
                text = token[1:-1].decode("utf-8", "replace")
            other = replace(text)
            known = token if other == text else msgspec.json.encode(other)
            self._known[token] = known
            self._known_bytes += len(token) + len(known)
        return known

    def _redact(self, text: str) -> str:
        text = mask_values(text, self._marker, self._secrets)
        for pattern in self._patterns:
            text = pattern.sub(lambda match: self._marker("pattern", match[0]) if match[0] else "", text)
        return text

    def _marker(self, kind: str, secret: str) -> str:
        # Four digits show that a value changed, and are too few to find it again by trying.
        digest = blake2b(secret.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=2).hexdigest()
        return f"[redacted:{kind}:{digest}]"

    def _words(self, text: str) -> str:
        return "\n".join([self._line(line) if line else "" for line in text.split("\n")])

    def _line(self, line: str) -> str:
        prefix = ""
        if line.startswith("data:") and (match := _DATA_URL.match(line)):
            prefix, line = match[0], line[match.end() :]
        count = min(max(_LEAST_WORDS, len(line) // _CHARACTERS_A_WORD), _MOST_WORDS)
        digest = shake_256(self._salt + line.encode("utf-8", "surrogatepass")).digest(count)
        words = self._rules.words
        return prefix + " ".join([words[byte] for byte in digest])


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"redaction pattern {pattern!r}: {error}") from error


def _decoded(body: bytes, headers: Mapping[str, str], aborted: bool) -> tuple[bytes, str | None]:
    encoding = _header(headers, "content-encoding").strip().lower()
    if not encoding or encoding == "identity" or not body:
        return body, None
    decoded = encodings.decode(body, encoding, aborted)
    return (body, None) if decoded is None else (decoded, encoding)


def _media_type(headers: Mapping[str, str]) -> str:
    return _header(headers, "content-type").partition(";")[0].strip().lower()


def _header(headers: Mapping[str, str], name: str) -> str:
    found = headers.get(name)
    if found is None:
        found = next((value for key, value in headers.items() if key.lower() == name), "")
    return found
