"""GitHub's workflow commands: a line on standard output that becomes a remark beside the code.

For the gate and the linter alike.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from prefixguard.finding import Severity
from prefixguard.reports.visible import safe

type Level = Literal["error", "warning", "notice"]

LEVELS: Mapping[Severity, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def annotation(
    level: Level,
    message: str,
    *,
    title: str = "",
    filename: str | None = None,
    row: int | None = None,
    column: int | None = None,
    end_row: int | None = None,
    end_column: int | None = None,
) -> str:
    """One workflow command, without a line end. Rows and columns count from 1.

    Nothing in the message can end the command or begin another one.
    """
    properties: dict[str, object] = {}
    if filename:
        properties["file"] = _relative(filename)
        properties |= {"line": row, "col": column, "endLine": end_row, "endColumn": end_column}
    properties["title"] = title or None
    said = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value is not None)
    return f"::{level}{' ' + said if said else ''}::{_data(message)}"


def _relative(filename: str) -> str:
    path = os.path.relpath(filename)
    return (filename if path.startswith("..") else path).replace(os.sep, "/")


def _data(text: object) -> str:
    return safe(str(text)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: object) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
