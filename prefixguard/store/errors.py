"""What can go wrong with a store. The recorder catches StoreError, counts it and lets the traffic pass."""

from __future__ import annotations

from prefixguard.errors import PrefixGuardError


class StoreError(PrefixGuardError):
    """The store could not be opened, written or read."""


class StoreBusyError(StoreError):
    """Somebody else holds the store's write lock, longer than the waiting time."""


class StoreFullError(StoreError):
    """There is no room left where the store lies."""


class StoreVersionError(StoreError):
    """The store was written by a newer version, or is not a store at all."""


class StoreDamagedError(StoreError):
    """What was read back is not what was written."""
