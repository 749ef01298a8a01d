"""What every test may rely on: the environment of the person who runs it does not change a result."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "FORCE_COLOR", "PREFIXGUARD_STORE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
