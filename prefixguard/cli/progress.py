"""A bar on a terminal for long work; nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

type Tell = Callable[[int, int, str], None]
"""Takes how much is done, of how much, and what is done now."""


@contextmanager
def progress_bar() -> Iterator[Tell]:
    """Shows a bar on standard error while it is open, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(done: int, total: int, doing: str) -> None:
            bar.update(task, completed=done, total=total, description=doing)

        yield tell
