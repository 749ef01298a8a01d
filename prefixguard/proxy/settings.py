"""What a proxy is to do, and the start of its recorder.

Apart from `serve`, so that the recorder can start while mitmproxy is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from prefixguard.errors import InputError
from prefixguard.proxy.frames import Event
from prefixguard.proxy.hosts import is_loopback
from prefixguard.proxy.link import Link
from prefixguard.proxy.upstreams import Target

type Mode = Literal["base-url", "forward"]

_RECORDER: Final = (sys.executable, "-m", "prefixguard.proxy.recorder")
_STORE: Final = "PREFIXGUARD_STORE"


@dataclass(frozen=True)
class Settings:
    """What a proxy is to do. Raises InputError for what it must not do.

    folder: where the certificate authority lies. store: where to record, as the
    store understands it; None for its default. port: 0 for any free one.
    upstream: the only server to send to. names: more names for /to/NAME/...
    hosts: more hosts that forward mode opens. host_names: more names under
    which clients call us. upstream_ca: a PEM file of roots to check upstreams
    by. agent: what runs behind the proxy, where it is known.
    """

    folder: Path
    store: str | None = None
    host: str = "127.0.0.1"
    port: int = 8787
    mode: Mode = "base-url"
    upstream: Target | None = None
    names: Mapping[str, Target] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    upstream_ca: Path | None = None
    agent: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        if self.mode == "forward" and not is_loopback(self.host):
            raise InputError(
                "forward mode would be an open relay on this address: listen on 127.0.0.1, "
                "or use base-URL mode, which sends to configured upstreams only"
            )


def start_recorder(settings: Settings, on_event: Callable[[Event], None] = lambda _: None) -> Link:
    """The link to a recorder process that is starting. Raises InputError when there can be none."""
    # The store is named in the environment, where `ps` shows no password.
    store = {} if settings.store is None else {_STORE: settings.store}
    link = Link(_RECORDER, on_event, env={**settings.environ, **store})
    try:
        link.start()
    except OSError as error:
        raise InputError(f"the recorder could not be started: {error}") from error
    return link
