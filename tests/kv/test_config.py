"""Which layers keep what, from the configurations of each family."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import InputError
from prefixguard.kv import Cache, Model, Workload, size
from prefixguard.kv.named import find_model, nearest
from tests.kv.shapes import ARCHITECTURES, NAMED, formats, from_config, known

BASE = {"num_hidden_layers": 12, "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2}
MAMBA = {"mamba_n_heads": 16, "mamba_d_head": 64, "mamba_d_state": 32, "mamba_n_groups": 1, "mamba_d_conv": 4}


def kinds(model: Model) -> dict[str, int]:
    return dict(Counter(cache.kind for cache in model.caches))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model_type": "llama"}, {"full": 12}),
        ({"model_type": "never-heard-of"}, {"full": 12}),
        ({"model_type": "mistral", "sliding_window": 4096}, {"sliding": 12}),
        ({"model_type": "mistral", "sliding_window": None}, {"full": 12}),
        ({"model_type": "qwen2", "sliding_window": 4096}, {"full": 12}),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, {"full": 12}),
        (
            {"model_type": "qwen2", "sliding_window": 4, "use_sliding_window": True, "max_window_layers": 8},
            {"full": 8, "sliding": 4},
        ),
        ({"model_type": "gemma2"}, {"sliding": 6, "full": 6}),
        ({"model_type": "gemma3_text"}, {"sliding": 10, "full": 2}),
        ({"model_type": "gemma3_text", "sliding_window_pattern": 4}, {"sliding": 9, "full": 3}),
        ({"model_type": "gemma3n_text", "num_kv_shared_layers": 4}, {"sliding": 7, "full": 1}),
        (
            {"model_type": "exaone4", "sliding_window": 512, "sliding_window_pattern": "LLLG"},
            {"sliding": 9, "full": 3},
        ),
        ({"model_type": "llama4_text"}, {"chunked": 9, "full": 3}),
        ({"model_type": "llama4_text", "no_rope_layers": [1] * 6 + [0] * 6}, {"chunked": 6, "full": 6}),
        ({"model_type": "mimo_v2_flash", "hybrid_layer_pattern": [0] + [1] * 11}, {"full": 1, "sliding": 11}),
        ({"model_type": "qwen3_next"}, {"linear": 9, "full": 3}),
        ({"model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 1}, {"linear": 9, "full": 3}),
        ({"model_type": "bamba", "attn_layer_indices": [3, 9], **MAMBA}, {"linear": 10, "full": 2}),
        ({"model_type": "lfm2", "full_attn_idxs": [2, 5]}, {"linear": 10, "full": 2}),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "MEMEM*EMEM-E"}, {"linear": 5, "full": 1}),
        ({"model_type": "minimax", "attn_type_list": [0] * 7 + [1] + [0] * 4}, {"linear": 11, "full": 1}),
        ({"model_type": "falcon_h1", **MAMBA}, {"full": 12, "linear": 12}),
        ({"model_type": "recurrent_gemma"}, {"linear": 8, "sliding": 4}),
        (
            {"model_type": "mamba2", "num_heads": 32, "head_dim": 64, "state_size": 64, "conv_kernel": 4},
            {"linear": 12},
        ),
        ({"model_type": "deepseek_v3", "kv_lora_rank": 512, "qk_rope_head_dim": 64}, {"mla": 12}),
        (
            {"model_type": "deepseek_v32", "kv_lora_rank": 512, "qk_rope_head_dim": 64},
            {"mla": 12, "index": 12},
        ),
        (
            {
                "model_type": "kimi_linear", "kv_lora_rank": 512, "qk_rope_head_dim": 64,
                "linear_attn_config": {
                    "full_attn_layers": [4, 8, 12], "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11],
                    "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4,
                },
            },
            {"linear": 9, "mla": 3},
        ),
        (
            {"model_type": "deepseek_v4", "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0]},
            {"sliding": 12, "full": 9, "index": 5},
        ),
        ({"model_type": "hunyuan", "use_cla": True, "cla_share_factor": 2}, {"full": 6}),
        ({"model_type": "anything", "layer_types": ["full_attention"] * 5 + ["conv"] * 7, "conv_L_cache": 3},
         {"full": 5, "linear": 7}),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else None,
)  # fmt: skip
def test_layers_by_family(fields: dict[str, Any], expected: dict[str, int]) -> None:
    assert kinds(from_config(**{**BASE, **fields})) == expected


@pytest.mark.parametrize(
    ("fields", "heads"),
    [
        ({"num_key_value_heads": 2}, 2),
        ({"num_key_value_heads": None}, 8),
        ({"num_key_value_heads": None, "num_kv_heads": 4}, 4),
        ({"num_key_value_heads": None, "multi_query": True}, 1),
        ({"num_key_value_heads": None, "multi_query_group_num": 2}, 2),
    ],
)
def test_heads_under_their_several_names(fields: dict[str, Any], heads: int) -> None:
    assert {cache.heads for cache in from_config(**{**BASE, **fields}).caches} == {heads}


def test_attention_has_a_name() -> None:
    assert from_config(**{**BASE, "num_key_value_heads": 8}).attention == "mha"
    assert from_config(**{**BASE, "num_key_value_heads": 1}).attention == "mqa"
    assert from_config(**BASE).attention == "gqa"
    assert known("deepseek-v3.2").attention == "mla"
    assert known("gemma-3-27b").attention == "hybrid"
    assert known("mistral-7b-v0.1").attention == "gqa"


def test_widths_of_keys_values_and_global_layers_differ() -> None:
    flash = from_config(
        **{
            **BASE,
            "model_type": "mimo_v2_flash",
            "head_dim": 192,
            "v_head_dim": 128,
            "swa_num_key_value_heads": 4,
        }
    )
    assert {(c.kind, c.heads, c.key, c.value) for c in flash.caches} == {
        ("full", 2, 192, 128),
        ("sliding", 4, 192, 128),
    }
    gemma = known("gemma-4-31b")
    assert {(c.kind, c.heads, c.key, c.twins) for c in gemma.caches} == {
        ("full", 4, 512, True),
        ("sliding", 16, 256, False),
    }
    assert "K and V" in gemma.notes[0]


def test_shared_layers_keep_nothing_and_say_so() -> None:
    model = known("gemma-3n-e4b")
    assert len(model.layers) == 20
    assert model.layer_count == 35
    assert any("15 layers read another layer's cache" in note for note in model.notes)


def test_layers_of_pruned_models_have_heads_of_their_own() -> None:
    blocks = [
        {"attention": {"n_heads_in_group": 8}},
        {"attention": {"no_op": True, "n_heads_in_group": None}},
    ] * 6
    model = from_config(**{**BASE, "model_type": "nemotron-nas", "block_configs": blocks})
    assert [cache.heads for cache in model.caches] == [1] * 6


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"model_type": "qwen3_next"}, {"convolution": 3 * 8192, "recurrence": 32 * 128 * 128}),
        (
            {"model_type": "nemotron_h", "hybrid_override_pattern": "M" * 12, "mamba_num_heads": 64},
            {"convolution": 3 * (64 * 64 + 2 * 8 * 128), "recurrence": 64 * 64 * 128},
        ),
        ({"model_type": "jamba"}, {"convolution": 3 * 2048, "recurrence": 16 * 2048}),
        ({"model_type": "lfm2", "full_attn_idxs": [0]}, {"convolution": 2 * 1024}),
        ({"model_type": "recurrent_gemma"}, {"convolution": 3 * 1024, "recurrence": 1024}),
        ({"model_type": "minimax", "attn_type_list": [0] * 12, "head_dim": 96}, {"recurrence": 8 * 96 * 96}),
    ],
    ids=lambda value: value.get("model_type") if isinstance(value, dict) else None,
)
def test_states_of_recurrent_layers(fields: dict[str, Any], state: dict[str, int]) -> None:
    model = from_config(**{**BASE, **fields})
    linear = next(cache for cache in model.caches if cache.kind == "linear")
    assert {part.role: part.values for part in linear.state} == state


def test_the_language_part_of_a_multimodal_configuration() -> None:
    inner = {**BASE, "model_type": "gemma3_text", "head_dim": 128, "sliding_window": 1024}
    outer = from_config(model_type="gemma3", text_config=inner, vision_config={"num_hidden_layers": 27})
    assert outer.layers == from_config(**inner).layers
    assert kinds(outer) == {"sliding": 10, "full": 2}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "has no num_hidden_layers"),
        ({"num_hidden_layers": 4}, "num_attention_heads"),
        ({"num_hidden_layers": "four"}, "must be a whole number, not 'four'"),
        ({**BASE, "layer_types": ["full_attention"] * 3}, "describes 3 layers of 12"),
        ({**BASE, "layer_types": ["retention"] * 12}, "layers of type 'retention'"),
        ({**BASE, "model_type": "deepseek_v4"}, "compress_ratios"),
        ({**BASE, "num_key_value_heads": [2, 2]}, "2 layers only"),
        ({**BASE, "kv_lora_rank": 512}, "qk_rope_head_dim"),
        ({**BASE, "num_hidden_layers": 10**10}, "10,000,000,000 layers"),
        ({**BASE, "num_hidden_layers": 1e12}, "layers"),
    ],
)
def test_configurations_that_cannot_be_read_name_the_field(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=r"^config\.json: ") as raised:
        from_config(**fields)
    assert complaint in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size", "head_dim",
     "layer_types",
     "sliding_window", "sliding_window_pattern", "kv_lora_rank", "qk_rope_head_dim", "linear_attn_config",
     "block_configs", "compress_ratios", "hybrid_override_pattern", "text_config", "attn_layer_period",
     "num_kv_shared_layers", "no_rope_layers", "use_cla", "cla_share_factor"]
)  # fmt: skip
TYPES = st.sampled_from([t for row in ARCHITECTURES.architecture for t in row.types] + ["", "x"])


@given(TYPES, st.dictionaries(FIELDS, JSON, max_size=6))
def test_odd_configurations_are_read_or_refused_in_words(model_type: str, fields: dict[str, Any]) -> None:
    complaint = ""
    try:
        size(from_config(**{**BASE, "model_type": model_type, **fields}), formats(), Workload(100))
    except InputError as error:
        complaint = str(error)
    assert "\n" not in complaint


def test_every_known_model_can_be_sized() -> None:
    for named in NAMED:
        model = named.model(ARCHITECTURES)
        assert model.layers
        assert size(model, formats(), Workload(4096, 2)).total > 0
        assert named.source
        assert find_model(NAMED, named.name) is named


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "DeepSeek-V3.2"),
        ("DEEPSEEK-V3", "DeepSeek-V3"),
        ("google/gemma-3-27b-it", "Gemma-3-27B"),
        ("GLM-4.5-Air-FP8", "GLM-4.5-Air"),
    ],
)
def test_models_are_found_by_their_names_on_the_hub(word: str, name: str) -> None:
    found = find_model(NAMED, word)
    assert found is not None
    assert found.name == name


def test_unknown_names_get_a_hint() -> None:
    assert find_model(NAMED, "llama-9") is None
    assert nearest(NAMED, "lama-3.1-8b") == "Llama-3.1-8B"
    assert nearest(NAMED, "zzzz") is None


def test_a_cache_is_hashable_so_that_equal_layers_can_be_counted() -> None:
    assert len({Cache("full", 8, 128, 128), Cache("full", 8, 128, 128)}) == 1
