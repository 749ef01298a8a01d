"""Counts: the vocabularies are OpenAI's own, pieces add up, and a segment is counted once."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import random
import sysconfig
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.prompt import Kind
from prefixguard.rulebook import Rulebook
from prefixguard.tokens import encodings
from prefixguard.tokens.choose import Counters, TokenizerTable
from prefixguard.tokens.counter import Counter, FileTokenizer, ScaledTokenizer, TiktokenTokenizer, pieces
from prefixguard.tokens.encodings import OFFLINE, counter, encoding
from prefixguard.wire.identity import call_segment, media_segment, text_segment, tool_segment

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


SNIPPETS = (
    "def f(x):\n    return x  # comment\n",
    "早上好，世界。这是一个测试！",
    "ああああ　いいい",
    "   \n\n\t\t  \r\n",
    "don't they'll WE'VE ",
    "1234567890 3.14159 ",
    "----====>>>> ///\\\\ ",
    "résumé naïve café ",
    "a" * 300,
    " " * 300,
    "\n" * 200,
    "مرحبا بالعالم ",
    "नमस्ते दुनिया ",
    "🙂🙃👩‍👩‍👧 ",
    "CamelCaseIdentifier snake_case_identifier ",
    "\u00a0\u2003\u3000 \u0085",
    '{"key": "value", "list": [1, 2, 3]}',
    "https://example.com/a/b?c=d&e=f#g ",
    "x\x1cy \x1f z",
    "\ud83d ",
)


class Counted:
    """A tokenizer that notes what it is asked; a token is a word."""

    name, exact = "words", True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())


# -- vocabularies -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", OFFLINE)
def test_vocabulary_is_what_tiktoken_pins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tiktoken refuses a file whose hash is not the one in its source; here a damaged one is handed to it."""
    encoding.cache_clear()
    tiktoken.registry.ENCODINGS.pop(name, None)
    found = encoding(name)
    assert found.name == name
    assert found.decode(found.encode_ordinary("Ünïcode 早安 <|endoftext|>")) == "Ünïcode 早安 <|endoftext|>"
    monkeypatch.setattr("gzip.decompress", lambda data: b"IQ== 0\n")
    encoding.cache_clear()
    tiktoken.registry.ENCODINGS.pop(name, None)
    with pytest.raises(Exception, match=r"(?i)hash|resolve|connection|download|max retries"):
        encoding(name)
    monkeypatch.undo()
    encoding.cache_clear()
    assert (
        encoding(name).encode_ordinary("hello world")
        == {"o200k_base": [24912, 2375], "cl100k_base": [15339, 1917]}[name]
    )


def test_no_trace_is_left_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    encoding.cache_clear()
    encoding("o200k_base")
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/somewhere/else")
    encoding.cache_clear()
    encoding("o200k_base")
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "/somewhere/else"


def test_unknown_encoding_is_one_line() -> None:
    for wrong in (encoding, counter):
        with pytest.raises(InputError, match="not available offline"):
            wrong("p50k_base")


@pytest.mark.parametrize("name", OFFLINE)
@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=200) | st.lists(st.sampled_from(SNIPPETS), max_size=6).map("".join))
def test_quick_counts_are_tiktokens(name: str, text: str) -> None:
    assert TiktokenTokenizer(name, exact=True).count(text) == len(encoding(name).encode_ordinary(text))


@pytest.mark.parametrize("name", OFFLINE)
def test_quick_counts_of_real_sources(name: str) -> None:
    for path in sorted(LIBRARY.glob("*.py"))[::5]:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert counter(name)(text) == len(encoding(name).encode_ordinary(text)), path.name


def test_tiktoken_counts_where_the_compiled_part_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = counter("o200k_base")("some text, 早安")

    def missing() -> None:
        raise ImportError

    monkeypatch.setattr(encodings, "_compiled", missing)
    counter.cache_clear()
    assert counter("o200k_base")("some text, 早安") == quick
    counter.cache_clear()


def test_special_tokens_quoted_in_text_are_text() -> None:
    tokenizer = TiktokenTokenizer("o200k_base", exact=True)
    assert tokenizer.count("<|endoftext|>") > 1
    assert tokenizer.count("<|im_start|>") > 1


# -- pieces -----------------------------------------------------------------------------------

texts = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=30), min_size=1, max_size=12).flatmap(
    lambda parts: st.integers(0, 2**32).map(lambda seed: _grown(parts, seed))
)


def _grown(parts: list[str], seed: int) -> str:
    """A text of 10,000 to 20,000 characters made of the parts, at random."""
    chance = random.Random(seed)
    text = ""
    while len(text) < 10_000:
        text += chance.choice(parts) * chance.choice([1, 1, 1, 5, 50]) or " "
    return text[:20_000]


