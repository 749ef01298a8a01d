"""Which layers a measured model has: they decide what its server can keep."""

from __future__ import annotations

from prefixguard.errors import InputError
from prefixguard.kv import Model
from prefixguard.modelfiles import open_model
from prefixguard.rulebook import Rulebook


def layers(named: str | None, served: str, rules: Rulebook) -> Model | None:
    """The model that the user named, else the one that the server names, where it is known here.

    Raises InputError for a name of the user's that leads nowhere.
    """
    if named:
        return open_model(named, rules)
    try:
        return open_model(served, rules) if served else None
    except InputError:
        return None


def windowed(shape: Model | None, *, whole_windows: bool = False) -> bool | None:
    """Whether some layers keep less than the whole prompt; None when the layers are not known.

    whole_windows: the server keeps windows as if they were full.
    """
    if shape is None:
        return None
    kinds = {cache.kind for cache in shape.caches}
    return "linear" in kinds or (not whole_windows and bool(kinds & {"sliding", "chunked"}))
