"""An SGLang server: its radix tree as `/server_info` shows it, and the ids of a prompt from its `/tokenize`.

Written from the source of 0.5.23, whose tree our rule was held against
(`tests/oracle/radix.py`); no running server has been measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard.engines.client import JsonClient
from prefixguard.engines.tokenizing import TokenizingServer
from prefixguard.errors import ServerError

_PLACES = ("/server_info", "/get_server_info")  # the second one is the older name


def server_info(client: JsonClient) -> Mapping[str, Any] | None:
    """What an SGLang server says of itself; None when the server is no SGLang, or does not answer."""
    for place in _PLACES:
        try:
            told = client.get(place)
        except ServerError:
            continue
        # vLLM has a /server_info too, in development mode; it says nothing of a radix cache.
        if isinstance(told, dict) and "disable_radix_cache" in told and "version" in told:
            return told
    return None


class Sglang(TokenizingServer):
    """An SGLang server at a URL. Raises ServerError when there is none.

    info: what it says of itself. page: tokens per page of its cache. caching:
    whether it keeps prefixes. reports: whether its usage names cached tokens.
    tokens: that the cache holds, None where it does not say.
    """

    kind = "sglang"

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0) -> None:
        super().__init__(url, key=key, timeout=timeout)
        info = server_info(self._client)
        if info is None:
            raise ServerError(f"{self.url} is no SGLang server: its /server_info says something else")
        self.info = info
        self.page = _number(info, "page_size") or 1
        self.caching = not info.get("disable_radix_cache")
        self.reports = bool(info.get("enable_cache_report"))
        self.tokens = _number(info, "max_total_num_tokens")
        self._introduce(info["version"])
        self.longest = self.longest or _number(info, "context_length")


def _number(info: Mapping[str, Any], name: str) -> int | None:
    value = info.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
