"""A chat template, run in a sandbox: the text that a local server makes of a chat request.

Templates are code from strangers, so they run in Jinja's immutable sandbox with
the names that `transformers` gives them and nothing else. `strftime_now` is not
given the time: a template that asks for it gets the same text every time, and a
changing clock shows where it belongs, in the server's own rendering.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from prefixguard.errors import InputError
from prefixguard.exchange import Exchange


class ChatTemplate:
    """A compiled template."""

    def __init__(self, source: str, name: str = "chat template") -> None:
        """Raises InputError when the template does not compile."""
        # Jinja takes a tenth of a second to import, and few analyses need it.
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols], autoescape=False
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda pattern: pattern
        self.name = name
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise InputError(f"{name}: {error}") from error

    def render(self, exchange: Exchange) -> str | None:
        """The prompt's text, or None for a request that is no chat request or that the template refuses."""
        from jinja2 import TemplateError

        try:
            body = msgspec.json.decode(exchange.request)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return None
        extra = body.get("chat_template_kwargs")
        try:
            return self._template.render(
                messages=[_message(m) for m in body["messages"]],
                tools=body.get("tools") or None,
                add_generation_prompt=True,
                bos_token="",
                eos_token="",
                **(extra if isinstance(extra, dict) else {}),
            )
        except (TemplateError, TypeError, ValueError, AttributeError, KeyError):
            return None


def _message(message: Any) -> Any:
    """A message as servers hand it to templates: text parts joined, arguments parsed."""
    if not isinstance(message, dict):
        return message
    message = dict(message)
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(p, dict) and "text" in p for p in content):
        message["content"] = "\n".join(str(p["text"]) for p in content)
    return message


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
