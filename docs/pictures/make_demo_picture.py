"""Makes the picture of the guide to the demo, `demo.png`: starts the demo, takes a screenshot, and stops it.

    python3 docs/pictures/make_demo_picture.py

Needs the extras `demo` and `quickstart`, the package playwright, and the program chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).parent / "demo.png"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PORT = 7875
WIDTH, HEIGHT = 1120, 900  # CSS pixels; in a smaller window, the last tab is in a menu
MILLISECONDS = 60_000


def take(address: str, path: Path) -> None:
    """Shows the attention of all-MiniLM-L6-v2, and takes a screenshot of the window."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        sys.exit("make_demo_picture: needs the program chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.set_default_timeout(MILLISECONDS)
        page.goto(address)
        page.get_by_role("tab", name="Look at attention").click()
        page.get_by_role("button", name="Look", exact=True).click()
        page.locator(".kbl-picture").wait_for()
        page.wait_for_timeout(1000)
        page.screenshot(path=path)
        browser.close()


def main() -> None:
    """Starts the demo without any model of the examples, and always stops it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "examples" / "demo_app.py"), "--folder", folder, "--port", str(PORT)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            if not any("in a browser" in line for line in process.stdout or ()):
                sys.exit("make_demo_picture: the demo did not start")
            take(f"http://127.0.0.1:{PORT}/", PICTURE)
        finally:
            process.terminate()
            process.wait()
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
