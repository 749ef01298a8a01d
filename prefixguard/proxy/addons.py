"""Calls the addons that listen to a hook, and no others.

mitmproxy asks every addon at every hook whether it listens, twice per hook of
a flow. The set of our addons does not change while the proxy runs, so the
answer is kept: this pays for more than all that recording costs.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from mitmproxy import exceptions, flow, hooks
from mitmproxy.addonmanager import AddonManager

_log = logging.getLogger("mitmproxy.addonmanager")


class SteadyAddons(AddonManager):
    """An addon manager that remembers who listens to what."""

    def __init__(self, master: Any) -> None:
        super().__init__(master)  # type: ignore[no-untyped-call]
        self._listeners: dict[str, list[Callable[..., Any]]] = {}
        self._hears_updates: bool | None = None

    def add(self, *addons: Any) -> None:
        """Add addons to the end of the chain."""
        super().add(*addons)  # type: ignore[no-untyped-call]
        self._forget()

    def remove(self, addon: Any) -> None:
        """Take an addon out of the chain."""
        super().remove(addon)  # type: ignore[no-untyped-call]
        self._forget()

    def _forget(self) -> None:
        self._listeners.clear()
        self._hears_updates = None

    async def handle_lifecycle(self, event: hooks.Hook) -> None:
        """Call the listeners of a hook, and those who hear of every change of a flow, where there are any."""
        await self.trigger_event(event)
        (data,) = event.args()
        if self._hears_updates is None:
            self._hears_updates = any(hasattr(addon, hooks.UpdateHook.name) for addon in self.chain)
        if self._hears_updates and isinstance(data, flow.Flow):
            await self.trigger_event(hooks.UpdateHook([data]))

    async def trigger_event(self, event: hooks.Hook) -> None:
        """Call every listener; an error in one is logged and the next is called."""
        listeners = self._listeners.get(event.name)
        if listeners is None:
            listeners = self._listeners[event.name] = [
                listener for addon in self.chain for _, listener in self._iter_hooks(addon, event)
            ]
        for listener in listeners:
            try:
                result = listener(*event.args())
                if result is not None and inspect.isawaitable(result):
                    await result
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception as error:  # noqa: BLE001  a listener's fault must not reach the traffic
                _log.exception("Addon error: %s", error)
