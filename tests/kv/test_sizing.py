"""Bytes of a workload: the worked examples, and what must hold for every model."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.kv import Cache, Memory, Model, StatePart, Workload, fitting_sequences, size
from prefixguard.kv.plan import plan
from prefixguard.kv.sizing import heads_on_gpu, kept_tokens
from tests.kv.shapes import formats, from_config, known, plain


def test_thirty_two_sequences_of_llama() -> None:
    work = Workload(8192, 32)
    assert size(known("llama-3.1-8b"), formats("fp16"), work).total == 34_359_738_368
    assert size(known("llama-3.1-8b"), formats("fp8"), work).total == 17_179_869_184


def test_heads_for_all_against_a_latent() -> None:
    assert size(known("gpt-3"), formats("fp16"), Workload(1)).bytes_per_token == 4_718_592
    assert size(known("deepseek-v3"), formats("fp16"), Workload(1)).bytes_per_token == 70_272


def test_windows_in_four_of_five_layers() -> None:
    shape = {"num_hidden_layers": 60, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256}
    work = Workload(262_144)
    assert size(from_config(model_type="llama", **shape), formats(), work).total == 257_698_037_760
    kinds = (["sliding_attention"] * 4 + ["full_attention"]) * 12
    mixed = from_config(
        model_type="gemma4_text", layer_types=kinds, sliding_window=1024, global_head_dim=256, **shape
    )
    assert size(mixed, formats(), work).total == 52_344_913_920


def test_keys_and_values_have_formats_of_their_own() -> None:
    model = known("smollm2-135m")
    tokens = {
        ("f16", "f16"): 23040, ("q8_0", "q8_0"): 12240, ("q8_0", "q4_0"): 9360, ("q4_0", "q4_0"): 6480,
        ("q4_0", "q8_0"): 9360, ("q5_1", "q5_0"): 8280,
    }  # fmt: skip
    for (key, value), expected in tokens.items():
        assert size(model, formats(key, value), Workload(1)).bytes_per_token == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bf16", 4096), ("fp8", 2048), ("int8", 2048), ("int8_per_token_head", 2112),
        ("fp8_per_token_head", 2112),
        ("int4_per_token_head", 1088), ("int4", 1024), ("nvfp4", 1152), ("turboquant_k8v4", 1568),
        ("turboquant_4bit_nc", 1072), ("turboquant_k3v4_nc", 944), ("turboquant_3bit_nc", 816),
        ("turboquant_2.5bit", 8 * (40 + 2 + 40 + 4)), ("q8_0", 2176),
        ("2.5bit", 8 * 2 * 40), ("3.5 bits", 8 * 2 * 56),
    ],
)  # fmt: skip
def test_formats_of_a_layer_of_eight_heads(name: str, expected: int) -> None:
    assert size(plain(1, 8, 128), formats(name), Workload(1)).bytes_per_token == expected


def test_layouts_of_one_latent() -> None:
    assert size(known("deepseek-v3"), formats("fp8_ds_mla"), Workload(1)).bytes_per_token == 61 * 656
    assert size(known("deepseek-v3"), formats("nvfp4_ds_mla"), Workload(1)).bytes_per_token == 61 * 352
    with pytest.raises(InputError, match=r"only for latent attention of 512 \+ 64"):
        size(known("llama-3.1-8b"), formats("fp8_ds_mla"), Workload(1))


def test_formats_that_engines_refuse() -> None:
    with pytest.raises(InputError, match="does not divide a head of 80"):
        size(plain(1, 8, 80), formats("q8_0"), Workload(1))
    with pytest.raises(InputError, match="have fp16, bf16"):
        formats("q9")
    with pytest.raises(InputError):
        formats("0bit")


def test_few_heads_are_replicated_and_latents_not_split() -> None:
    llama = known("llama-3.1-70b")
    sixteen = size(llama, formats(), Workload(1000), 16)
    assert sixteen.per_gpu == 40960 * 1000
    assert sixteen.total == 327_680 * 1000
    deepseek = known("deepseek-v3")
    assert (
        size(deepseek, formats(), Workload(1000), 8).per_gpu
        == size(deepseek, formats(), Workload(1000)).total
    )
    with pytest.raises(InputError, match="8 key-value heads cannot be divided among 3 GPUs"):
        size(llama, formats(), Workload(1), 3)


def test_shared_blocks_are_kept_once() -> None:
    model = plain(4, 2, 64)
    token = 4 * 2 * 2 * 64 * 2
    alone = size(model, formats(), Workload(1000, 10, 0, 16))
    shared = size(model, formats(), Workload(1000, 10, 500, 16))
    assert alone.total == 10 * 1008 * token
    assert shared.total == (496 + 10 * (1008 - 496)) * token
    assert shared.unshared == alone.total
    assert shared.rounding == shared.total - (500 + 10 * 500) * token


def test_a_window_behind_the_shared_prefix_shares_nothing() -> None:
    cache = Cache("sliding", 1, 64, 64, window=128)
    assert kept_tokens(cache, Workload(1000, 5, 800)) == (128, 0)
    assert kept_tokens(cache, Workload(1000, 5, 900)) == (128, 28)
    assert kept_tokens(cache, Workload(100, 5, 60)) == (100, 60)


def test_states_do_not_grow_and_are_not_shared() -> None:
    state = Cache("linear", state=(StatePart(1000, "convolution"), StatePart(500, "recurrence")))
    model = Model("m", ((state,),) * 3, 3, 8)
    short, long = (size(model, formats(), Workload(n, 4, n // 2)).total for n in (10, 100_000))
    assert short == long == 4 * 3 * (1000 * 2 + 500 * 4)
    assert size(model, formats(), Workload(10, 4), 2).per_gpu == short // 2


def test_compressed_entries_stand_for_several_tokens() -> None:
    model = Model("m", ((Cache("full", 1, 512, 0, stride=4, splits=False),),), 1, 8)
    found = size(model, formats(), Workload(10))
    assert found.bytes_per_token == Fraction(256)
    assert found.total == 3 * 1024


def test_what_fits_a_gpu() -> None:
    model = known("llama-3.1-8b")
    assert model.weights is not None
    memory = Memory(81559 << 20, Fraction("0.92"), model.weights, 1 << 30)
    answer = plan(model, formats(), Workload(8192), memory=memory)
    assert memory.for_kv == 81559 * (1 << 20) * 92 // 100 - model.weights - (1 << 30)
    assert answer.max_sequences == memory.for_kv // (8192 * 131072)
    small = plan(
        model, formats(), Workload(8192), memory=Memory(15 << 30, Fraction("0.92"), model.weights, 0)
    )
    assert small.max_sequences == 0


def test_contiguous_reservation_is_for_the_longest_sequence() -> None:
    answer = plan(known("gemma-3-27b"), formats(), Workload(8192, 4), longest=131072)
    assert answer.contiguous == 4 * 131072 * 507904
    assert plan(plain(1, 1, 64), formats(), Workload(10)).contiguous is None


@pytest.mark.parametrize("bad", [{"context": 0}, {"context": 5, "shared": 6}, {"context": 5, "batch": 0}])
def test_impossible_workloads(bad: dict[str, int]) -> None:
    with pytest.raises(InputError):
        Workload(**bad)


WINDOWS = st.one_of(st.none(), st.integers(1, 5000))
CACHES = st.builds(
    lambda heads, width, window: Cache("sliding" if window else "full", heads, width, width, window=window),
    st.sampled_from([1, 2, 4, 8]), st.sampled_from([32, 64, 128]), WINDOWS,
)  # fmt: skip
MODELS = st.lists(CACHES, min_size=1, max_size=6).map(
    lambda caches: Model("m", tuple((cache,) for cache in caches), len(caches), 8)
)
NAMES = st.sampled_from(["bf16", "fp8", "q8_0", "turboquant_3bit_nc", "2.5bit"])


@given(MODELS, NAMES, st.integers(1, 10_000), st.integers(1, 20), st.sampled_from([1, 16, 256]), st.data())
def test_what_holds_for_every_model(
    model: Model, name: str, context: int, batch: int, block: int, data: st.DataObject
) -> None:
    shared = data.draw(st.integers(0, context))
    kept = formats(name)
    found = size(model, kept, Workload(context, batch, shared, block))
    assert found.total == sum(group.bytes for group in found.groups)
    assert found.total == found.common + batch * found.private
    assert sum(group.layers for group in found.groups) == len(model.caches)
    # Sharing never costs, rounding never saves, and a window never keeps more than everything.
    assert found.total <= found.unshared
    assert size(model, kept, Workload(context, batch, 0, block)).rounding >= 0
    assert size(model, kept, Workload(context)).total <= context * found.bytes_per_token
    assert (
        size(model, kept, Workload(context + 1, batch)).total
        >= size(model, kept, Workload(context, batch)).total
    )
    room = found.common + 7 * found.private
    assert fitting_sequences(found, room) == 7
    assert fitting_sequences(found, room - 1) == 6


@given(st.sampled_from([1, 2, 4, 8, 16, 32]), st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_every_head_has_a_place(heads: int, tp: int) -> None:
    here = heads_on_gpu(heads, tp)
    assert here * tp >= heads
    assert here * tp == heads or here == 1
