"""The page of a search: `demo` of what `export_search` wrote."""

import re
import subprocess
import sys
import urllib.parse

import pytest

import keras_bert_layers as kbl
from keras_bert_layers import BertBackbone, BertConfig, BertPreprocessor, BertSentenceEncoder, BertTokenizer
from keras_bert_layers.cli.commands import demo
from keras_bert_layers.cli.exported_models import open_search
from keras_bert_layers.cli.search_page import SearchPage, _marked, _parts, _words_at

DOCUMENTS = {"<b>": "a good <i>film</i>", "night": "bad night . bad night . bad night . bad night ."}


@pytest.fixture(scope="module")
def searched(vocabulary, tmp_path_factory):
    pytest.importorskip("tensorflow_text")
    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=6, num_layers=1, num_heads=2, intermediate_dim=8)
    encoder = BertSentenceEncoder(BertBackbone(config), preprocessor=BertPreprocessor(BertTokenizer(vocabulary)))
    path = tmp_path_factory.mktemp("search") / "passages"
    return encoder.export_search(path, DOCUMENTS, version=1, verbose=0).parent


def test_shows_passages_with_marks(run, searched, monkeypatch):
    pages = []
    monkeypatch.setattr(demo, "serve_until_interrupted", lambda port, answer, *_, **__: pages.append(answer))
    assert run("demo", searched) == 0
    form = pages[0]("GET", "/", b"")
    assert 'name="query"' in form.body
    assert "passages: search" in form.body
    shown = pages[0]("POST", "/", urllib.parse.urlencode({"query": "<script>good film"}).encode()).body
    assert "<script" not in shown
    assert "<b>&lt;b&gt;</b>" in shown
    assert shown.count("<li>") == 2
    assert shown.count("<mark>") == shown.count("</mark>") >= 2
    assert "Write something into “Query” first." in pages[0]("POST", "/", b"query=+").body


@pytest.mark.slow
def test_a_search_in_chromium(searched, browser):
    command = [sys.executable, "-m", "keras_bert_layers", "demo", str(searched), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search("http://[^ ]+", server.stdout.readline())[0]
            page = browser.new_page(viewport={"width": 390, "height": 844})
            asked, failed = [], []
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: failed.append(str(error)))
            page.goto(address)
            page.get_by_role("textbox").fill("good <script>alert(1)</script> film")
            page.get_by_role("button").click()
            passages = page.get_by_role("listitem")
            assert {passage.split()[-1] for passage in passages.all_inner_texts()} == {"<i>film</i>", "."}
            assert page.locator("mark").count() >= 2
            assert page.get_by_role("textbox").input_value() == "good <script>alert(1)</script> film"
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            assert failed == []
            assert {urllib.parse.urlsplit(url).netloc for url in asked} == {urllib.parse.urlsplit(address).netloc}
        finally:
            server.terminate()


def test_empty_corpus(searched, tmp_path):
    from keras_bert_layers.export import replace_documents

    empty = replace_documents(searched, [])
    assert "The corpus is empty." in SearchPage(open_search(empty, owner="demo")).result("film")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sparse", "multi-vector"])
def test_marks_by_weights_and_by_vectors_of_tokens(kind, vocabulary, tmp_path):
    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=6, num_layers=1, num_heads=2, intermediate_dim=8)
    backbone, preprocessor = BertBackbone(config), BertPreprocessor(BertTokenizer(vocabulary))
    if kind == "sparse":
        encoder = kbl.BertSparseEncoder(backbone, preprocessor=preprocessor)
    else:
        encoder = kbl.BertMultiVectorEncoder(backbone, 5, preprocessor=preprocessor)
    path = encoder.export_search(tmp_path / "search", DOCUMENTS, verbose=0)
    shown = SearchPage(open_search(path, owner="demo")).result("good film")
    assert shown.count("<li>") == 2
    assert shown.count("<mark>") == shown.count("</mark>") >= 2


def test_words_at_bytes():
    texts = ["a good film", "\N{SNOWMAN} unhappy", "a"]
    assert _words_at(texts, {"start": [[2, 6, 0]], "end": [[6, 11, 0]]}) == {0: {1}, 1: {1}}


def test_exports_of_other_tasks_are_refused(run, saved_model, error_line):
    assert run("demo", saved_model) == 2
    assert "must be what `export_search` wrote, or no exported model" in error_line()


def test_marks_hold_whole_words_and_the_space_between_them():
    assert _marked(" a <b>  c d", {1, 2}) == " a <mark>&lt;b&gt;  c</mark> d"
    assert _marked("a b", {1}) == "a <mark>b</mark>"
    assert _marked("a b", set()) == "a b"


def test_parts_overlap_by_half():
    words = [str(number) for number in range(8)]
    assert [(start, len(part)) for start, part in _parts(" ".join(words))] == [(0, 6), (3, 5)]
    assert list(_parts(" ")) == []
