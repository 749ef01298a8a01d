"""The environment variables that bring a client's requests to the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from prefixguard.proxy.upstreams import UpstreamRules

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_CA_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CODEX_CA_CERTIFICATE", "CURL_CA_BUNDLE")


def base_url_variables(rules: UpstreamRules, url: str) -> dict[str, str]:
    """For clients whose base URL comes from the environment."""
    return {name: url + path for upstream in rules.upstream for name, path in upstream.env.items()}


def forward_variables(
    url: str, bundle: Path, certificate: Path, environ: Mapping[str, str]
) -> dict[str, str]:
    """For clients that go through an HTTPS proxy and trust what the environment names.

    NODE_EXTRA_CA_CERTS adds to Node's roots; the others replace the client's,
    and so name the bundle. Local servers are not called through the proxy.
    """
    known = [part for part in environ.get("NO_PROXY", environ.get("no_proxy", "")).split(",") if part.strip()]
    no_proxy = ",".join([*known, *(name for name in _LOCAL if name not in known)])
    variables = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), url)
    variables |= {"NO_PROXY": no_proxy, "no_proxy": no_proxy}
    variables |= dict.fromkeys(_CA_VARIABLES, str(bundle))
    variables["NODE_EXTRA_CA_CERTS"] = str(bundle if environ.get("NODE_EXTRA_CA_CERTS") else certificate)
    return variables
