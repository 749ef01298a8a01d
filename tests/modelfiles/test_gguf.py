"""The GGUF header, against files that the format's own library writes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.kv import ArchitectureTable, Model, read_metadata
from prefixguard.modelfiles import open_model, read_header
from prefixguard.rulebook import Rulebook

RULEBOOK = Rulebook()


def written(path: Path, architecture: str = "llama", **fields: Any) -> Path:
    """A GGUF file with these fields and one small tensor."""
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in fields.items():
        key = name.replace("__", ".")
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float64(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


VALUES = st.one_of(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.floats(allow_nan=False),
    st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()),
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5),
    st.lists(st.text("abcü", max_size=4), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=5),
)


@settings(max_examples=40)
@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=8), VALUES, max_size=6))
def test_fields_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any]
) -> None:
    path = written(tmp_path_factory.mktemp("gguf") / "m.gguf", **fields)
    header = read_header(path)
    assert {name: header.fields[name] for name in fields} == fields
    assert header.fields["general.architecture"] == "llama"
    assert header.size == path.stat().st_size


def test_vocabularies_are_stepped_over(tmp_path: Path) -> None:
    path = written(
        tmp_path / "m.gguf", tokens=[f"token {i}" for i in range(5000)], scores=[0.5] * 5000, block_count=7
    )
    fields = read_header(path).fields
    assert "tokens" not in fields
    assert "scores" not in fields
    assert fields["block_count"] == 7


def test_both_byte_orders(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_uint32("llama.block_count", 40)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert read_header(path).fields["llama.block_count"] == 40


def test_a_header_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "m.gguf", a=3, name="model", b=[1, 2, 3], words=["x", "yz"]).read_bytes()
    end = whole.index(b"token_embd.weight")
    cut = tmp_path / "cut.gguf"
    for length in range(0, end - 8, 3):
        cut.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut.gguf: "):
            read_header(cut)


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_noise_behind_the_magic_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise") / "m.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + noise)
    try:
        fields = read_header(path).fields
    except InputError:
        return
    assert isinstance(fields, dict)


def model(name: str, **fields: Any) -> Model:
    metadata = {"general.architecture": name}
    metadata |= {f"{name}.{key.replace('__', '.')}": value for key, value in fields.items()}
    return read_metadata("m.gguf", metadata, RULEBOOK.table("architectures", ArchitectureTable), 1000)


COMMON = {
    "block_count": 12, "embedding_length": 1024, "attention__head_count": 8, "attention__head_count_kv": 2
}  # fmt: skip
WINDOW = {**COMMON, "attention__sliding_window": 512}
PATTERN = "attention__sliding_window_pattern"
MAMBA = {"ssm__state_size": 128, "ssm__inner_size": 4096, "ssm__conv_kernel": 4}
HEADS = "attention__head_count_kv"


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("llama", COMMON, {"full": 12}),
        ("qwen2", {**COMMON, HEADS: None}, {"full": 12}),
        ("gemma3", WINDOW, {"sliding": 10, "full": 2}),
        ("gemma2", WINDOW, {"sliding": 6, "full": 6}),
        ("gpt-oss", WINDOW, {"sliding": 6, "full": 6}),
        ("gemma3n", {**WINDOW, "attention__shared_kv_layers": 2}, {"sliding": 8, "full": 2}),
        ("llama4", COMMON, {"chunked": 9, "full": 3}),
        ("phi3", WINDOW, {"sliding": 12}),
        ("anything", {**WINDOW, PATTERN: [True] * 9 + [False] * 3}, {"sliding": 9, "full": 3}),
        ("anything", {**WINDOW, PATTERN: 3}, {"sliding": 8, "full": 4}),
        ("llama", {**COMMON, HEADS: [2] * 6 + [0] * 6}, {"full": 6}),
        ("deepseek2", {**COMMON, "attention__kv_lora_rank": 512, "rope__dimension_count": 64}, {"mla": 12}),
        ("qwen3next", {**COMMON, **MAMBA, "full_attention_interval": 4}, {"linear": 9, "full": 3}),
        ("granitehybrid", {**COMMON, **MAMBA, HEADS: [0, 0, 0, 2] * 3}, {"linear": 9, "full": 3}),
        ("falcon-h1", {**COMMON, **MAMBA}, {"linear": 12, "full": 12}),
        ("rwkv7", {"block_count": 12, "embedding_length": 64, "wkv__head_size": 64}, {"linear": 12}),
        ("lfm2", {**COMMON, HEADS: [0, 2] * 6, "shortconv__l_cache": 3}, {"linear": 6, "full": 6}),
    ],
)
def test_layers_by_architecture(name: str, fields: dict[str, Any], expected: dict[str, int]) -> None:
    found = model(name, **{key: value for key, value in fields.items() if value is not None})
    assert Counter(cache.kind for cache in found.caches) == expected
    assert (found.weights, found.weights_from) == (1000, "size of the GGUF file")


def test_states_are_those_of_llamacpp() -> None:
    fields = {**COMMON, "full_attention_interval": 4, "ssm__state_size": 128, "ssm__inner_size": 4096}
    found = model("qwen3next", **fields, ssm__conv_kernel=4, ssm__group_count=16)
    linear = next(cache for cache in found.caches if cache.kind == "linear")
    assert [part.values for part in linear.state] == [3 * (4096 + 2 * 16 * 128), 128 * 4096]


@pytest.mark.parametrize(
    ("name", "fields", "complaint"),
    [
        ("llama", {}, "block_count"),
        ("llama", {"block_count": 2, "attention__head_count": [8], "embedding_length": 64}, "1 layers only"),
        ("deepseek2", {**COMMON, "attention__kv_lora_rank": 512}, "rope.dimension_count"),
    ],
)
def test_what_is_missing_is_named(name: str, fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=r"^m\.gguf: ") as raised:
        model(name, **fields)
    assert complaint in str(raised.value)


def test_a_file_without_an_architecture_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"PK")
    with pytest.raises(InputError, match="not a GGUF file"):
        open_model(str(tmp_path / "x.gguf"), RULEBOOK)
    with pytest.raises(InputError, match=r"general\.architecture"):
        read_metadata("m.gguf", {}, RULEBOOK.table("architectures", ArchitectureTable), 1)
