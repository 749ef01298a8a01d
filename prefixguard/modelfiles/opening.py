"""Where a model's shape is taken from: a config.json, a GGUF file, a folder, a hub cache, a known name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from prefixguard.errors import InputError
from prefixguard.kv import ArchitectureTable, Model, read_config, read_metadata
from prefixguard.kv.named import NamedModel, find_model, nearest
from prefixguard.modelfiles.gguf import read_header
from prefixguard.rulebook import Rulebook


def open_model(name: str, rulebook: Rulebook) -> Model:
    """The model that a command line names.

    A file ending in .json or .gguf; a folder with a config.json; a model of
    the rulebook; `org/name` in the local hub cache. Raises InputError.
    """
    architectures = rulebook.table("architectures", ArchitectureTable)
    path = Path(name)
    if path.is_dir():
        return _from_config(path / "config.json", architectures)
    if path.suffix == ".gguf" or _is_gguf(path):
        header = read_header(path)
        return read_metadata(name, header.fields, architectures, header.size)
    if path.is_file() or path.suffix == ".json":
        return _from_config(path, architectures)
    known = rulebook.tables("models", NamedModel)
    named = find_model(known, name)
    if named is not None:
        return named.model(architectures)
    cached = _hub_config(name)
    if cached is not None:
        return _from_config(cached, architectures, name)
    near = nearest(known, name)
    hint = (
        f"did you mean {near}?" if near else "give a config.json or a GGUF file (`kv --list` names the known)"
    )
    raise InputError(f"no file and no known model is called {name!r}; {hint}")


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _from_config(path: Path, architectures: ArchitectureTable, name: str | None = None) -> Model:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    try:
        config = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: holds no JSON object")
    model = read_config(str(path), config, architectures, name or _title(config, path))
    weights = _checkpoint_bytes(path.parent)
    return model.weighing(weights, "size of the checkpoint beside it") if weights else model


def _title(config: Mapping[str, Any], path: Path) -> str:
    told = config.get("_name_or_path")
    if isinstance(told, str) and told and not told.startswith((".", "/")):
        return told
    return path.parent.name if path.name == "config.json" and path.parent.name else path.stem


def _checkpoint_bytes(folder: Path) -> int | None:
    """Bytes of the safetensors files in a folder: by their index, or else by their sizes."""
    index = folder / "model.safetensors.index.json"
    try:
        if index.is_file():
            size = msgspec.json.decode(index.read_bytes())["metadata"]["total_size"]
            if isinstance(size, int | float):
                return int(size)
        sizes = [file.stat().st_size for file in folder.glob("*.safetensors")]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return None
    return sum(sizes) or None


def _hub_config(name: str) -> Path | None:
    """The config.json of `org/name` in the local cache of the Hugging Face hub, the newest snapshot."""
    if name.count("/") != 1:
        return None
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    found = list(cache.glob(f"models--{name.replace('/', '--')}/snapshots/*/config.json"))
    return max(found, key=lambda path: path.stat().st_mtime, default=None)
