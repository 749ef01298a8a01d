"""A logger for LiteLLM that records every call in the store, in process.

    import litellm
    from prefixguard.importers.litellm_callback import PrefixGuardLogger

    litellm.callbacks = [PrefixGuardLogger()]

In a LiteLLM proxy's configuration: `callbacks: prefixguard.importers.litellm_callback.logger`.
Keys are never stored: LiteLLM's payload holds none, and what looks like one is
masked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixguard.exchange import Capture
from prefixguard.importers.formats import named_format
from prefixguard.importers.in_process import InProcess
from prefixguard.importers.litellm import capture_of
from prefixguard.importers.told import Told
from prefixguard.store import Mode

if TYPE_CHECKING:
    CustomLogger = object
else:
    from litellm.integrations.custom_logger import CustomLogger


class PrefixGuardLogger(CustomLogger):
    """LiteLLM calls its methods; none of them raises or waits.

    store: the record, PREFIXGUARD_STORE or the usual place by default.
    session: the run that calls belong to which name none (`litellm_session_id`).
    mode: "full", "redacted" or "hashes".
    """

    def __init__(
        self, store: str | Path | None = None, *, session: str | None = None, mode: Mode = "full"
    ) -> None:
        super().__init__()
        self.recording = InProcess(store, session=session, mode=mode)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A call was answered."""
        self._record(kwargs)

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A call failed."""
        self._record(kwargs)

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """A call was answered, in an event loop."""
        self._record(kwargs)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """A call failed, in an event loop."""
        self._record(kwargs)

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until the calls so far are stored; whether they are. At exit it is done anyway."""
        return self.recording.flush(timeout)

    def _record(self, kwargs: Any) -> None:
        self.recording.take(lambda: payload_capture(kwargs))


def payload_capture(kwargs: Any) -> Capture | None:
    """The capture of a call that LiteLLM logs; None for one that asked no model."""
    payload = kwargs.get("standard_logging_object")
    if not isinstance(payload, dict):
        return None
    return capture_of(payload, named_format("litellm"), Told("litellm"))


def __getattr__(name: str) -> Any:
    # A proxy's configuration names an instance; nobody else should pay for one.
    if name == "logger":
        made = PrefixGuardLogger()
        globals()["logger"] = made
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
