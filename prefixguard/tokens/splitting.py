"""A text as the texts of its tokens, for showing where two prompts part at the level of tokens."""

from __future__ import annotations

from prefixguard.tokens.counter import FileTokenizer, ScaledTokenizer, TiktokenTokenizer, Tokenizer
from prefixguard.tokens.encodings import encoding


def split(tokenizer: Tokenizer, text: str) -> list[str] | None:
    """The text's tokens, which join to the text again; None for a tokenizer that only counts.

    A character that is several tokens (many emoji) stands as one piece. An
    estimating tokenizer splits as the vocabulary that it scales does.
    """
    if isinstance(tokenizer, ScaledTokenizer):
        return split(tokenizer.base, text)
    if isinstance(tokenizer, FileTokenizer):
        return _by_offsets(tokenizer.offsets(text), text)
    if isinstance(tokenizer, TiktokenTokenizer):
        return _by_bytes(tokenizer.encoding_name, text)
    return None


def _by_bytes(name: str, text: str) -> list[str]:
    vocabulary = encoding(name)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    found: list[str] = []
    rest = b""
    for token in vocabulary.encode_ordinary(whole):
        rest += vocabulary.decode_single_token_bytes(token)
        try:
            found.append(rest.decode())
        except UnicodeDecodeError:
            continue
        rest = b""
    return found


def _by_offsets(offsets: list[tuple[int, int]], text: str) -> list[str]:
    found: list[str] = []
    at = 0
    for _, end in offsets:
        if end > at:
            found.append(text[at:end])
            at = end
    if at < len(text):
        found.append(text[at:])
    return found
