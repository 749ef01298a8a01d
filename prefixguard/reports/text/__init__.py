"""The analysis for people, in a terminal or a pipe: rich renderables, printed through `console()`."""

from prefixguard.reports.text.explanation import explain_turn
from prefixguard.reports.text.line import turn_line, what_happened
from prefixguard.reports.text.paper import console
from prefixguard.reports.text.summary import render_report, render_session
from prefixguard.reports.text.tables import sessions_table

__all__ = [
    "console",
    "explain_turn",
    "render_report",
    "render_session",
    "sessions_table",
    "turn_line",
    "what_happened",
]
