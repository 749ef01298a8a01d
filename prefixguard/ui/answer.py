"""How the loop that serves pages gets an answer from the desk's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Answer[T]:
    """An answer that is given in one thread and awaited in the loop of another."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()

    def give(self, find: Callable[[], T]) -> None:
        """Finds the answer and passes it on, or what was raised instead."""
        try:
            value = find()
        except Exception as error:  # noqa: BLE001  whoever asked gets it
            self._pass_on(error, None)
        else:
            self._pass_on(None, lambda: self.future.set_result(value))

    def _pass_on(self, error: Exception | None, set_value: Callable[[], None] | None) -> None:
        def settle() -> None:
            if self.future.done():  # nobody waits any more
                return
            if error is not None:
                self.future.set_exception(error)
            elif set_value is not None:
                set_value()

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle)
