"""What vLLM and SGLang share: a server whose `/tokenize` lays a chat out as it would answer it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from prefixguard.engines.client import JsonClient
from prefixguard.engines.metrics import Metrics
from prefixguard.errors import ServerError
from prefixguard.exchange import Exchange, Rendered
from prefixguard.rendering import llamacpp as conversion
from prefixguard.rendering.llamacpp import CHAT_APIS, UnsupportedError
from prefixguard.wire.detect import detect, is_side_traffic
from prefixguard.wire.usage import decode_usage

_RENDERED = ("messages", "tools", "chat_template_kwargs", "continue_final_message", "add_generation_prompt")


class TokenizingServer:
    """A server at a URL. Subclasses say what it is, and what its cache is like.

    model: the name under which it serves. longest: the longest sequence that it
    takes, None where it does not say. defaults: fields that every `/tokenize`
    of messages carries.
    """

    kind: str
    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0) -> None:
        self._client = JsonClient(url, key=key, timeout=timeout)
        self.url = self._client.url
        self.problem: str | None = None
        self.version = ""
        self.name = ""
        self.model = ""
        self.longest: int | None = None

    def metrics(self) -> Metrics:
        """The server's figures now. Raises ServerError where it shows none."""
        return Metrics(self._client.text("/metrics"))

    def _introduce(self, version: object) -> None:
        """Takes its version, and from `/v1/models` its model and longest sequence."""
        self.version = str(version)
        self.name = f"{self.kind} {self.version}"
        models = self._client.get("/v1/models")
        first: dict[str, Any] = next(iter(models.get("data") or []), {}) if isinstance(models, dict) else {}
        self.model = str(first.get("id", ""))
        longest = first.get("max_model_len")
        self.longest = longest if isinstance(longest, int) else None

    def render(self, exchange: Exchange) -> Rendered | None:
        """The ids that the server evaluated, or None when they cannot be known; `problem` says why.

        Chat Completions and completions are tokenised as they are. Bodies of
        other APIs are turned into chat messages first, and their ids count only
        when there are as many as the server reported. Never raises ServerError.
        """
        try:
            return self._render(exchange)
        except (UnsupportedError, ServerError, msgspec.DecodeError) as error:
            self.problem = str(error)
            return None

    def _render(self, exchange: Exchange) -> Rendered:
        request = msgspec.json.decode(exchange.request)
        if not isinstance(request, dict):
            raise UnsupportedError("the request is no JSON object")
        format_ = None if is_side_traffic(exchange.path) else detect(exchange.path, request.keys())
        api = format_.name if format_ else "unknown"
        prompt = self._prompt(api, request)
        response = msgspec.json.decode(exchange.response) if exchange.response else None
        found = decode_usage(response) if isinstance(response, dict) else None
        usage = found.usage if found is not None else None
        if usage is None and api != "openai-chat":
            raise UnsupportedError("the server reported no usage to hold the rendered prompt to")
        if usage is not None and usage.total != len(prompt):
            raise UnsupportedError(
                f"the server counted {usage.total} prompt tokens, its tokenizer {len(prompt)}"
            )
        # Of one sampled token none has keys and values; the ids of longer replies are not shown.
        reply = array("i") if usage is not None and usage.output == 1 else None
        self.problem = None
        return Rendered(self.name, prompt, reply)

    def _prompt(self, api: str, request: dict[str, Any]) -> array[int]:
        if api == "completions":
            prompt = request.get("prompt")
            if isinstance(prompt, list) and all(isinstance(i, int) for i in prompt):
                return array("i", prompt)
            if not isinstance(prompt, str):
                raise UnsupportedError("several prompts in one request")
            return self._ids({"model": self.model, "prompt": prompt})
        if api not in CHAT_APIS:
            raise UnsupportedError(f"{api} is no API of a {self.kind} server")
        body = conversion.chat_body(api, request)
        kept = {k: body[k] for k in _RENDERED if k in body}
        return self._ids({"model": self.model, **self.defaults, **kept})

    def _ids(self, body: dict[str, Any]) -> array[int]:
        answer = self._client.post("/tokenize", body)
        ids = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(ids, list):
            raise ServerError(f"{self.url}/tokenize answered without tokens")
        return array("i", ids)
