"""Recorded exchanges: each byte slice once, each turn as what is new in it, every body back byte for byte.

The record itself is imported when it is first used: it brings SQLAlchemy, which
takes longer to load than most logs take to analyse.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from prefixguard.store.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from prefixguard.store.names import LAST, UNASSIGNED
from prefixguard.store.recording import Mode

if TYPE_CHECKING:
    from prefixguard.store.record import SessionRow, Store

__all__ = [
    "LAST",
    "UNASSIGNED",
    "Mode",
    "SessionRow",
    "Store",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreVersionError",
]


def __getattr__(name: str) -> object:
    if name in ("SessionRow", "Store"):
        return getattr(importlib.import_module("prefixguard.store.record"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
