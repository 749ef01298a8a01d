"""The proxy that this machine has to use to reach the upstreams, where it has to use one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from prefixguard.proxy.hosts import is_loopback
from prefixguard.proxy.upstreams import Target


@dataclass(frozen=True, slots=True)
class Via:
    """An HTTP proxy. credentials: value of `Proxy-Authorization`, or None."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    credentials: str | None = None


def via_of(target: Target, environ: Mapping[str, str]) -> Via | None:
    """The proxy that HTTPS_PROXY or HTTP_PROXY names for a target, unless NO_PROXY exempts it.

    Names in lower case come first, as in curl. Loopback is never called through
    a proxy. Proxies that are not HTTP are not used.
    """
    if is_loopback(target.host) or target.host.endswith(".localhost"):
        return None
    exempt = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    if proxy_bypass_environment(f"{target.host}:{target.port}", {"no": exempt}):
        return None
    name = f"{target.scheme}_proxy"
    url = environ.get(name) or environ.get(name.upper()) or ""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if not url or not parts.hostname or parts.scheme not in ("http", "https"):
        return None
    credentials = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = "Basic " + base64.b64encode(pair.encode()).decode()
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Via(scheme, parts.hostname, parts.port or (443 if scheme == "https" else 80), credentials)
