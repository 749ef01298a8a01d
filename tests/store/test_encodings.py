"""Content encodings are taken off exactly, or not at all."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.store import encodings
from prefixguard.store.encodings import decode

if TYPE_CHECKING:
    from collections.abc import Callable

brotli = pytest.importorskip("brotli", reason="comes with the extra 'proxy'")


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def zstd_stream(body: bytes) -> bytes:
    """As a server writes it that does not know the length."""
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(body) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "zstd stream": ("zstd", zstd_stream),
    "br": ("br", brotli.compress),
}
packers = pytest.mark.parametrize("kind", PACKERS)


@packers
@given(body=st.binary(max_size=400), times=st.integers(1, 200))
def test_every_encoding(kind: str, body: bytes, times: int) -> None:
    name, pack = PACKERS[kind]
    assert decode(pack(body * times), name) == body * times


@packers
def test_what_is_cut_off_is_decoded_only_as_far_as_an_aborted_stream_came(kind: str) -> None:
    name, pack = PACKERS[kind]
    body = bytes(i * i % 251 for i in range(100_000))
    cut = pack(body)[:-9]
    assert decode(cut, name) is None
    part = decode(cut, name, aborted=True)
    assert part is not None
    assert body.startswith(part)


@packers
def test_what_is_not_encoded_so_is_left_alone(kind: str) -> None:
    assert decode(b'{"messages": []}', PACKERS[kind][0]) is None


def test_several_encodings_and_unknown_ones() -> None:
    assert decode(zlib.compress(gzip.compress(b"x")), "gzip, Deflate") == b"x"
    assert decode(b"x", "identity,") == b"x"
    assert decode(b"x", "compress") is None
    assert decode(b"", "gzip") == b""


def test_several_members_are_one_body() -> None:
    assert decode(gzip.compress(b"a") + gzip.compress(b"b"), "gzip") == b"ab"
    pack = zstandard.ZstdCompressor().compress
    assert decode(pack(b"a") + pack(b"b"), "zstd") == b"ab"


@packers
def test_a_body_that_unpacks_to_too_much_is_left_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "MAX_DECODED", 100_000)
    name, pack = PACKERS[kind]
    assert decode(pack(b"\0" * 100_000), name) == b"\0" * 100_000
    assert decode(pack(b"\0" * 10_000_000), name) is None
