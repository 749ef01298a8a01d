"""`prefixguard kv`: the contract's JSON, the page, and what wrong input gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from prefixguard.cli.kv import command
from prefixguard.errors import InputError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, env={"COLUMNS": "120"})


def answer(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_the_fields_of_the_contract() -> None:
    found = answer("llama-3.1-8b", "--context", "8192", "--batch", "32")
    assert found["model"] == "Llama-3.1-8B"
    assert found["attention"] == "gqa"
    assert found["bytes_per_token"] == 131072
    assert found["total_bytes"] == found["per_gpu_bytes"] == 34_359_738_368
    assert found["max_sequences"] is None
    (group,) = found["groups"]
    assert (group["kind"], group["layers"], group["bytes"]) == ("full", 32, 34_359_738_368)


def test_what_fits_a_card() -> None:
    found = answer("llama-3.1-8b", "--context", "8192", "--gpu", "h100", "--tp", "2", "--reserve", "2.5")
    memory = found["memory"]
    assert memory["weights_bytes"] == 16_060_522_496 // 2
    assert memory["for_kv_bytes"] == 81559 * (1 << 20) * 92 // 100 - memory["weights_bytes"] - (5 << 29)
    assert found["max_sequences"] == memory["for_kv_bytes"] // (8192 * 65536)


def test_decimal_shares_are_exact() -> None:
    found = answer("llama-3.1-8b", "--memory", "100", "--utilization", "0.9", "--weights", "0")
    assert found["memory"]["for_kv_bytes"] == 90 << 30


def test_what_vllm_admits() -> None:
    found = answer(
        "gemma-3-27b", "--context", "131072", "--memory", "40", "--utilization", "1", "--weights", "0",
        "--engine", "vllm",
    )  # fmt: skip
    engine = found["engine"]
    assert engine["num_blocks"] == 32768
    assert engine["blocks_per_request"] == 8192 + 6 * 577
    assert engine["max_concurrency"] == pytest.approx(2.8117, abs=1e-4)
    assert found["max_sequences"] == 2
    assert found["block_size"] == 16


def test_what_llamacpp_allocates() -> None:
    found = answer(
        "smollm2-135m", "--context", "8192", "--k-dtype", "q8_0", "--v-dtype", "q4_0", "--engine", "llama.cpp"
    )  # fmt: skip
    assert found["engine"]["bytes"] == found["total_bytes"] == 9360 * 8192
    assert found["kv_dtype"] == {"k": "q8_0", "v": "q4_0"}


def test_the_page_says_it_in_words() -> None:
    result = run(
        "deepseek-v3.2", "--context", "1000", "--batch", "3", "--shared-prefix", "640", "--block-size", "64"
    )
    assert result.exit_code == 0
    for words in (
        "latent attention, 61 layers",
        "3 sequences of 1,000",
        "shared by all save",
        "block rounding",
        "Note: ",
    ):
        assert words in result.output


def test_the_context_is_the_models_own_unless_given() -> None:
    assert answer("llama-2-7b")["context"] == 4096


def test_the_list_names_every_model_with_its_source() -> None:
    result = run("--list")
    assert result.exit_code == 0
    assert "gpt-oss-120b" in result.output
    assert "73,728" in result.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "name a model"),
        (("no-such-model",), "no file and no known model"),
        (("llama-3.1-8b", "--kv-dtype", "q9"), "no KV format is called 'q9'"),
        (("llama-3.1-8b", "--gpu", "H1000"), "no GPU is called"),
        (("llama-3.1-8b", "--gpu", "H100", "--memory", "80"), "not both"),
        (("llama-3.1-8b", "--gpu", "H100", "--utilization", "1.5"), "--utilization must lie"),
        (("kimi-k2", "--gpu", "H100"), "with --weights GiB"),
        (("llama-3.1-8b", "--tp", "3"), "cannot be divided among 3 GPUs"),
        (("llama-3.1-8b", "--context", "10", "--shared-prefix", "20"), "shared prefix of 20"),
    ],
)
def test_wrong_input_is_one_line(arguments: tuple[str, ...], complaint: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert complaint in str(error)
    assert "\n" not in str(error)


def test_a_model_without_a_context_asks_for_one(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2}')
    error = run(str(path)).exception
    assert isinstance(error, InputError)
    assert "--context" in str(error)
    assert answer(str(path), "--context", "10")["total_bytes"] == 2 * 2 * 64 * 2 * 10


def test_numbers_that_are_none_are_usage_errors() -> None:
    for value in ("x", "-1", "1/0"):
        assert run("llama-3.1-8b", "--memory", value).exit_code == 2
