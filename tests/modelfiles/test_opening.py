"""A model by the name that a command line gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixguard.errors import InputError
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook

RULEBOOK = Rulebook()
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 4096,
}  # fmt: skip


def put(folder: Path, config: object = CONFIG) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def test_a_file_and_its_folder(tmp_path: Path) -> None:
    path = put(tmp_path / "my-model")
    for name in (path, path.parent):
        model = open_model(str(name), RULEBOOK)
        assert model.name == "my-model"
        assert (len(model.layers), model.context, model.weights) == (2, 4096, None)


def test_weights_are_those_of_the_checkpoint_beside_it(tmp_path: Path) -> None:
    path = put(tmp_path / "m")
    (path.parent / "a.safetensors").write_bytes(b"x" * 100)
    (path.parent / "b.safetensors").write_bytes(b"x" * 11)
    assert open_model(str(path), RULEBOOK).weights == 111
    (path.parent / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 5000}}')
    assert open_model(str(path), RULEBOOK).weights == 5000


def test_the_hub_cache_is_read_without_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    put(tmp_path / "models--some-org--some-model" / "snapshots" / "abc")
    model = open_model("some-org/some-model", RULEBOOK)
    assert (model.name, len(model.layers)) == ("some-org/some-model", 2)
    with pytest.raises(InputError, match="no file and no known model"):
        open_model("some-org/another", RULEBOOK)


def test_a_known_name_needs_no_file() -> None:
    assert open_model("meta-llama/Llama-3.1-8B-Instruct", RULEBOOK).name == "Llama-3.1-8B"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("config.json", None, "No such file"),
        ("config.json", "{", "not JSON"),
        ("config.json", "[1]", "holds no JSON object"),
        ("config.json", "[" * 100_000, "not JSON"),
        ("lama-3.1-8b", None, "did you mean Llama-3.1-8B"),
    ],
)
def test_what_cannot_be_opened_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str | None, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_text(content)
    with pytest.raises(InputError) as raised:
        open_model(name, RULEBOOK)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)
