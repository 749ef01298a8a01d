"""A text as the texts of its tokens, for showing where two prompts part at the level of tokens."""

from __future__ import annotations

from prefixguard.tokens.counter import FileTokenizer, ScaledTokenizer, TiktokenTokenizer, Tokenizer
from prefixguard.tokens.encodings import splitter


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
        # Half of a surrogate pair reaches the model as a replacement character.
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return splitter(tokenizer.encoding_name)(whole)
    return None


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
