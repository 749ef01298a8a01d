"""Reads fields of a model's configuration: by several names, checked, the file named in every complaint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard.errors import InputError

MOST_LAYERS = 4096
"""Today's largest models have a few hundred; a list of so many is still cheap."""


class Fields:
    """The fields of one configuration over the defaults of its architecture."""

    def __init__(
        self, source: str, fields: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.source = source
        self._fields = fields
        self._defaults = defaults or {}

    def get(self, *names: str) -> Any:
        """The first of these fields that is there and not null, else the default, else None."""
        for fields in (self._fields, self._defaults):
            for name in names:
                if fields.get(name) is not None:
                    return fields[name]
        return None

    def integer(self, *names: str) -> int | None:
        """A whole number of at least 0, or None without such a field. Raises InputError for anything else."""
        value = self.get(*names)
        if value is None or value is False:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or value < 0:
            raise InputError(f"{self.source}: {' or '.join(names)} must be a whole number, not {value!r}")
        return int(value)

    def needed(self, *names: str) -> int:
        """The same, where nothing can be said without it."""
        value = self.integer(*names)
        if value is None or value == 0:
            raise InputError(
                f"{self.source}: has no {' or '.join(names)}: not the configuration of a language model"
            )
        return value

    def layers(self, *names: str) -> int:
        """The number of layers. Raises InputError where there is none, or no model could have as many."""
        value = self.needed(*names)
        if value > MOST_LAYERS:
            raise InputError(f"{self.source}: says {value:,} layers; no model has more than {MOST_LAYERS:,}")
        return value

    def numbers(self, *names: str) -> list[int] | None:
        """A list of whole numbers, or None where the field is not a list."""
        value = self.get(*names)
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            return None
        return [int(item) for item in value]

    def strings(self, *names: str) -> list[str] | None:
        """A list of words, or None where the field is not one."""
        value = self.get(*names)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            return None
        return value

    def inner(self, name: str) -> Fields:
        """An object inside, empty where there is none."""
        value = self.get(name)
        return Fields(self.source, value if isinstance(value, dict) else {})
