"""How a report is printed: one file per format. Last step of the linter."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from prefixguard.lint.run import Report
from prefixguard.rulebook import Rulebook

FORMATS = ("text", "json", "sarif", "github", "junit")

type Print = Callable[[Report, Rulebook], str]


def printed(name: str, report: Report, rulebook: Rulebook) -> str:
    """The report in one of `FORMATS`."""
    module = import_module(f"prefixguard.lint.formats.{name if name != 'json' else 'json_'}")
    form: Print = module.printed
    return form(report, rulebook)
