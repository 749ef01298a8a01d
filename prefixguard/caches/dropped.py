"""What a server takes out of a prompt before it reads it: so that nobody blames a client for it.

Between the decoded prompt and its layout. The rule says what is dropped and on
which hosts.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from prefixguard.caches.rule import CacheRule, Dropped
from prefixguard.prompt import Prompt

_LONGEST = 300
"""A longer text holds more than the line that is dropped."""


def as_read(rule: CacheRule, prompt: Prompt, upstream: str | None) -> Prompt:
    """The prompt without a first system text that this server drops; the same object where it drops none.

    upstream: where the request went; None where nobody knows, and then the rule's own server is meant.
    """
    if not rule.dropped or not prompt.head:
        return prompt
    host = (urlsplit(upstream).hostname or upstream) if upstream else ""
    text = prompt.head[0][1].text
    if len(text) > _LONGEST or not any(
        text.startswith(one.start) and _fits(one, host) for one in rule.dropped
    ):
        return prompt
    at = 0 if prompt.order[0] == "head" else len(prompt.tools)
    read = replace(prompt, head=prompt.head[1:])
    # What was derived for the whole prompt holds for the rest of it.
    for name in ("segments", "exacts"):
        if name in prompt.__dict__:
            derived = prompt.__dict__[name]
            read.__dict__[name] = (*derived[:at], *derived[at + 1 :])
    return read


def _fits(dropped: Dropped, host: str) -> bool:
    return not host or not dropped.hosts or any(fnmatchcase(host, pattern) for pattern in dropped.hosts)
