"""The table of families itself, and its page."""

from family_table import FAMILIES
from make_page import PAGE, page


def test_every_family_is_there_once():
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names)) >= 60


def test_the_page_is_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python3 tests/checkpoints/families/make_page.py"
