"""A llama.cpp server: what it is, what it makes of a prompt, token for token.

Rendering asks the server's own `/apply-template` and `/tokenize`, which touch
no slot, so that looking at a server does not change what it has cached.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import msgspec

from prefixguard.engines.client import JsonClient
from prefixguard.errors import ServerError
from prefixguard.exchange import Exchange, Rendered
from prefixguard.rendering import llamacpp as conversion
from prefixguard.rendering.llamacpp import CHAT_APIS, RAW_APIS, Json, Reply, UnsupportedError
from prefixguard.turn import Usage
from prefixguard.wire.detect import detect, is_side_traffic
from prefixguard.wire.usage import decode_usage


@dataclass(frozen=True, slots=True)
class Properties:
    """What a server says of itself at `/props`.

    context: tokens that one slot can hold. template: its chat template. end:
    the text of the token that ends a turn.
    """

    build: str
    model: str
    context: int
    slots: int
    template: str
    end: str
    capabilities: Mapping[str, bool]


class LlamaCpp:
    """A llama.cpp server at a URL. Raises ServerError when there is none, or another kind of server.

    problem: why the last call of `render` gave None.
    """

    kind = "llama.cpp"

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0) -> None:
        self._client = JsonClient(url, key=key, timeout=timeout)
        self.url = self._client.url
        self.problem: str | None = None
        self.properties = self._properties()
        self.name = f"llama.cpp {self.properties.build}"

    def _properties(self) -> Properties:
        props = self._client.get("/props")
        if not isinstance(props, dict) or "default_generation_settings" not in props:
            raise ServerError(f"{self.url} is no llama.cpp server: its /props says something else")
        settings = props["default_generation_settings"]
        return Properties(
            build=str(props.get("build_info", "unknown build")),
            model=str(props.get("model_alias") or props.get("model_path", "")),
            context=int(settings.get("n_ctx", 0)) if isinstance(settings, dict) else 0,
            slots=int(props.get("total_slots", 1)),
            template=str(props.get("chat_template", "")),
            end=str(props.get("eos_token") or ""),
            capabilities=dict(props.get("chat_template_caps") or {}),
        )

    # What the server makes of text -----------------------------------------------------------------

    def tokenize(self, text: str, *, special: bool = True, begin: bool = True) -> array[int]:
        """Token ids of a text.

        special: read control tokens in it. begin: add what stands before every prompt.
        """
        answer = self._client.post(
            "/tokenize", {"content": text, "add_special": begin, "parse_special": special}
        )
        ids = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(ids, list):
            raise ServerError(f"{self.url}/tokenize answered without tokens")
        return array("i", ids)

    def apply_template(self, body: bytes | Json) -> str:
        """The text that the server makes of a Chat Completions body."""
        answer = self._client.post("/apply-template", body)
        prompt = answer.get("prompt") if isinstance(answer, dict) else None
        if not isinstance(prompt, str):
            raise ServerError(f"{self.url}/apply-template answered without a prompt")
        return prompt

    def clear(self) -> None:
        """Fills the slot with what no conversation begins with, so that the next prompt reads nothing.

        For servers with one slot that are ours: it takes the cache from whoever uses it.
        """
        ids = self.tokenize("~ ~ ~", begin=False)
        self._client.post("/completion", {"prompt": ids.tolist(), "n_predict": 0})

    # What the server made of an exchange -----------------------------------------------------------

    def render(self, exchange: Exchange) -> Rendered | None:
        """The ids that the server evaluated for an exchange, and those of its reply that stayed in the cache.

        None when they cannot be known, or when their number is not the one that
        the server reported; `problem` then says why. Never raises ServerError.
        """
        try:
            return self._render(exchange)
        except (UnsupportedError, ServerError) as error:
            self.problem = str(error)
            return None

    def _render(self, exchange: Exchange) -> Rendered:
        request = _object(exchange.request, "request")
        format_ = None if is_side_traffic(exchange.path) else detect(exchange.path, request.keys())
        api = format_.name if format_ else "unknown"
        if api in CHAT_APIS:
            body = conversion.chat_body(api, request)
            text = self.apply_template(exchange.request if body is request else body)
            prompt = self.tokenize(text)
        elif api in RAW_APIS:
            body = {}
            prompt = self._raw(conversion.raw_prompt(request))
        else:
            raise UnsupportedError(
                f"{exchange.path} is no path of a llama.cpp server that evaluates a prompt"
            )
        response = _object(exchange.response, "response") if exchange.response else {}
        usage = _usage(exchange, response)
        if usage is not None and usage.read is not None and usage.total != len(prompt):
            raise UnsupportedError(
                f"the server counted {usage.total} prompt tokens, its template and tokenizer {len(prompt)}"
            )
        said = conversion.reply_of(api, request, response) if response else None
        reply = self._reply(body, prompt, said, usage.output) if said and usage and usage.output else None
        self.problem = None
        return Rendered(self.name, prompt, reply)

    def _raw(self, pieces: conversion.Raw) -> array[int]:
        """The ids of a completion prompt: only its first text gets what stands before every prompt."""
        ids = array("i")
        for index, piece in enumerate(pieces):
            ids.extend(self.tokenize(piece, begin=index == 0) if isinstance(piece, str) else piece)
        return ids

    def _reply(self, body: Json, prompt: array[int], said: Reply, generated: int) -> array[int] | None:
        """The reply's ids that were decoded, so that they are in the cache; None when they cannot be told."""
        if said.ids:
            return array("i", said.ids[: generated - 1]) if len(said.ids) >= generated - 1 else None
        if said.calls or (said.reasoning and said.content):
            return self._structured(body, prompt, said, generated)
        ids = self.tokenize(said.reasoning or said.content, special=False, begin=False)
        kept = conversion.decoded(ids, generated, said.ended)
        return None if kept is None else ids[:kept]

    def _structured(self, body: Json, prompt: array[int], said: Reply, generated: int) -> array[int] | None:
        """A reply of several parts, laid out by the template as it would be in the next request."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return None
        # What follows keeps the server from reading the reply as one that is to be continued. Behind a
        # question many templates drop the reasoning of the reply; behind a tool's result they keep it.
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in said.calls]
        followers = (results or [{"role": "tool", "content": "x"}], [{"role": "user", "content": "x"}])
        # Some parsers leave the line break before the end of the reasoning in it, and the template adds one.
        trimmed = replace(said, reasoning=said.reasoning.strip("\n"))
        variants = (said,) if trimmed == said else (said, trimmed)
        for variant, after in product(variants, followers):
            try:
                text = self.apply_template({**body, "messages": [*messages, variant.message(), *after]})
            except ServerError:
                continue
            ids = self.tokenize(text)
            if ids[: len(prompt)] != prompt:
                continue
            tail = ids[len(prompt) :]
            length = next((i for i, token in enumerate(tail) if token in self._ends_of_turn), None)
            if length is not None and conversion.decoded(tail[:length], generated, said.ended) is not None:
                return tail[: generated - 1]
        return None

    @cached_property
    def _ends_of_turn(self) -> frozenset[int]:
        """The ids that end a turn: the model's own, and what the template puts behind a reply."""
        ends = set(self.tokenize(self.properties.end, begin=False)) if self.properties.end else set()
        asked = [{"role": "user", "content": "x"}]
        answered = [*asked, {"role": "assistant", "content": "x"}, *asked]
        before = self.tokenize(self.apply_template({"messages": asked}))
        after = self.tokenize(self.apply_template({"messages": answered}))
        word = self.tokenize("x", begin=False)
        at = len(before) + len(word)
        if after[:at] == before + word and at < len(after):
            ends.add(after[at])
        return frozenset(ends)


def _object(body: bytes, what: str) -> Json:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnsupportedError(f"the {what} is not JSON") from error
    if not isinstance(decoded, dict):
        raise UnsupportedError(f"the {what} is no JSON object")
    return decoded


def _usage(exchange: Exchange, response: Json) -> Usage | None:
    for body in (response, _object(exchange.usage, "usage") if exchange.usage else {}):
        found = decode_usage(body) if body else None
        if found is not None:
            return found.usage
    return None
