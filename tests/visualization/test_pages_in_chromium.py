"""Accessibility of every page by axe-core in Chromium, on a phone and on a desk, in light and in dark.

Needs the program chromium, and axe-core's `axe.min.js`: `npm install --global axe-core`, or a path in `AXE_CORE`.
"""

import shutil

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_are_usable(scheme, chromium, chromium_frames, axe, all_pictures, tmp_path):
    shutil.copy(axe, tmp_path / "axe.min.js")
    for name, picture in all_pictures.items():
        page = chromium_frames.checked(picture.html(), name)
        (tmp_path / f"{name}.html").write_text(page.replace("<details>", "<details open>"), encoding="utf-8")
    frames = [(name, width, f"{name}.html") for name in all_pictures for width in chromium_frames.WIDTHS]
    (tmp_path / "frames.html").write_text(chromium_frames.frames_page(frames), encoding="utf-8")
    address = (tmp_path / "frames.html").as_uri()
    results = chromium_frames.look(chromium, address, tmp_path / "profile", scheme)
    assert [(result["name"], result["width"]) for result in results] == [frame[:2] for frame in frames]
    for result in results:
        assert result["broken"] == [], result
        assert result["overflow"] <= 0, result
        assert result["surface"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 25, 30)"}[scheme], result
