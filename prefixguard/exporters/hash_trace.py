"""Sessions as a trace of hashed blocks, in Mooncake's format: who shares what with whom, and no word of it.

An id stands for a block of tokens and everything before it, salted, so that
nobody can tell the content from it; without the salt two exports have no id in
common. `prefixguard simulate` reads the trace and finds the hits that it finds
in the sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

from prefixguard.simulate.workload import Keys, Request, join, length

_ID_BYTES = 8


class _Salted(Keys):
    """Names blocks by salted digests of their content and of what stands before them."""

    def __init__(self, block: int, salt: bytes) -> None:
        super().__init__(block)
        self._salt = salt

    def _number(self, content: object) -> int:
        digest = blake2b(repr(content).encode("utf-8", "replace"), key=self._salt, digest_size=_ID_BYTES)
        # A number of 53 bits is the same number to every reader of JSON.
        return int.from_bytes(digest.digest()) >> 11


def to_rows(
    requests: Sequence[Request], times: Iterable[float], block: int, salt: bytes
) -> Iterator[dict[str, Any]]:
    """A row for each request. times: seconds, in their order. block: tokens that an id stands for.

    The last id of a prompt stands for the block that its reply fills up, if it
    does; the reply's further blocks are `output_hash_ids`, which other readers
    of the format pass over.
    """
    keys = _Salted(block, salt[:64])
    start: float | None = None
    for number, (request, t) in enumerate(zip(requests, times, strict=True)):
        start = t if start is None else start
        prompt = request.tokens
        if not prompt:
            continue
        written = length(request.reply)
        whole = Request(
            request.session, join(request.prompt, request.reply), (), 0, request.salt, request.is_break
        )
        named = keys(whole)
        need, every = -(-prompt // block), -(-(prompt + written) // block)
        # A block that nothing fills is nobody else's.
        named += [keys._number(("rest", number, i)) for i in range(len(named), every)]
        yield {
            "timestamp": round((t - start) * 1000),
            "input_length": prompt,
            "output_length": request.output,
            "hash_ids": named[:need],
            "output_hash_ids": named[need:every],
            "reply_length": written,
            "block_size": block,
        }
