"""Reads a body as the fold does, and follows a JSON Pointer in it."""

from __future__ import annotations

import json
from typing import Any

from prefixguard.exchange import Exchange
from prefixguard.prompt import Prompt
from prefixguard.wire.decoder import Decoder

PARAMETERS = ("tool_choice", "reasoning.effort", "response_format")


def exchange(path: str, body: Any, **more: Any) -> Exchange:
    return Exchange(0.0, path, json.dumps(body).encode(), **more)


def read(path: str, body: Any) -> Prompt:
    return Decoder({"*": PARAMETERS}).prompt(exchange(path, body))


def resolve(body: Any, pointer: str) -> Any:
    """The value at a JSON Pointer."""
    for written in pointer.split("/")[1:]:
        name = written.replace("~1", "/").replace("~0", "~")
        body = body[int(name)] if isinstance(body, list) else body[name]
    return body
