"""Counts tokens of segments, each segment once.

A turn of a long session brings few new segments; the counts of the others are
remembered by identity. Long texts are counted in pieces that end where every
supported vocabulary starts a new pre-token, so that a text that grows costs
what was added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec
from xxhash import xxh3_128_digest

from prefixguard.prompt import Kind, Segment
from prefixguard.rendering.namespace import tool_declaration


class Tokenizer(Protocol):
    """Counts the tokens of ordinary text. `name` says how; `exact` whether the server counts the same way."""

    name: str
    exact: bool

    def count(self, text: str) -> int:
        """How many tokens `text` is; special tokens quoted in it are text like any other."""
        ...


class TiktokenTokenizer:
    """An OpenAI encoding."""

    def __init__(self, encoding_name: str, *, exact: bool) -> None:
        self.encoding_name = encoding_name
        self.name = f"tiktoken:{encoding_name}"
        self.exact = exact
        self._count: Callable[[str], int] | None = None

    def count(self, text: str) -> int:
        if self._count is None:
            from prefixguard.tokens.encodings import counter

            self._count = counter(self.encoding_name)
        try:
            return self._count(text)
        except UnicodeEncodeError:  # half of a surrogate pair reaches the model as a replacement character
            return self._count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


class ScaledTokenizer:
    """An estimate: another vocabulary's count times a factor. For models without a public tokenizer."""

    exact = False

    def __init__(self, base: Tokenizer, factor: float) -> None:
        self.name = "estimate"
        self.base = base
        self._factor = factor

    def count(self, text: str) -> int:
        return round(self.base.count(text) * self._factor)


class FileTokenizer:
    """A Hugging Face `tokenizer.json`."""

    exact = True

    def __init__(self, path: str) -> None:
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        from prefixguard.errors import InputError

        try:
            self._tokenizer = HuggingFaceTokenizer.from_file(path)
        except Exception as error:  # the library raises bare Exception
            raise InputError(f"{path}: not a tokenizer.json: {error}") from error
        self.name = "template"

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each token begins and ends in the text, in characters."""
        found: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return found


# No alternative of the o200k, cl100k, Llama 3, DeepSeek V3 and Tekken patterns can
# match a non-space followed by a space, so a cut there never changes the tokens.
_SAFE_CUT = re.compile(r"(?<=[^\s]) ")
_PIECE = 4096
_MOST_PIECES = 100_000


def pieces(text: str) -> list[str]:
    """A long text in pieces of about 4,096 characters, cut only where no token can cross.

    The cuts depend on what precedes them alone: a text that grows keeps its
    earlier pieces.
    """
    if len(text) <= 2 * _PIECE:
        return [text]
    found = []
    start = 0
    while len(text) - start > _PIECE:
        match = _SAFE_CUT.search(text, start + _PIECE)
        if match is None:
            break
        found.append(text[start : match.start()])
        start = match.start()
    found.append(text[start:])
    return found


class Weights(msgspec.Struct, frozen=True):
    """Tokens around the text, by kind of segment, and for media.

    message: what a message costs beside its text. call: a tool call's frame.
    media: an image without further knowledge. Source: OpenAI cookbook
    ("messages 3 tokens each", +1 for the role), rounded up for block frames.
    """

    message: int = 4
    call: int = 6
    tool: int = 2
    media: Mapping[str, int] = msgspec.field(
        default_factory=lambda: {"image": 1000, "document": 2000, "audio": 500, "file": 1000}
    )


class Counter:
    """Token counts by segment identity, for one tokenizer."""

    def __init__(
        self, tokenizer: Tokenizer, weights: Weights | None = None, *, namespace: bool = True
    ) -> None:
        self.tokenizer = tokenizer
        self.weights = weights or Weights()
        self._namespace = namespace
        self._counts: dict[bytes, int] = {}
        self._pieces: dict[bytes, int] = {}

    @property
    def method(self) -> str:
        """How the counts were made, as reports say it."""
        return self.tokenizer.name

    @property
    def exact(self) -> bool:
        """Whether the server counts the same way."""
        return self.tokenizer.exact

    def text(self, text: str) -> int:
        """Tokens of a text."""
        if len(text) <= 2 * _PIECE:
            return self.tokenizer.count(text)
        total = 0
        for piece in pieces(text):
            key = xxh3_128_digest(piece.encode("utf-8", "surrogatepass"))
            count = self._pieces.get(key)
            if count is None:
                if len(self._pieces) > _MOST_PIECES:
                    self._pieces.clear()
                count = self._pieces[key] = self.tokenizer.count(piece)
            total += count
        return total

    def segment(self, segment: Segment) -> int:
        """Tokens of a segment, its frame included."""
        count = self._counts.get(segment.exact)
        if count is None:
            count = self._counts[segment.exact] = self._count(segment)
        return count

    def segments(self, segments: tuple[Segment, ...], exacts: Sequence[bytes] | None = None) -> list[int]:
        """Tokens of each segment. exacts: their identities, where they are at hand."""
        found = list(map(self._counts.get, [s.exact for s in segments] if exacts is None else exacts))
        if None in found:
            pairs = zip(segments, found, strict=True)
            return [self.segment(segment) if count is None else count for segment, count in pairs]
        return found  # type: ignore[return-value]

    def _count(self, segment: Segment) -> int:
        weights = self.weights
        match segment.kind:
            case Kind.MEDIA:
                if segment.media_tokens is not None:
                    return segment.media_tokens
                return weights.media.get(segment.name or "", weights.media.get("image", 0))
            case Kind.TOOL:
                return self.text(self.visible(segment)) + weights.tool
            case Kind.TOOL_CALL:
                return self.text(segment.text) + weights.call
            case Kind.REASONING if segment.text == "[encrypted reasoning]":
                return weights.message
        return self.text(segment.text) + weights.message

    def visible(self, segment: Segment) -> str:
        """The text that the model reads of a segment, as far as it is known."""
        if segment.kind is Kind.TOOL and self._namespace and segment.json:
            return tool_declaration(msgspec.json.decode(segment.json))
        return segment.text
