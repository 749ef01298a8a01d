"""OpenAI's encodings, offline: tiktoken's own definitions over the vocabularies that `bpe-openai` ships."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from prefixguard.errors import InputError

if TYPE_CHECKING:
    import tiktoken

# Where tiktoken would fetch each vocabulary from; it names its cache files by the digest of this.
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
OFFLINE = ("o200k_base", "cl100k_base")

_lock = Lock()


@cache
def encoding(name: str) -> tiktoken.Encoding:
    """The named encoding. tiktoken checks the vocabulary against its pinned hash.

    Takes about a second the first time. Raises InputError when the vocabulary
    is not to be had offline.
    """
    import tiktoken

    if name not in OFFLINE:
        raise InputError(f"encoding {name!r} is not available offline; have {', '.join(OFFLINE)}")
    packed = _folder() / "data" / f"{name}.tiktoken.gz"
    cache_name = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
    # tiktoken reads its cache folder from the environment and nowhere else.
    with _lock, tempfile.TemporaryDirectory(prefix="prefixguard-") as folder:
        Path(folder, cache_name).write_bytes(gzip.decompress(packed.read_bytes()))
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        try:
            found = tiktoken.get_encoding(name)
            # What encodes is tiktoken's core; this second copy, 26 MB of Python objects, is not read again.
            found._mergeable_ranks = {}
            return found
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def _folder() -> Path:
    """Where `bpe_openai` is installed. Importing it would read every vocabulary it has into memory."""
    spec = importlib.util.find_spec("bpe_openai")
    if spec is None or spec.origin is None:
        raise InputError("the vocabularies are missing: install bpe-openai")
    return Path(spec.origin).parent


@cache
def counter(name: str) -> Callable[[str], int]:
    """Counts the tokens of ordinary text in the named encoding. Raises InputError as `encoding` does.

    `bpe_openai`'s compiled part gives tiktoken's counts in half the time, and is
    ready in a twentieth. It is loaded by itself; where that fails, tiktoken counts.
    """
    if name not in OFFLINE:
        raise InputError(f"encoding {name!r} is not available offline; have {', '.join(OFFLINE)}")
    try:
        return _compiled().tokenizer_for_encoding(name).count  # type: ignore[no-any-return]
    except (ImportError, AttributeError, ValueError):
        encode = encoding(name).encode_ordinary
        return lambda text: len(encode(text))


@cache
def splitter(name: str) -> Callable[[str], list[str]]:
    """Splits ordinary text into the texts of its tokens in the named encoding, as `counter` counts them.

    A character that is several tokens stands as one piece. Raises InputError as `encoding` does.
    """
    if name not in OFFLINE:
        raise InputError(f"encoding {name!r} is not available offline; have {', '.join(OFFLINE)}")
    try:
        found = _compiled().tokenizer_for_encoding(name)
        encode, decode = found.encode, found.decode
    except (ImportError, AttributeError, ValueError):
        whole = encoding(name)
        encode = whole.encode_ordinary

        def decode(ids: list[int]) -> str:
            return whole.decode(ids, errors="strict")

    def split(text: str) -> list[str]:
        pieces: list[str] = []
        ids: list[int] = []
        for token in encode(text):
            ids.append(token)
            try:
                pieces.append(decode(ids))
            except ValueError:  # the token ends inside a character
                continue
            ids = []
        return pieces

    return split


def _compiled() -> Any:
    found = PathFinder.find_spec("bpe_openai._bindings", [str(_folder())])
    if found is None or found.loader is None:
        raise ImportError("bpe_openai has no compiled part here")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
