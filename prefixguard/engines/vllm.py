"""A vLLM server: its cache as `/metrics` shows it, and the ids of a prompt from its own `/tokenize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from prefixguard.engines.client import JsonClient
from prefixguard.engines.tokenizing import TokenizingServer
from prefixguard.errors import ServerError

_CACHE = "vllm:cache_config_info"


def is_vllm(client: JsonClient) -> bool:
    """Whether the server at the other end says that it is one. False when it does not answer."""
    try:
        version = client.get("/version")
        return isinstance(version, dict) and "version" in version and _CACHE in client.text("/metrics")
    except ServerError:
        return False


class Vllm(TokenizingServer):
    """A vLLM server at a URL. Raises ServerError when there is none.

    block: tokens per block of its cache. caching: whether it keeps prefixes.
    retention: its retention interval for windowed layers as it shows it
    ("0", "None", a number), "" where it shows none.
    """

    kind = "vllm"
    defaults: ClassVar[Mapping[str, Any]] = {"add_generation_prompt": True}

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0) -> None:
        super().__init__(url, key=key, timeout=timeout)
        version = self._client.get("/version")
        if not isinstance(version, dict) or "version" not in version:
            raise ServerError(f"{self.url} is no vLLM server: its /version says something else")
        self.cache = self.metrics().labels(_CACHE)
        if not self.cache.get("block_size", "").isdecimal():
            raise ServerError(f"{self.url}/metrics shows no {_CACHE}: is its /metrics switched off?")
        self.block = int(self.cache["block_size"])
        self.caching = self.cache.get("enable_prefix_caching", "True") == "True"
        self.retention = self.cache.get("prefix_cache_retention_interval", "")
        self._introduce(version["version"])
