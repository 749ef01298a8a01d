"""The site's settings, as Sphinx reads them. Nothing on it comes from elsewhere."""

from __future__ import annotations

import os

from docs.site.assemble import ADDRESS, REPOSITORY
from prefixguard import __version__

project = "PrefixGuard"
project_copyright = "The PrefixGuard authors"
release = __version__
html_title = f"PrefixGuard {__version__}"
html_baseurl = os.environ.get("PREFIXGUARD_DOCS_ADDRESS", ADDRESS)
language = "en"
smartquotes = False  # two dashes of an option stay two dashes

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["extra"]
myst_heading_anchors = 4

html_theme = "furo"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "source_repository": REPOSITORY,
    "top_of_page_buttons": [],
    "footer_icons": [],
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
suppress_warnings = ["myst.header"]
