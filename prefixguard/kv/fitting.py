"""How many sequences fit: a GPU's memory, less weights and reserve, over the bytes of a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import msgspec

from prefixguard.errors import InputError
from prefixguard.kv.sizing import Sizes
from prefixguard.rulebook import Dated

GIB = 1 << 30
MIB = 1 << 20


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A card. memory_mib: as the driver reports it. nominal: taken from the data sheet, not from a driver."""

    name: str
    memory_mib: int
    aliases: tuple[str, ...] = ()
    nominal: bool = False


class GpuTable(Dated, frozen=True, forbid_unknown_fields=True):
    """`rules/gpus.toml`."""

    gpu: tuple[Gpu, ...]

    def find(self, name: str) -> Gpu:
        """A card by its name, however it is written. Raises InputError listing what there is."""
        word = _plain(name)
        for row in self.gpu:
            if word in (_plain(row.name), *map(_plain, row.aliases)):
                return row
        names = ", ".join(row.name for row in self.gpu)
        raise InputError(f"no GPU is called {name!r}; have {names}; or say --memory GiB")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one GPU in bytes: all of it, the engine's share, and what else lies in it."""

    total: int
    utilization: Fraction
    weights: int
    reserve: int

    @property
    def for_kv(self) -> int:
        """Bytes left for keys and values; below 0 when the weights do not fit."""
        return int(self.total * self.utilization) - self.weights - self.reserve


def fitting_sequences(sizes: Sizes, memory: int) -> int:
    """How many sequences of this length fit `memory` bytes on each GPU, the shared prefix kept once."""
    if memory < sizes.common:
        return 0
    return (memory - sizes.common) // sizes.private if sizes.private else 0
