"""Writes a model that vLLM serves without weights: two layers, a vocabulary learnt from Python's own files.

    python tests/oracle/tiny_model.py FOLDER

Needs `tokenizers` alone. Serve it with `--load-format dummy`: what a prefix
cache keeps depends on the token ids, not on what the model makes of them.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEMPLATE = Path(__file__).parents[2] / "prefixguard/engines/templates/chatml-tools.jinja"
CONTEXT = 16384


def write(folder: Path) -> Path:
    """The model in `folder`, which is made. Returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:40]
    tokenizer.train([str(path) for path in texts], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    files = {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>", "chat_template": TEMPLATE.read_text("utf-8"),
            "model_max_length": CONTEXT,
        },
        "config.json": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
            "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 32, "vocab_size": tokenizer.get_vocab_size(),
            "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "hidden_act": "silu",
            "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "bos_token_id": 0, "eos_token_id": 1,
        },
        "generation_config.json": {"eos_token_id": 1},
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
