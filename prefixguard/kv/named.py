"""The models that are known by name: published configurations as data, `rules/models/*.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from prefixguard.kv.architectures import ArchitectureTable
from prefixguard.kv.config import read_config
from prefixguard.kv.shape import Model
from prefixguard.rulebook import Dated


class NamedModel(Dated, frozen=True, forbid_unknown_fields=True):
    """One published model.

    config: the fields of its config.json that KV memory depends on. aliases:
    patterns of the last part of its name on the hub, in lower case. weights:
    bytes of the published checkpoint, where they are known.
    """

    name: str
    config: Mapping[str, Any]
    aliases: tuple[str, ...] = ()
    weights: int | None = None

    def model(self, architectures: ArchitectureTable) -> Model:
        """Its shape. Raises InputError."""
        source = "size of the published checkpoint" if self.weights else ""
        return read_config(self.name, self.config, architectures, self.name).weighing(self.weights, source)


def find_model(rows: Iterable[NamedModel], name: str) -> NamedModel | None:
    """The model that a name means: its own name first, then the first pattern that fits."""
    word = name.rpartition("/")[2].lower()
    known = list(rows)
    exact = [row for row in known if word == row.name.lower()]
    fits = exact or [row for row in known if any(fnmatchcase(word, pattern) for pattern in row.aliases)]
    return fits[0] if fits else None


def nearest(rows: Iterable[NamedModel], name: str) -> str | None:
    """A known name that looks like this one, for a hint."""
    names = {row.name.lower(): row.name for row in rows}
    near = get_close_matches(name.rpartition("/")[2].lower(), names, 1, 0.5)
    return names[near[0]] if near else None
