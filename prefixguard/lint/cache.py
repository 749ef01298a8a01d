"""A cache of facts by content, so that a second run reads only what changed.

Beside the second step of the linter. An entry's name is a digest of the
source, the language and the version of the fact language; a damaged or
foreign entry is as good as none.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
import xxhash

from prefixguard import __version__
from prefixguard.lint.facts import Module

_FORMAT = f"facts/2/{__version__}"


class FactCache:
    """Facts in a folder, one file each, spread over 256 folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._decoder = msgspec.msgpack.Decoder(Module)
        self._encoder = msgspec.msgpack.Encoder()

    def _path(self, source: bytes, language: str) -> Path:
        digest = xxhash.xxh3_128_hexdigest(source + f"\0{language}\0{_FORMAT}".encode())
        return self.folder / digest[:2] / digest[2:]

    def get(self, source: bytes, language: str) -> Module | None:
        """The facts of this source, or None."""
        try:
            return self._decoder.decode(self._path(source, language).read_bytes())
        except (OSError, msgspec.MsgspecError, RecursionError):
            return None

    def put(self, source: bytes, language: str, module: Module) -> None:
        """Keep the facts; a cache that cannot be written is no error."""
        path = self._path(source, language)
        with contextlib.suppress(OSError, RecursionError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{path.name}.{os.getpid()}")
            temporary.write_bytes(self._encoder.encode(module))
            temporary.replace(path)
