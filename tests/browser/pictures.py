"""Draws docs/images/report*.png from the session that the tests use: `python -m tests.browser.pictures`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.conftest import ARGUMENTS
from browser.sessions import coding_session
from browser.test_report import written

IMAGES = Path(__file__).parents[2] / "docs" / "images"
# name, place, scheme, width, height, device pixels to a pixel
PICTURES = (
    ("report.png", "#/s/1/t/26", "light", 1240, 860, 1),
    ("report-session.png", "#/s/1", "dark", 1240, 620, 1),
)


def main() -> None:
    """Writes the pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        report = written(Path(folder) / "report.html", coding_session())
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name, place, scheme, width, height, scale in PICTURES:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=scheme,  # type: ignore[arg-type]
                device_scale_factor=scale,
            )
            page.goto(f"{report.as_uri()}{place}")
            page.wait_for_selector("main h1:visible")
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / name)
        browser.close()


if __name__ == "__main__":
    main()
