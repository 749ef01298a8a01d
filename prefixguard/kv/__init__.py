"""KV memory: from a model and a workload to bytes, and from a GPU to the sequences that fit it.

Pure and exact: whole numbers and fractions in, whole numbers out. Models come
from `modelfiles`, knowledge from `rules/`.
"""

from prefixguard.kv.architectures import ArchitectureTable
from prefixguard.kv.config import read_config
from prefixguard.kv.fitting import GIB, MIB, GpuTable, Memory, fitting_sequences
from prefixguard.kv.formats import Format, Formats, FormatTable
from prefixguard.kv.gguf import read_metadata
from prefixguard.kv.shape import Cache, Model, StatePart
from prefixguard.kv.sizing import Group, Sizes, Workload, size

__all__ = [
    "GIB",
    "MIB",
    "ArchitectureTable",
    "Cache",
    "Format",
    "FormatTable",
    "Formats",
    "GpuTable",
    "Group",
    "Memory",
    "Model",
    "Sizes",
    "StatePart",
    "Workload",
    "fitting_sequences",
    "read_config",
    "read_metadata",
    "size",
]
