"""The style sheet of all pictures: `picture.css` and the colors."""

from __future__ import annotations

from pathlib import Path

from keras_bert_layers.visualization import _colors as colors


def style_sheet() -> str:
    """The rules, all of them for the figure alone, so that a notebook or a site keeps its own style.

    `light-dark` follows the `color-scheme` of the page: what the reader prefers, or what a switch of the site sets. The
    classes `s0` to `s8` are shades of weights, `c0` to `c5` categories.
    """
    figure = "figure.kbl-picture"
    names = ("SURFACE", "TEXT", "MUTED", "BORDER", "ACCENT")
    variables = " ".join(f"--{name.lower()}: {getattr(colors, name).css()};" for name in names)
    rules = f"{figure} {{ {variables} }}\n" + Path(__file__).with_name("picture.css").read_text(encoding="utf-8")
    for step in range(colors.NUM_STEPS):
        background, text = colors.step_colors(step)
        rules += f"{figure} td.s{step} {{ background: {background.css()}; color: {text.css()}; }}\n"
    for style, color in colors.STYLES.items():
        rules += f"{figure} svg .{style} {{ stroke: {color.css()}; fill: {color.css()}; }}\n"
    for index in range(len(colors.CATEGORIES)):
        rules += f"{figure} mark.c{index} {{ background: {colors.tint(index).css()}; }}\n"
    return rules
