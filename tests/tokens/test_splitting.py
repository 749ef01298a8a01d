"""The texts of tokens join to the text that they came from."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefixguard.tokens import encodings
from prefixguard.tokens.counter import ScaledTokenizer, TiktokenTokenizer
from prefixguard.tokens.splitting import split

O200K = TiktokenTokenizer("o200k_base", exact=True)


@settings(deadline=None)  # the first text waits for the vocabulary
@given(st.text(max_size=80))
@example("family 👩‍👩‍👧‍👦, 日本語, עברית, \u0000, <|endoftext|>")
def test_joins_to_the_text(text: str) -> None:
    pieces = split(O200K, text)
    assert pieces is not None
    assert "".join(pieces) == text
    assert len(pieces) <= O200K.count(text)
    assert all(pieces)


def test_one_piece_a_token_where_characters_are_whole() -> None:
    text = "The time is 14:05:35, read_file(path)."
    assert len(split(O200K, text) or ()) == O200K.count(text)


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    assert "".join(split(O200K, "half \ud83d.") or ()) == "half \N{REPLACEMENT CHARACTER}."


def test_an_estimate_splits_as_its_vocabulary() -> None:
    assert split(ScaledTokenizer(O200K, 1.3), "one two") == split(O200K, "one two") == ["one", " two"]


def test_without_the_compiled_part_the_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'It is 14:02:07. Família 👩‍👩‍👧‍👦, 日本語, read_file({"path": 1})'
    compiled = split(O200K, text)

    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(encodings, "_compiled", missing)
    encodings.splitter.cache_clear()
    assert split(O200K, text) == compiled
    encodings.splitter.cache_clear()


def test_a_tokenizer_that_only_counts() -> None:
    class Counting:
        name = "counting"
        exact = True

        def count(self, text: str) -> int:
            return len(text)

    assert split(Counting(), "one") is None


@pytest.mark.parametrize("offsets", [[(0, 3), (3, 7)], [(0, 3), (3, 3), (2, 5)], []])
def test_a_tokenizer_file_splits_by_offsets(offsets: list[tuple[int, int]]) -> None:
    """Whatever the offsets leave out or cover twice, every character comes once."""
    from prefixguard.tokens.splitting import _by_offsets

    assert "".join(_by_offsets(offsets, "one two")) == "one two"
