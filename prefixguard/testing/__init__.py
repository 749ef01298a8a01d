"""Tests that hold a prompt's prefix stable: for pytest, and for any other test runner.

With pytest, ask for the fixture `prefixguard`; see `docs/pytest.md`. Elsewhere:

    with Recording() as recording:
        run_my_agent()
    recording.assert_prefix_stable()

Nothing here is imported before it is used, so that pytest starts as fast as without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefixguard.testing.recording import Recording, assert_prefix_stable
    from prefixguard.testing.stability import UnstablePrefixError

__all__ = ["Recording", "UnstablePrefixError", "assert_prefix_stable"]


def __getattr__(name: str) -> Any:
    if name in ("Recording", "assert_prefix_stable"):
        from prefixguard.testing import recording

        return getattr(recording, name)
    if name == "UnstablePrefixError":
        from prefixguard.testing.stability import UnstablePrefixError

        return UnstablePrefixError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
