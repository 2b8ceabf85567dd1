"""The contrast of all colors, in light and in dark."""

import pytest

from keras_bert_layers.visualization import _colors as colors

TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0  # WCAG 2.2, criteria 1.4.3 and 1.4.11
SCHEMES = ("light", "dark")


def luminance(color):
    """Relative luminance of the guidelines."""
    shares = [channel / 255 for channel in bytes.fromhex(color[1:])]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """The contrast ratio of two colors, from 1 to 21."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def ratio(first, second, scheme):
    return contrast(getattr(first, scheme), getattr(second, scheme))


def test_contrast_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#123456", "#123456") == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_can_be_read(scheme):
    for color in (colors.TEXT, colors.MUTED):
        assert ratio(color, colors.SURFACE, scheme) >= TEXT_CONTRAST
    for step in range(colors.NUM_STEPS):
        assert ratio(*colors.step_colors(step), scheme) >= TEXT_CONTRAST
    for index, color in enumerate(colors.CATEGORIES):
        assert ratio(colors.TEXT, colors.tint(index), scheme) >= TEXT_CONTRAST
        assert contrast(color.light, "#ffffff") >= TEXT_CONTRAST, "a label in a figure"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_lines_can_be_seen(scheme):
    for color in (*colors.CATEGORIES, colors.BORDER, colors.Color(colors.BETWEEN, colors.BETWEEN)):
        assert ratio(color, colors.SURFACE, scheme) >= LINE_CONTRAST


def test_steps_go_from_the_surface_to_the_accent():
    assert [colors.step_of(weight) for weight in (-0.1, 0, 0.07, 0.5, 1, 1.1)] == [0, 0, 1, 4, 8, 8]
    assert colors.step_colors(0)[0] == colors.SURFACE
    assert colors.step_colors(colors.NUM_STEPS - 1)[0] == colors.ACCENT
