"""The pages on the gate and the plugin name what the code has, and nothing else."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from prefixguard.cli.check import command
from prefixguard.configuration import CheckSettings
from prefixguard.reports.verdict import FORMATS
from prefixguard.testing import Recording, plugin

DOCS = Path(__file__).parents[2] / "docs"
GATE = (DOCS / "gate.md").read_text(encoding="utf-8")
PYTEST = (DOCS / "pytest.md").read_text(encoding="utf-8")


def test_every_option_of_the_gate_that_is_named_is_one() -> None:
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GATE)) - {"--prefixguard-log"}
    assert named <= options
    assert {f"--{name}" for name in ("max-breaks", "min-hit-rate", "select", "ignore", "baseline")} <= named


def test_every_setting_and_format_of_the_gate_is_told() -> None:
    for name in CheckSettings.__struct_encode_fields__:
        assert re.search(rf"^{name} = ", GATE, re.MULTILINE), name
    for name in FORMATS:
        assert f"| `{name}` |" in GATE


def test_options_settings_and_arguments_of_the_plugin_are_told() -> None:
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    (group,) = [group for group in parser._groups if group.name == "prefixguard"]
    options = {name for option in group.options for name in option.names()}
    assert set(re.findall(r"--prefixguard-[a-z-]+", PYTEST)) == options
    settings = {name for name in parser._inidict if name.startswith("prefixguard_")}
    assert set(re.findall(r"`(prefixguard_[a-z_]+)`", PYTEST)) == settings
    for name in list(inspect.signature(Recording.assert_prefix_stable).parameters)[1:]:
        assert f"| `{name}` |" in PYTEST
