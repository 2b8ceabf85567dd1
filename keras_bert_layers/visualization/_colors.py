"""The colors of all pictures, for light and dark backgrounds, with enough contrast to read them."""

from __future__ import annotations

from dataclasses import dataclass

#: How many shades a weight can have, from no weight to all of it.
NUM_STEPS = 9
# Text is white from this shade on for light backgrounds, and black from this one on for dark backgrounds.
_FIRST_WHITE, _FIRST_BLACK = 7, 5


@dataclass(frozen=True)
class Color:
    """A color for light backgrounds and one for dark backgrounds, as `#rrggbb`."""

    light: str
    dark: str

    def css(self) -> str:
        """The color that suits the page: CSS Color 5, section 5.2."""
        return f"light-dark({self.light}, {self.dark})"

    def mixed(self, other: Color, share: float, share_in_dark: float | None = None) -> Color:
        """The color that is `share` of the way to the other one."""
        dark = _mixed(self.dark, other.dark, share if share_in_dark is None else share_in_dark)
        return Color(_mixed(self.light, other.light, share), dark)


SURFACE = Color("#ffffff", "#15191e")
TEXT = Color("#1b1f24", "#e6edf3")
MUTED = Color("#57606a", "#a3adb8")
BORDER = Color("#8a939d", "#6e7883")
ACCENT = Color("#00677d", "#4cc2d6")

#: Of an image, which has one color for both.
BETWEEN = "#0f8ba3"

#: Of lines, points and marked text. They also differ in shape or label.
CATEGORIES = (
    ACCENT,
    Color("#b3400b", "#ff9a62"),
    Color("#6d3fc0", "#bfa2ff"),
    Color("#2d7011", "#86d05f"),
    Color("#b0266f", "#ff8fc4"),
    Color("#7a5c00", "#e0bf4a"),
)

#: CSS classes of lines and areas.
STYLES = {"axis": BORDER} | {f"c{index}": color for index, color in enumerate(CATEGORIES)}


def step_of(weight: float) -> int:
    """The shade of a weight in [0, 1]."""
    return min(NUM_STEPS - 1, max(0, round(weight * (NUM_STEPS - 1))))


def step_colors(step: int) -> tuple[Color, Color]:
    """The background of a shade, from the surface to the accent, and a color of text for it."""
    text = Color("#ffffff" if step >= _FIRST_WHITE else "#000000", "#000000" if step >= _FIRST_BLACK else "#ffffff")
    return SURFACE.mixed(ACCENT, step / (NUM_STEPS - 1)), text


def tint(index: int) -> Color:
    """The background of text that belongs to a category."""
    return SURFACE.mixed(CATEGORIES[index % len(CATEGORIES)], 0.2, 0.25)


def _mixed(first: str, second: str, share: float) -> str:
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + "".join(f"{round(one + share * (other - one)):02x}" for one, other in pairs)
