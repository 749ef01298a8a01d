"""JUnit's XML, which every build server reads: suites of cases, with what failed in them.

For the gate and the linter alike.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.reports.visible import safe

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """A test case.

    failure: (one line, the whole story). error: the same, where it could not
    be told. skipped: why it does not count.
    """

    name: str
    classname: str
    failure: tuple[str, str] | None = None
    error: tuple[str, str] | None = None
    skipped: str | None = None
    filename: str | None = None
    row: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that belong together."""

    name: str
    cases: Sequence[Case]


def to_junit(suites: Sequence[Suite]) -> bytes:
    """The suites as one XML document in UTF-8, with a final line end."""
    root = ET.Element("testsuites", _counts([case for suite in suites for case in suite.cases]))
    root.set("name", "prefixguard")
    for suite in suites:
        element = ET.SubElement(root, "testsuite", {"name": _text(suite.name), **_counts(suite.cases)})
        for case in suite.cases:
            _add(element, case)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.failure is not None for case in cases)),
        "errors": str(sum(case.error is not None for case in cases)),
        "skipped": str(sum(case.skipped is not None for case in cases)),
    }


def _add(suite: ET.Element, case: Case) -> None:
    element = ET.SubElement(suite, "testcase", {"name": _text(case.name), "classname": _text(case.classname)})
    if case.filename is not None:
        element.set("file", _text(case.filename))
        if case.row is not None:
            element.set("line", str(case.row))
    if case.seconds is not None:
        element.set("time", f"{case.seconds:.3f}")
    for kind, problem in (("failure", case.failure), ("error", case.error)):
        if problem is not None:
            message, story = problem
            ET.SubElement(element, kind, {"message": _text(message), "type": kind}).text = _text(story)
    if case.skipped is not None:
        ET.SubElement(element, "skipped", {"message": _text(case.skipped)})


def _text(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", safe(text))
