"""Runs the benches: `python -m bench` for all, `python -m bench scale matching` for some.

A bench is a module of this folder with `run()`, which gives rows of a name, a
value, the target that the project promises and whether it is held. The exit
status is 1 when a target is missed.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from pathlib import Path

from bench.rows import show


def names() -> list[str]:
    """The modules of this folder that measure something."""
    folder = Path(__file__).parent
    return [
        m.name
        for m in pkgutil.iter_modules([str(folder)])
        if not (m.ispkg or m.name.startswith("_")) and "\ndef run(" in (folder / f"{m.name}.py").read_text()
    ]


def main(asked: list[str]) -> int:
    """Runs the benches asked for. Returns the exit status."""
    unknown = [name for name in asked if name not in names()]
    if unknown:
        print(f"no such bench: {', '.join(unknown)}; have {', '.join(names())}", file=sys.stderr)
        return 2
    missed = 0
    for name in asked or names():
        start = time.monotonic()
        rows = importlib.import_module(f"bench.{name}").run()
        show(name, rows, time.monotonic() - start)
        missed += sum(getattr(row, "held", None) is False for row in rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
