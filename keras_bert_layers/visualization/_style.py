"""The style sheet of all pictures."""

from __future__ import annotations

from keras_bert_layers.visualization import _colors as colors

# Every rule is inside of the figure, so that a notebook or a site keeps its own look. `light-dark` follows the
# `color-scheme` of the page around: of a page by itself what the reader prefers, of a site what its switch says.
_RULES = """
figure.kbl-picture {
  box-sizing: border-box; display: block; width: auto; max-width: 100%; margin: 1em 0; padding: 1em;
  background: SURFACE; color: TEXT; border: 1px solid BORDER; border-radius: 0.5em;
  font: 1em/1.5 system-ui, sans-serif; text-align: start; overflow-wrap: anywhere;
  & figcaption {
    margin: 0 0 0.75em; max-width: 70ch; font-style: normal;
    & h1, & strong { display: block; margin: 0 0 0.25em; font-size: 1.125em; font-weight: 600; line-height: 1.3; }
    & p { margin: 0; }
  }
  & .scroll { overflow-x: auto; max-width: 100%; container-type: inline-size; }
  & :focus-visible { outline: 3px solid ACCENT; outline-offset: 2px; }
  & table {
    display: table; width: auto; margin: 0.5em 0; border-collapse: collapse;
    font-size: 0.875em; overflow-wrap: normal;
  }
  & caption { caption-side: top; padding: 0 0 0.5em; text-align: start; color: MUTED; }
  & caption span { position: sticky; inset-inline-start: 0; display: inline-block; max-width: min(70ch, 100cqi); }
  & th, & td {
    padding: 0.25em 0.5em; border: 1px solid BORDER; background: SURFACE; color: TEXT;
    text-align: start; vertical-align: middle; font-weight: normal; white-space: nowrap; max-width: none;
  }
  & th { font-weight: 600; }
  & tbody th { position: sticky; inset-inline-start: 0; max-width: 22em; white-space: normal; }
  & td.number { text-align: end; font-variant-numeric: tabular-nums; }
  & bdi { font-family: ui-monospace, monospace; }
  & td.wrap { min-width: 12em; white-space: normal; }
  & .bar { display: block; height: 0.75em; min-width: 1px; background: ACCENT; }
  & svg { display: block; max-width: none; }
  & .legend { margin: 0 0 0.75em; padding: 0; list-style: none; }
  & .legend li { margin: 0; font-size: 0.875em; & svg { display: inline-block; vertical-align: -0.15em; } }
  & .charts { display: flex; flex-wrap: wrap; gap: 1em; }
  & svg text { fill: currentColor; font-family: system-ui, sans-serif; }
  & svg text.token { font-family: ui-monospace, monospace; }
  & svg .axis { stroke: BORDER; fill: none; }
  & svg .positive { fill: ACCENT; }
  & svg .negative { fill: NEGATIVE; }
  & img { display: block; width: 72px; height: 72px; image-rendering: pixelated; border: 1px solid BORDER; }
  & .text { font-size: 1.0625em; line-height: 2.2; white-space: pre-wrap; & bdi { font-family: inherit; } }
  & mark {
    padding: 0.15em 0.3em; border: 1px solid; border-radius: 0.25em; color: TEXT; box-decoration-break: clone;
  }
  & mark small { font-weight: 600; font-size: 0.75em; }
  & fieldset { margin: 0 0 0.75em; padding: 0.5em 0.75em; border: 1px solid BORDER; border-radius: 0.25em; }
  & label { display: inline-block; margin-inline-end: 0.75em; padding: 0.125em 0; }
  & input { appearance: auto; accent-color: ACCENT; }
  & summary { cursor: pointer; }
}
"""


def style_sheet() -> str:
    """The rules, with the colours in them."""
    rules = _RULES
    for name in ("SURFACE", "TEXT", "MUTED", "BORDER", "ACCENT", "NEGATIVE"):
        rules = rules.replace(name, getattr(colors, name).css())
    return rules + _steps() + _categories()


def _steps() -> str:
    """The backgrounds of weights, classes `s0` to `s8`."""
    rules = []
    for step in range(colors.NUM_STEPS):
        background, text = colors.step_colors(step)
        rules.append(f"figure.kbl-picture td.s{step} {{ background: {background.css()}; color: {text.css()}; }}\n")
    return "".join(rules)


def _categories() -> str:
    """The colours of categories, classes `c0` to `c5`, as stroke and fill, and behind text."""
    rules = []
    for index, color in enumerate(colors.CATEGORIES):
        figure = f"figure.kbl-picture .c{index}"
        rules.append(f"{figure} {{ stroke: {color.css()}; fill: {color.css()}; }}\n")
        rules.append(f"figure.kbl-picture mark.c{index} {{ background: {colors.tint(index).css()}; }}\n")
    return "".join(rules)
