"""Every page in a real browser: what axe-core finds, on a phone and on a desk, in light and in dark.

Needs the program chromium, and axe-core's `axe.min.js`: `npm install --global axe-core`, or a path in `AXE_CORE`.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

WIDTHS = (390, 1280)  # CSS pixels
SCHEMES = {"dark": 0, "light": 1}  # Chromium's numbers for them
TIME = 120_000  # milliseconds of the pages' own clock

# The page tells the one around it: how many pixels it is too wide, the colour behind, and each rule that it breaks.
CHECK = """<script src="axe.min.js"></script><script>
axe.run().then(found => parent.postMessage({
  name: NAME, overflow: document.documentElement.scrollWidth - innerWidth,
  surface: getComputedStyle(document.querySelector("figure")).backgroundColor,
  broken: found.violations.map(rule => rule.id + " at " + rule.nodes[0].html),
}, "*"));
</script>"""

# A window of Chromium is at least 500 wide, a frame in it is as wide as one likes. One page is looked at after another.
FRAMES = """<!DOCTYPE html><body><script>
const frames = FRAMES, results = [];
function next() {
  document.body.replaceChildren();
  if (frames.length === results.length) { document.body.dataset.results = JSON.stringify(results); return; }
  const [name, width, file] = frames[results.length], frame = document.createElement("iframe");
  Object.assign(frame, {width, height: 844, src: file});
  document.body.append(frame);
}
onmessage = message => { results.push({width: frames[results.length][1], ...message.data}); next(); };
next();
</script>"""


@pytest.fixture(scope="module")
def chromium():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found or pytest.skip("needs the program chromium")


@pytest.fixture(scope="module")
def axe():
    path = os.environ.get("AXE_CORE")
    if path is None and shutil.which("npm"):
        root = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, check=False).stdout.strip()
        path = Path(root, "axe-core", "axe.min.js")
    if path is None or not Path(path).is_file():
        pytest.skip("needs axe-core: `npm install --global axe-core`, or the path of its axe.min.js in AXE_CORE")
    return Path(path)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_are_usable(scheme, chromium, axe, all_pictures, tmp_path):
    shutil.copy(axe, tmp_path / "axe.min.js")
    for name, picture in all_pictures.items():
        page = re.sub("<meta http-equiv[^>]+>", "", picture.html())  # which lets no script run, ours neither
        page = page.replace("</body>", CHECK.replace("NAME", json.dumps(name)) + "</body>")
        (tmp_path / f"{name}.html").write_text(page.replace("<details>", "<details open>"), encoding="utf-8")
    frames = [(name, width, f"{name}.html") for name in all_pictures for width in WIDTHS]
    (tmp_path / "frames.html").write_text(FRAMES.replace("FRAMES", json.dumps(frames)), encoding="utf-8")
    results = look(chromium, tmp_path / "frames.html", SCHEMES[scheme])
    assert [(result["name"], result["width"]) for result in results] == [frame[:2] for frame in frames]
    for result in results:
        assert result["broken"] == [], result
        assert result["overflow"] <= 0, result
        assert result["surface"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 25, 30)"}[scheme], result


def look(chromium, page, scheme):
    """What the pages told."""
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--virtual-time-budget={TIME}"]
    command += [f"--user-data-dir={page.parent / 'profile'}", f"--blink-settings=preferredColorScheme={scheme}"]
    command += ["--window-size=1400,1000", "--dump-dom", page.as_uri()]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    return json.loads(html.unescape(re.search(r'data-results="([^"]*)"', printed)[1]))
