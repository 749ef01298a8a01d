"""Writes the demo's small model with 16-bit weights: formats of keys and values without other rounding.

    python -m bench.whole_weights SmolLM2-F16.gguf
    prefixguard measure-kv SmolLM2-F16.gguf --format markdown

The packaged file has 4-bit weights, which are multiplied with activations
rounded to 8 bits: any small difference grows there, and hides what the format
did. docs/kv-quantisation.md has both tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np

from prefixguard.engines.binaries import packaged_model

_LEFT_OUT = ("GGUF.", "general.architecture", "general.file_type", "general.quantization_version")


def write(source: Path, target: Path) -> None:
    """The same model, its matrices in 16 bits and its vectors in 32."""
    read = gguf.GGUFReader(source)
    architecture = read.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for name, field in read.fields.items():
        if not name.startswith(_LEFT_OUT):
            array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if array else None)
    for tensor in read.tensors:
        whole = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        writer.add_tensor(tensor.name, whole if whole.ndim == 1 else whole.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    model = packaged_model()
    if model is None or len(sys.argv) != 2:
        sys.exit("usage: python -m bench.whole_weights TARGET.gguf (with the extra `demo` installed)")
    write(model, Path(sys.argv[1]))
