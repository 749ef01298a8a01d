"""Tells one credential from another without keeping either.

A salted digest of the key goes into each capture, so that the analysis can see
that the account changed. The salt is random and belongs to the store: digests
of two stores cannot be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qs

_CREDENTIAL_HEADERS = (
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "ocp-apim-subscription-key",
    "cookie",
)
_CREDENTIAL_PARAMETERS = ("key", "api_key", "api-key", "access_token")


def account(headers: Mapping[str, str], path: str, salt: bytes) -> str | None:
    """16 hexadecimal digits that stand for the credential of a request, or None when it has none.

    headers: names in lower case, unmasked. path: with the query.
    """
    for name in _CREDENTIAL_HEADERS:
        value = headers.get(name)
        if value:
            return _digest(value, salt)
    query = path.partition("?")[2]
    if query:
        parameters = parse_qs(query)
        for name in _CREDENTIAL_PARAMETERS:
            if parameters.get(name):
                return _digest(parameters[name][0], salt)
    return None


@lru_cache(maxsize=256)
def _digest(credential: str, salt: bytes) -> str:
    key = credential.rpartition(" ")[2]
    return hashlib.blake2b(key.encode("utf-8", "surrogateescape"), key=salt, digest_size=8).hexdigest()
