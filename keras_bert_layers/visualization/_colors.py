"""The colours of all pictures, each for light and for dark surroundings, with contrast that can be read."""

from __future__ import annotations

from dataclasses import dataclass

#: How many steps lie between no weight and all of it.
NUM_STEPS = 9


@dataclass(frozen=True)
class Color:
    """One colour for light surroundings and one for dark ones, as `#rrggbb`."""

    light: str
    dark: str

    def css(self) -> str:
        """The colour that goes with the surroundings: CSS Color 5, section 5.2."""
        return f"light-dark({self.light}, {self.dark})"


SURFACE = Color("#ffffff", "#15191e")
TEXT = Color("#1b1f24", "#e6edf3")
MUTED = Color("#57606a", "#a3adb8")
BORDER = Color("#8a939d", "#6e7883")
ACCENT = Color("#00677d", "#4cc2d6")
NEGATIVE = Color("#b3400b", "#ff9a62")

#: Of an image, which has one colour for both.
BETWEEN = "#0f8ba3"

#: Of lines and points; the text beside them is never told by colour alone.
CATEGORIES = (
    ACCENT,
    NEGATIVE,
    Color("#6d3fc0", "#bfa2ff"),
    Color("#2d7011", "#86d05f"),
    Color("#b0266f", "#ff8fc4"),
    Color("#7a5c00", "#e0bf4a"),
)


def mixed(first: str, second: str, share: float) -> str:
    """The colour that lies `share` of the way from the first to the second."""
    pairs = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(one + share * (other - one)):02x}" for one, other in pairs)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, from 1 to 21; text wants 4.5, a line 3.

    References:
        Web Content Accessibility Guidelines 2.2, "contrast ratio" and criteria 1.4.3 and 1.4.11.
    """
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def step_of(weight: float) -> int:
    """The step of a weight in [0, 1]."""
    return min(NUM_STEPS - 1, max(0, round(weight * (NUM_STEPS - 1))))


def step_colors(step: int) -> tuple[Color, Color]:
    """Background of a step, from the surface to the accent, and the text that can be read on it."""
    share = step / (NUM_STEPS - 1)
    background = Color(
        mixed(SURFACE.light, ACCENT.light, share),
        mixed(SURFACE.dark, ACCENT.dark, share),
    )
    return background, Color(_text_on(background.light), _text_on(background.dark))


def tint(index: int) -> Color:
    """The background of text that belongs to a category."""
    color = CATEGORIES[index % len(CATEGORIES)]
    return Color(mixed(SURFACE.light, color.light, 0.2), mixed(SURFACE.dark, color.dark, 0.25))


def _text_on(background: str) -> str:
    return max("#000000", "#ffffff", key=lambda text: contrast(text, background))


def _channels(color: str) -> tuple[int, ...]:
    return tuple(int(color[start : start + 2], 16) for start in (1, 3, 5))


def _luminance(color: str) -> float:
    shares = [channel / 255 for channel in _channels(color)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
