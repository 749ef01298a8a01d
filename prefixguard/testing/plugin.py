"""The pytest plugin: the fixture `prefixguard`, the marker `prefix_stable`, and the options.

Loaded at every start of pytest, so that it imports nothing that pytest has not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from prefixguard.testing.recording import Recording
    from prefixguard.testing.stability import Limits

FIXTURE = "prefixguard"
MARKER = "prefix_stable"
_LIMITS = ("max_breaks", "max_rebilled_tokens", "min_ratio", "allow", "server")
_LONGEST = 120  # characters of a log's name

_recording: pytest.StashKey[Recording] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("prefixguard", "stable prompt prefixes")
    group.addoption(
        "--prefixguard-all",
        action="store_true",
        default=None,
        help="Hold every test that calls a model to a stable prefix, as if it had the marker.",
    )
    group.addoption(
        "--prefixguard-log",
        metavar="DIR",
        help="Write what each test sent as an exchange log in this folder.",
    )
    group.addoption("--prefixguard-server", metavar="NAME", help="The cache rule to judge by.")
    group.addoption(
        "--prefixguard-max-breaks", type=int, metavar="N", help="Breaks that each test may have (0)."
    )
    group.addoption("--prefixguard-allow", metavar="CODES", help="Codes that do not count, with commas.")
    group.addoption(
        "--prefixguard-min-ratio",
        type=float,
        metavar="0..1",
        help="The least share of what earlier requests sent that stays as it is.",
    )
    parser.addini("prefixguard_all", "As --prefixguard-all.", type="bool", default=False)
    parser.addini("prefixguard_log", "As --prefixguard-log, relative to the ini file.", default="")
    parser.addini("prefixguard_server", "As --prefixguard-server.", default="")
    parser.addini("prefixguard_max_breaks", "As --prefixguard-max-breaks.", default="")
    parser.addini("prefixguard_allow", "As --prefixguard-allow.", type="args", default=[])
    parser.addini("prefixguard_min_ratio", "As --prefixguard-min-ratio.", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(max_breaks=0, allow=(), min_ratio=None, max_rebilled_tokens=None, server=None): "
        "record the test's calls of models, and fail it when they break their prompt's prefix.",
    )


@pytest.fixture
def prefixguard(request: pytest.FixtureRequest) -> Recording:
    """Records every call of a model that the test makes; `prefixguard.assert_prefix_stable()`."""
    recording: Recording = request.node.stash[_recording]
    return recording


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begins to record, before any fixture of the test can call a model."""
    config = item.config
    wanted = (
        FIXTURE in getattr(item, "fixturenames", ())
        or item.get_closest_marker(MARKER) is not None
        or _all(config)
        or _log_folder(config) is not None
    )
    if wanted:
        from prefixguard.testing.recording import Recording

        item.stash[_recording] = Recording(config.rootpath, _limits(item)).__enter__()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Holds a marked test to its limits when it has passed by itself."""
    result = yield
    recording = item.stash.get(_recording, None)
    marked = item.get_closest_marker(MARKER) is not None
    if recording is not None and (marked or (_all(item.config) and len(recording))):
        told = recording.complaint()
        if told is not None:
            pytest.fail(told, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Ends the recording, and writes the log where one is asked for."""
    try:
        return (yield)
    finally:
        recording = item.stash.get(_recording, None)
        if recording is not None:
            recording.__exit__()
            folder = _log_folder(item.config)
            if folder is not None and len(recording):
                recording.write_log(folder / log_name(item.nodeid))


def log_name(nodeid: str) -> str:
    """A file name for a test: its own, so that workers never share one."""
    plain = re.sub(r"[^\w.-]+", "-", nodeid.replace("/", ".").replace("::", ".").removesuffix("]"))
    readable = plain.strip("-")[:_LONGEST]
    if "[" in nodeid or readable != plain:
        # Parameters may differ only in what a file name cannot hold.
        readable += "-" + hashlib.sha256(nodeid.encode()).hexdigest()[:8]
    return readable + ".jsonl"


def _all(config: pytest.Config) -> bool:
    return bool(config.getoption("prefixguard_all") or config.getini("prefixguard_all"))


def _log_folder(config: pytest.Config) -> Path | None:
    given = config.getoption("prefixguard_log")
    if given:
        return config.invocation_params.dir / str(given)
    configured = config.getini("prefixguard_log")
    if not configured:
        return None
    return (config.inipath.parent if config.inipath else config.rootpath) / str(configured)


def _limits(item: pytest.Item) -> Limits:
    """The limits of a test: its marker's, then the command line's, then the configuration's."""
    from prefixguard.testing.recording import as_codes
    from prefixguard.testing.stability import Limits

    config = item.config
    limits = Limits()
    for found in (_configured(config), _given(config), _marked(item)):
        if found.get("allow") is not None:
            found["allow"] = as_codes(found["allow"])
        limits = limits.but(found)
    return limits


def _configured(config: pytest.Config) -> dict[str, Any]:
    found: dict[str, Any] = {
        "server": config.getini("prefixguard_server") or None,
        "allow": config.getini("prefixguard_allow") or None,
    }
    for name, kind in (("max_breaks", int), ("min_ratio", float)):
        text = str(config.getini(f"prefixguard_{name}"))
        try:
            found[name] = kind(text) if text else None
        except ValueError as error:
            raise pytest.UsageError(f"prefixguard_{name}: {text!r} is no number") from error
    return found


def _given(config: pytest.Config) -> dict[str, Any]:
    return {
        name: config.getoption(f"prefixguard_{name}") for name in _LIMITS if name != "max_rebilled_tokens"
    }


def _marked(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return {}
    unknown = sorted(set(marker.kwargs) - set(_LIMITS))
    if marker.args or unknown:
        what = ", ".join(unknown) or "an argument without a name"
        raise pytest.UsageError(
            f"{item.nodeid}: {MARKER} does not take {what}; it takes {', '.join(_LIMITS)}"
        )
    return dict(marker.kwargs)
