"""The event loop of the proxy: uvloop where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A fresh loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()

    class Loop(uvloop.Loop):
        """uvloop hands `eager_start=None` to task factories; those of Python before 3.13.4 refuse it."""

        def set_task_factory(self, factory: Callable[..., Any] | None) -> None:
            super().set_task_factory(None if factory is None else _without_none(factory))

    return Loop()


def _without_none(factory: Callable[..., Any]) -> Callable[..., Any]:
    def make(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any) -> Any:
        if options.get("eager_start", False) is None:
            del options["eager_start"]
        return factory(loop, coro, **options)

    return make


def run[T](main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a fresh loop."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
