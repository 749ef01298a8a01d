"""Writes a tiny llama model with random weights: half a megabyte, a real GGUF.

It understands nothing, and that is enough: what a prompt cache keeps depends on
the token ids alone. Two properties make its replies exactly predictable:

- it can only sample capital letters, digits and the end of its turn: every
  other row of the output matrix is zero, and some letter's logit is positive;
- no merge of its vocabulary touches a capital letter or a digit, so a reply,
  tokenised again, gives the very ids that were sampled.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

EMBEDDING, HEADS, KV_HEADS, LAYERS, FEED_FORWARD, CONTEXT = 64, 2, 1, 2, 128, 8192
SPEAKABLE = string.ascii_uppercase + string.digits

IM_START, IM_END = "<|im_start|>", "<|im_end|>"
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")

CORPUS = (
    "you are a careful agent that answers questions about the weather in a city and about files "
    "the tools that you may call are given below and every call names a function with its arguments "
    "name description parameters properties type string object required function content system user "
    "assistant read write search list please tell me what the time is and where the rain will fall "
    "a summary of the conversation so far follows and then the next question of the user comes "
)


def byte_letters() -> dict[int, str]:
    """The printable letter that stands for each byte in a byte-level vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    hidden = [byte for byte in range(256) if byte not in letters]
    return letters | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def learn_merges(corpus: str, count: int) -> list[tuple[str, str]]:
    """Byte-pair merges of lower-case words, the most frequent pair first."""
    space = byte_letters()[ord(" ")]
    words = Counter(tuple(space + word) for word in corpus.split())
    merges: list[tuple[str, str]] = []
    while len(merges) < count:
        pairs = Counter[tuple[str, str]]()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        joined = Counter[tuple[str, ...]]()
        for word, times in words.items():
            new: list[str] = []
            i = 0
            while i < len(word):
                step = 2 if word[i : i + 2] == best else 1
                new.append("".join(word[i : i + step]))
                i += step
            joined[tuple(new)] += times
        words = joined
    return merges


def write_tiny_llama(path: Path, chat_template: str, seed: int = 7) -> Path:
    """Write the model to `path` (under 1 MB) and return it."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[-1] ** 0.5)

    writer, tokens = _vocabulary(path, chat_template, ())
    output = np.zeros((len(tokens), EMBEDDING), dtype=np.float32)
    for letter in SPEAKABLE:
        output[tokens.index(letter)] = weights(EMBEDDING) * 8
    output[tokens.index(IM_END)] = weights(EMBEDDING) * 9
    return _finish(writer, path, weights(len(tokens), EMBEDDING) * 8, output, weights)


def write_scripted_llama(path: Path, chat_template: str, script: Sequence[str]) -> Path:
    """A model that answers every prompt that ends in a line break with the same pieces, then ends its turn.

    Each piece is one token; what follows is decided by the last token alone.
    """
    writer, tokens = _vocabulary(path, chat_template, [piece for piece in script if piece not in TAGS])
    embedding = np.zeros((len(tokens), EMBEDDING), dtype=np.float32)
    output = np.zeros((len(tokens), EMBEDDING), dtype=np.float32)
    says = [byte_letters()[ord("\n")], *script, IM_END]
    for place, (said, follows) in enumerate(pairwise(says)):
        embedding[tokens.index(said), place] = 8
        output[tokens.index(follows), place] = 8
    embedding[:, -1] += 0.1  # no row is all zero, so that none is divided by nothing

    def nothing(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.float32)

    return _finish(writer, path, embedding, output, nothing)


def _vocabulary(path: Path, chat_template: str, more: Sequence[str]) -> tuple[gguf.GGUFWriter, list[str]]:
    """A writer with everything but tensors, and its tokens. more: texts that are one token each."""
    merges = learn_merges(CORPUS, 160)
    tokens = list(byte_letters().values()) + list(dict.fromkeys(a + b for a, b in merges))
    kinds = [gguf.TokenType.NORMAL] * len(tokens)
    more = [piece for piece in more if piece not in tokens]
    tokens += [IM_START, IM_END, *TAGS, *more]
    kinds += [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.USER_DEFINED] * (len(TAGS) + len(more))

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("prefixguard-tiny-llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    writer.add_bos_token_id(tokens.index(IM_START))
    writer.add_eos_token_id(tokens.index(IM_END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(chat_template)
    return writer, tokens


def _finish(
    writer: gguf.GGUFWriter,
    path: Path,
    embedding: np.ndarray,
    output: np.ndarray,
    weights: Callable[..., np.ndarray],
) -> Path:
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", np.ones(EMBEDDING, dtype=np.float32))
    writer.add_tensor("output.weight", output)
    head = EMBEDDING // HEADS
    for layer in range(LAYERS):
        shapes = {
            "attn_q": (EMBEDDING, EMBEDDING), "attn_k": (KV_HEADS * head, EMBEDDING),
            "attn_v": (KV_HEADS * head, EMBEDDING), "attn_output": (EMBEDDING, EMBEDDING),
            "ffn_gate": (FEED_FORWARD, EMBEDDING), "ffn_up": (FEED_FORWARD, EMBEDDING),
            "ffn_down": (EMBEDDING, FEED_FORWARD),
        }  # fmt: skip
        for name, shape in shapes.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights(*shape))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(EMBEDDING, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
