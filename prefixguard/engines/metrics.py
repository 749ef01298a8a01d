"""Reads the figures that a server publishes at `/metrics`, in Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_LINE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Row:
    """One figure with its labels."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


class Metrics:
    """The figures of one look at a server. A figure that is not there is None, never 0."""

    def __init__(self, text: str) -> None:
        self.rows = tuple(_rows(text))

    def sum(self, name: str) -> float | None:
        """A figure over all its labels, or None."""
        found = [row.value for row in self.rows if row.name == name]
        return sum(found) if found else None

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of the first row of that name; {} when there is none."""
        return next((row.labels for row in self.rows if row.name == name), {})


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.match(line)
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        yield Row(match[1], value, dict(_LABEL.findall(match[2] or "")))
