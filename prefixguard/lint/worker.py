"""A process that reads a part of a project for another: asked on standard input, answers on standard output.

Started by `parallel` where threads forbid a fork; both ends are this package.
"""

from __future__ import annotations

import gc
import pickle
import sys

from prefixguard.lint.cache import FactCache
from prefixguard.lint.parallel import read
from prefixguard.lint.project import Project
from prefixguard.lint.run import DEEPEST


def main() -> None:
    """Read what is asked for and write what was found."""
    (paths, cache, knowledge), share = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the parent
    gc.disable()
    sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST))
    project = Project(paths, FactCache(cache) if cache is not None else None)
    results = [read(project, knowledge, [project.files[index] for index in part]) for part in share]
    sys.stdout.buffer.write(pickle.dumps(results))


if __name__ == "__main__":
    main()
