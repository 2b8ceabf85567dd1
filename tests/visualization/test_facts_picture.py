"""`FactsPicture`: ranges of a histogram, and what is left out of long tables; `test_picture.py` has the rest."""

import re

import pytest

from keras_bert_layers.visualization.facts_picture import Fact, FactsPicture


def counts(page):
    """Range -> how many, of the table below a histogram."""
    rows = re.findall(r'<th scope="row">([^<]+)</th><td class="number">([^<]+)</td>', page)
    return {name: int(number) for name, number in rows if number != "0"}


@pytest.mark.parametrize(
    ("values", "limit", "expected"),
    [
        ([2, 8, 9, 70], 8, {"1 to 2": 1, "6 to 8": 1, "8 to 11": 1, "64 to 91": 1}),
        ([500, 501], 8, {"362 to 512": 2}),
        ([2, 3], 512, {"1 to 2": 1, "2 to 3": 1}),
        ([1.0, 1.0, 13.0], None, {"1 to 2": 2, "12 to 13": 1}),
        ([0.5, 0.5], None, {"0.5 to 0.5": 2}),
    ],
)
def test_ranges(values, limit, expected):
    page = FactsPicture([Fact("a", ("tokens", "texts"), values=values, limit=limit)]).html()
    assert counts(page) == expected
    if limit:
        above = sum(value > limit for value in values) / len(values)
        assert page.count(f"{above:.0%}".replace("%", " %") + f" above the limit of {limit}") == 2, (
            "drawn, and read out"
        )


def test_long_tables_end():
    bars = {f"name {number}": (number, f"{number}") for number in range(31)}
    facts = [Fact("labels: a", ("label", "rows"), bars), Fact("b", ("row", "text"), rows=[(1, "text " * 99)] * 101)]
    page = FactsPicture(facts).html()
    assert "labels: 30 of 31 shown" in page
    assert "b: 100 of 101 shown" in page
    assert page.count("name ") == 30
    assert page.count("text\u2026</bdi>") == 100
