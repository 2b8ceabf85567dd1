"""Opens pages in Chromium one after another, each in a frame of a given width, and collects their reports."""

import html
import json
import re
import subprocess

# A page reports to the one around it: by how many pixels it is too wide, its background, and the rules it breaks.
CHECK = """<script src="axe.min.js"></script><script>
axe.run().then(found => parent.postMessage({
  name: NAME, overflow: document.documentElement.scrollWidth - innerWidth,
  surface: getComputedStyle(document.querySelector("figure") ?? document.body).backgroundColor,
  broken: found.violations.map(rule => rule.id + " at " + rule.nodes[0].html),
}, "*"));
</script>"""
WIDTHS = (390, 1280)  # CSS pixels: a phone and a desk
SCHEMES = {"dark": 0, "light": 1}  # Chromium's numbers for them
TIME = 120_000  # milliseconds of the pages' own clock

# A window of Chromium is at least 500 wide, a frame in it may have any width. Pages are opened one after another.
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


def checked(page, name):
    """A page that reports, with `axe.min.js` beside it, and without its policy, which lets no script run."""
    page = re.sub("<meta http-equiv[^>]+>", "", page)
    return page.replace("</body>", CHECK.replace("NAME", json.dumps(name)) + "</body>")


def frames_page(frames):
    """The page around the frames: name, width and address of each. A framed page posts an object to its parent."""
    return FRAMES.replace("FRAMES", json.dumps(frames))


def look(chromium, address, profile, scheme):
    """The reports of the framed pages.

    Args:
        chromium: the program.
        address: of what `frames_page` made.
        profile: an empty folder for the browser.
        scheme: "dark" or "light".
    """
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--virtual-time-budget={TIME}"]
    command += [f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
    command += ["--window-size=1400,1000", "--dump-dom", address]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    return json.loads(html.unescape(re.search(r'data-results="([^"]*)"', printed)[1]))
