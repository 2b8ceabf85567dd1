"""Everything that is read or told apart by a colour can be, in light and in dark."""

import pytest

from keras_bert_layers.visualization import _colors as colors

TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0  # WCAG 2.2, criteria 1.4.3 and 1.4.11
SCHEMES = ("light", "dark")


def ratio(first, second, scheme):
    return colors.contrast(getattr(first, scheme), getattr(second, scheme))


def test_contrast_is_that_of_the_guidelines():
    assert colors.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert colors.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert colors.contrast("#123456", "#123456") == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_can_be_read(scheme):
    for color in (colors.TEXT, colors.MUTED):
        assert ratio(color, colors.SURFACE, scheme) >= TEXT_CONTRAST
    for step in range(colors.NUM_STEPS):
        assert ratio(*colors.step_colors(step), scheme) >= TEXT_CONTRAST
    for index, color in enumerate(colors.CATEGORIES):
        assert ratio(colors.TEXT, colors.tint(index), scheme) >= TEXT_CONTRAST
        assert colors.contrast(color.light, "#ffffff") >= TEXT_CONTRAST, "a label in a figure"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_lines_can_be_seen(scheme):
    for color in (*colors.CATEGORIES, colors.BORDER, colors.Color(colors.BETWEEN, colors.BETWEEN)):
        assert ratio(color, colors.SURFACE, scheme) >= LINE_CONTRAST


def test_steps_go_from_the_surface_to_the_accent():
    assert [colors.step_of(weight) for weight in (-0.1, 0, 0.07, 0.5, 1, 1.1)] == [0, 0, 1, 4, 8, 8]
    assert colors.step_colors(0)[0] == colors.SURFACE
    assert colors.step_colors(colors.NUM_STEPS - 1)[0] == colors.ACCENT
