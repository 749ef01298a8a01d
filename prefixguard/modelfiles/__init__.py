"""Reads what a model says of itself, from its own files: config.json, GGUF. The one door to `kv.Model`."""

from prefixguard.modelfiles.gguf import Header, read_header
from prefixguard.modelfiles.opening import open_model

__all__ = ["Header", "open_model", "read_header"]
