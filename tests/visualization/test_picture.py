"""`Picture`: every picture as a page of one file, a fragment for notebooks, and a figure."""

import re
import sys
from html.parser import HTMLParser

import pytest

from keras_bert_layers import visualization

VOID = {"br", "meta", "img", "input"}
DRAWN = {"rect", "line", "path", "circle", "polyline", "polygon"}


class Outline(HTMLParser):
    """The elements of a page; fails where one is closed that is not open."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in DRAWN
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "style" not in self.open:
            self.text += text

    def count(self, tag):
        return sum(tag == name for name, _ in self.elements)


def test_page_is_well_formed_and_has_what_a_screen_reader_needs(picture):
    page = picture.html()
    outline = Outline(page)
    assert page.startswith("<!DOCTYPE html>")
    assert not outline.open
    assert outline.count("h1") == outline.count("main") == outline.count("title") == 1
    assert ("html", {"lang": "en"}) in outline.elements
    assert outline.count("caption") == outline.count("table") > 0
    for tag, attributes in outline.elements:
        assert tag != "th" or attributes["scope"] in ("row", "col")
        assert tag != "svg" or attributes.get("aria-label") or attributes["aria-hidden"] == "true"
        assert attributes.get("class") != "scroll" or (attributes["tabindex"] == "0" and attributes["aria-label"])
    names = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(names) == len(set(names))


def test_page_runs_nothing_and_asks_nobody(picture):
    page = picture.html()
    outline = Outline(page)
    assert outline.count("script") == outline.count("link") == outline.count("iframe") == 0
    assert not re.search(r"https?:|@import|url\((?!\"#)", page)
    assert all(not name.startswith("on") for _, attributes in outline.elements for name in attributes)
    assert outline.count("img") == 0
    images = [attributes["href"] for tag, attributes in outline.elements if tag == "image"]
    assert all(address.startswith("data:image/png") for address in images)
    policy = next(attributes["content"] for _, attributes in outline.elements if "http-equiv" in attributes)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_text_comes_out_as_text(picture):
    outline = Outline(picture.html())
    hostile = "<script>alert('1')</script> \"quoted\" &" in outline.text
    assert hostile or "<b>" in outline.text
    assert outline.count("b") == 0


def test_notebook_shows_a_fragment(picture):
    fragment = picture._repr_html_()
    outline = Outline(fragment)
    assert not outline.open
    assert outline.count("figure") == 1
    assert outline.count("html") == outline.count("h1") == 0
    assert "\n\n" not in fragment, "Markdown would end the block of HTML here"
    sheet = re.search(r"<style>(.*?)</style>", fragment, re.DOTALL)[1]
    rules = re.sub(r"\{[^{}]*\}", "", re.sub(r"\{[^{}]*\}", "", sheet))  # two levels of nesting
    assert set(re.findall(r"(?:^|\})\s*([\w#.]+)", re.sub(r"\{[^{}]*\}", "}", rules))) <= {"figure.kbl"}


def test_same_picture_same_bytes(picture, same_picture):
    assert same_picture.html() == picture.html()


def test_empty_lines_of_a_text_do_not_end_a_block_of_markdown():
    picture = visualization.TextHighlights("a\n\nb", [(3, 4, "x", None)])
    assert "a&#10;&#10;<mark" in picture._repr_html_()
    assert "\n\n" not in picture._repr_html_()


def test_characters_that_no_page_may_hold():
    page = visualization.TextHighlights("a\0\x85\ud800b", [], title="\0").html()
    assert "a\ufffd\ufffd\ufffdb" in page
    assert "<title>\ufffd</title>" in page


def test_page_is_saved_as_utf8(picture, tmp_path):
    path = picture.save(tmp_path / "picture.HTML")
    assert path.read_text(encoding="utf-8") == picture.html()


def test_figure_is_drawn_whatever_the_text_is(picture, tmp_path, caplog):
    matplotlib = pytest.importorskip("matplotlib")
    figure = picture.figure()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert figure.canvas.manager is None, "no global state of matplotlib keeps the figure"
    assert picture.save(tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("matplotlib")]
    assert messages == [], "a character that no font has, or dollars read as mathematics"


def test_path_of_another_kind(picture):
    with pytest.raises(ValueError, match=r"`path` must end in one of \['.html', '.pdf', '.png', '.svg'\]. Received"):
        picture.save("picture.docx")


def test_only_the_figure_needs_matplotlib(picture, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert picture.html()
    with pytest.raises(
        ModuleNotFoundError, match="needs matplotlib, which is not installed here. Install it with `pip"
    ):
        picture.figure()
