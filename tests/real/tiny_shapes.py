"""Tiny GGUF models of shapes that keep less than everything: a windowed one and one with latent attention.

Random weights, a vocabulary of a few hundred pieces, a fraction of a megabyte each.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.real.tiny_model import CORPUS, IM_END, IM_START, byte_letters, learn_merges

EMBEDDING, FEED_FORWARD, CONTEXT = 64, 64, 32768


def write_tiny_windowed(path: Path) -> Path:
    """Gemma 3 in small: six layers of one KV head of 64, five of them with a window of 128."""
    layers, heads, width = 6, 2, 64
    writer = _begun(path, "gemma3", layers, heads)
    writer.add_head_count_kv(1)
    writer.add_key_length(width)
    writer.add_value_length(width)
    writer.add_sliding_window(128)
    shapes = {
        "attn_norm": (EMBEDDING,), "attn_q": (heads * width, EMBEDDING), "attn_k": (width, EMBEDDING),
        "attn_v": (width, EMBEDDING), "attn_output": (EMBEDDING, heads * width), "attn_q_norm": (width,),
        "attn_k_norm": (width,), "post_attention_norm": (EMBEDDING,), "post_ffw_norm": (EMBEDDING,),
    }  # fmt: skip
    return _finished(writer, path, layers, shapes)


def write_tiny_latent(path: Path) -> Path:
    """DeepSeek V2 in small: three dense layers with a latent of 64 and 32 rotated values."""
    layers, heads, latent, rotated, plain, value, query = 3, 2, 64, 32, 32, 32, 32
    writer = _begun(path, "deepseek2", layers, heads)
    writer.add_head_count_kv(1)
    writer.add_key_length(latent + rotated)
    writer.add_value_length(latent)
    writer.add_key_length_mla(plain + rotated)
    writer.add_value_length_mla(value)
    writer.add_kv_lora_rank(latent)
    writer.add_q_lora_rank(query)
    writer.add_rope_dimension_count(rotated)
    writer.add_leading_dense_block_count(layers)
    writer.add_expert_count(0)
    writer.add_expert_used_count(0)
    writer.add_expert_feed_forward_length(FEED_FORWARD)
    writer.add_expert_shared_count(0)
    writer.add_expert_weights_scale(1.0)
    shapes = {
        "attn_norm": (EMBEDDING,), "attn_q_a": (query, EMBEDDING), "attn_q_a_norm": (query,),
        "attn_q_b": (heads * (plain + rotated), query), "attn_kv_a_mqa": (latent + rotated, EMBEDDING),
        "attn_kv_a_norm": (latent,), "attn_k_b": (heads, latent, plain), "attn_v_b": (heads, value, latent),
        "attn_output": (EMBEDDING, heads * value),
    }  # fmt: skip
    return _finished(writer, path, layers, shapes, output=True)


def _begun(path: Path, architecture: str, layers: int, heads: int) -> gguf.GGUFWriter:
    writer = gguf.GGUFWriter(path, architecture)
    letters = byte_letters()
    merges = learn_merges(CORPUS, 40)
    tokens = [*letters.values(), *dict.fromkeys(a + b for a, b in merges), IM_START, IM_END]
    writer.add_name(f"tiny-{architecture}")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(tokens) - 2) + [gguf.TokenType.CONTROL] * 2)
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    writer.add_bos_token_id(len(tokens) - 2)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_vocab_size(len(tokens))
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(heads)
    writer.add_layer_norm_rms_eps(1e-6)
    _tensor(writer, "token_embd.weight", (len(tokens), EMBEDDING))
    _tensor(writer, "output_norm.weight", (EMBEDDING,))
    return writer


def _tensor(writer: gguf.GGUFWriter, name: str, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(len(name))
    values = np.ones(shape) if len(shape) == 1 else draw.standard_normal(shape) / 8
    writer.add_tensor(name, values.astype(np.float32))


def _finished(
    writer: gguf.GGUFWriter,
    path: Path,
    layers: int,
    shapes: dict[str, tuple[int, ...]],
    *,
    output: bool = False,
) -> Path:
    if output:
        size = len(byte_letters()) + 42
        _tensor(writer, "output.weight", (size, EMBEDDING))
    feed = {
        "ffn_norm": (EMBEDDING,), "ffn_gate": (FEED_FORWARD, EMBEDDING), "ffn_up": (FEED_FORWARD, EMBEDDING),
        "ffn_down": (EMBEDDING, FEED_FORWARD),
    }  # fmt: skip
    for layer in range(layers):
        for name, shape in (shapes | feed).items():
            _tensor(writer, f"blk.{layer}.{name}.weight", shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