@pytest.mark.parametrize("name", OFFLINE)
@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_pieces_count_as_much_as_the_whole(name: str, text: str) -> None:
    found = pieces(text)
    assert "".join(found) == text
    encode = encoding(name).encode_ordinary
    assert [t for piece in found for t in encode(piece)] == encode(text)


@pytest.mark.parametrize("name", OFFLINE)
def test_pieces_of_real_sources(name: str) -> None:
    encode = encoding(name).encode_ordinary
    for path in sorted(LIBRARY.glob("*.py"))[::8]:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert sum(len(encode(piece)) for piece in pieces(text)) == len(encode(text)), path.name


@settings(max_examples=60, deadline=None)
@given(text=texts, more=st.text(max_size=200), cut=st.integers(9000, 20_000))
def test_text_that_grows_keeps_its_pieces(text: str, more: str, cut: int) -> None:
    before, after = pieces(text[:cut]), pieces(text[:cut] + " " + more)
    assert after[: len(before) - 1] == before[:-1]


def test_text_without_a_place_to_cut_is_one_piece() -> None:
    assert pieces("x" * 50_000) == ["x" * 50_000]
    assert pieces("short") == ["short"]


# -- counters ---------------------------------------------------------------------------------


def test_segment_is_counted_once() -> None:
    tokenizer = Counted()
    counter = Counter(tokenizer)
    segment = text_segment("one two three", "user", "/x")
    again = text_segment("one two three", "user", "/elsewhere")
    assert counter.segments((segment, again, segment)) == [7, 7, 7]  # three words and the message around them
    assert tokenizer.asked == ["one two three"]


def test_long_text_that_grows_costs_what_was_added() -> None:
    tokenizer = Counted()
    counter = Counter(tokenizer)
    text = "".join(f"word{i} " for i in range(10_000))
    counter.text(text)
    asked = len(tokenizer.asked)
    assert asked > 5
    assert counter.text(text + "and more " * 20) == 10_000 + 40
    assert len(tokenizer.asked) - asked <= 2


def test_kinds_have_their_own_frames() -> None:
    counter = Counter(Counted())
    assert counter.segment(media_segment("A" * 100_000, "user", "")) == counter.weights.media["image"]
    assert (
        counter.segment(media_segment("A", "user", "", media_type="document"))
        == counter.weights.media["document"]
    )
    call = call_segment("f", '{"a": 1}', "", call_id="c")
    assert counter.segment(call) == 2 + counter.weights.call
    sealed = text_segment("[encrypted reasoning]", "assistant", "", kind=Kind.REASONING)
    assert counter.segment(sealed) == counter.weights.message


def test_tools_are_counted_as_models_read_them() -> None:
    definition = {
        "type": "function",
        "function": {
            "name": "read",
            "description": "Reads a file.",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string", "description": "Where."}},
                "required": ["path"],
            },
        },
    }
    segment = tool_segment(definition, "/tools/0", name="read")
    base = TiktokenTokenizer("o200k_base", exact=True)
    namespace, as_json = Counter(base).segment(segment), Counter(base, namespace=False).segment(segment)
    assert namespace < as_json * 0.8
    assert "type read = (_: {" in Counter(base).visible(segment)


def test_each_model_has_its_tokenizer() -> None:
    counters = Counters(Rulebook().table("tokenizers", TokenizerTable))
    assert counters.counter("gpt-5.2").method == "tiktoken:o200k_base"
    assert counters.counter("gpt-4-turbo").method == "tiktoken:cl100k_base"
    assert counters.counter("gpt-5.2").exact
    claude, unknown = counters.counter("claude-opus-4-8"), counters.counter("some-new-model")
    assert (claude.method, claude.exact) == ("estimate", False)
    assert not unknown.exact
    assert counters.counter("GPT-5.2") is counters.counter("gpt-5.1")
    given = Counted()
    assert (
        Counters(Rulebook().table("tokenizers", TokenizerTable), given).counter("gpt-5.2").tokenizer is given
    )


def test_estimate_is_scaled() -> None:
    assert ScaledTokenizer(Counted(), 1.5).count("a b c d") == 6


def test_file_that_is_no_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": 1}')
    with pytest.raises(InputError, match=r"tokenizer\.json: not a tokenizer\.json"):
        FileTokenizer(str(path))


def test_the_packed_vocabularies_have_not_changed() -> None:
    """The digests that tiktoken's source pins, so that this test says which file is wrong."""
    pinned = {
        "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    }
    spec = importlib.util.find_spec("bpe_openai")
    assert spec is not None
    for name, digest in pinned.items():
        packed = Path(str(spec.origin)).parent / "data" / f"{name}.tiktoken.gz"
        assert hashlib.sha256(gzip.decompress(packed.read_bytes())).hexdigest() == digest
