"""Recorded exchanges: each byte slice once, each turn as what is new in it, every body back byte for byte."""

from prefixguard.store.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from prefixguard.store.record import LAST, UNASSIGNED, SessionRow, Store
from prefixguard.store.recording import Mode

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
