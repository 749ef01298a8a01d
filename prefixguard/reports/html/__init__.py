"""The report as pages: one file that needs nothing else, and the same pages for `prefixguard ui`.

The way of the data: an analysis and the fold that made it -> the views of
`overview`, `session` and `turn` (msgspec structs, JSON through
`prefixguard.reports.json.encode`) -> a source object in the browser -> the page
in `page/`, plain modules without a build step. `document` packs all views of an
analysis and the page into one HTML file; `prefixguard ui` serves the page's
files as they are and answers its questions from the record. See `page/page.js`
for what a source has to offer.
"""

from prefixguard.reports.html.overview import Listed, Overview, overview
from prefixguard.reports.html.session import SessionView, session_view
from prefixguard.reports.html.turn import TextWindow, TurnView, segment_text, turn_view

__all__ = [
    "Listed",
    "Overview",
    "SessionView",
    "TextWindow",
    "TurnView",
    "overview",
    "segment_text",
    "session_view",
    "turn_view",
]
