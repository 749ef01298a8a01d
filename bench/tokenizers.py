"""tiktoken against Hugging Face `tokenizers`, on one vocabulary (cl100k_base) and one core.

The same merges and the same pattern, so that both give the same tokens: what is
compared is the libraries. Texts are the standard library's sources, whole and in
pieces of the size of a message.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import os
import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from bench.rows import Row
from bench.workload import library_text
from prefixguard.tokens.encodings import encoding

NAME = "cl100k_base"
WHOLE = 400_000
MESSAGE = 1_200


def run() -> list[Row]:
    """The figures. Takes about half a minute, most of it to convert the vocabulary."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    openai = encoding(NAME)
    hugging_face = _hugging_face(openai._pat_str)
    text = library_text()
    chance = random.Random(1)
    pieces = [text[at : at + MESSAGE] for at in (chance.randrange(len(text) - MESSAGE) for _ in range(300))]
    one = {
        "tiktoken": openai.encode_ordinary,
        "tokenizers": lambda text: hugging_face.encode(text, add_special_tokens=False).ids,
    }
    different = sum(one["tiktoken"](piece) != one["tokenizers"](piece) for piece in pieces)
    rows = [Row("texts with other tokens", str(different), "0", different == 0)]
    for what, texts in (("pieces of 1,200 characters", pieces), ("a text of 400,000", [text[:WHOLE]])):
        speeds = {name: _speed(encode, texts) for name, encode in one.items()}
        told = ", ".join(f"{name} {speed:.1f} MB/s" for name, speed in speeds.items())
        rows.append(Row(what, f"{told}: {speeds['tiktoken'] / speeds['tokenizers']:.1f} times as fast"))
    return rows


def _speed(encode: Callable[[str], object], texts: list[str]) -> float:
    """MB a second, the best of five rounds."""
    size = sum(map(len, texts)) / 1e6
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for text in texts:
            encode(text)
        best = min(best, time.process_time() - start)
    return size / best


def _hugging_face(pattern: str):  # type: ignore[no-untyped-def]
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    ranks = _ranks()
    # The other engine reads "{1,3}+" as "once more" and "$" as the end of any line.
    pattern = pattern.replace("{1,3}+", "{1,3}").replace("$", r"\z")
    letter = _byte_letters()
    spell = {token: "".join(letter[b] for b in token) for token in ranks}
    merges = []
    for token, rank in ranks.items():
        if len(token) > 1:
            left, right = _parts(ranks, token, rank)
            merges.append((spell[left], spell[right]))
    tokenizer = Tokenizer(models.BPE({spell[token]: rank for token, rank in ranks.items()}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def _ranks() -> dict[bytes, int]:
    spec = importlib.util.find_spec("bpe_openai")
    assert spec is not None
    packed = Path(str(spec.origin)).parent / "data" / f"{NAME}.tiktoken.gz"
    lines = (line.split() for line in gzip.decompress(packed.read_bytes()).splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _parts(ranks: dict[bytes, int], token: bytes, rank: int) -> list[bytes]:
    """The two tokens that this one is merged from."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(pairwise(parts))]
        least, at = min(pairs)
        if least >= rank:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def _byte_letters() -> dict[int, str]:
    """How byte-level vocabularies write each byte as a letter: printable ones as themselves."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
