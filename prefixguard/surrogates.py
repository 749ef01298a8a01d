"""Reads JSON in which half of a surrogate pair is written as an escape.

JavaScript cuts texts between the two halves of an emoji and Python's `json`
passes such a half on, both as `\\ud83d`. Servers take it; strict parsers refuse
the whole body. Here a half becomes U+FFFD, as it does where models read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

type Json = bytes | str | msgspec.Raw

# Every escape is matched, so that the backslash of one is never taken for the start of another.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def paired(raw: bytes) -> bytes:
    """The JSON with each half of a pair replaced by U+FFFD; as long as before, byte for byte."""
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["half"] else match[0], raw)


def lenient[T](decode: Callable[[Json], T]) -> Callable[[Json], T]:
    """A decoder that reads what the given one refuses only for halves of pairs.

    Costs nothing for what is read at once. Raises what the given decoder raises.
    """

    def read(raw: Json) -> T:
        try:
            return decode(raw)
        except msgspec.DecodeError:
            whole = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else bytes(raw)
            mended = paired(whole)
            if mended == whole:
                raise
            return decode(mended)

    return read
