"""Where the record is when nobody says: told without loading what opens it."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

VARIABLE = "PREFIXGUARD_STORE"


def place(target: str | Path | None = None) -> str | Path:
    """A path or an address: the target, else PREFIXGUARD_STORE, else the user's data directory."""
    return (
        target
        or os.environ.get(VARIABLE)
        or platformdirs.user_data_path("prefixguard", False) / "record.sqlite"
    )
