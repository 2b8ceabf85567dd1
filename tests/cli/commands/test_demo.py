"""The page of `demo`."""

import urllib.parse

import keras
import pytest

from keras_bert_layers import BertBackbone, BertConfig, BertMultipleChoice, BertPreprocessor, BertTokenizer
from keras_bert_layers.cli.commands import demo
from keras_bert_layers.cli.commands.demo import DemoPage, error_page

HOSTILE = "<script>alert('1')</script> good"


@pytest.fixture(scope="module")
def page(keras_file):
    return DemoPage(keras.models.load_model(keras_file), name="<films>")


def send(page, **texts):
    return page.answer("POST", "/", urllib.parse.urlencode(texts).encode()).body


def test_the_form(page):
    answer = page.answer("GET", "/", b"")
    assert (answer.status, answer.kind) == (200, "text/html")
    assert '<textarea name="text"' in answer.body
    assert "&lt;films&gt;: BertClassifier" in answer.body
    assert page.answer("GET", "/?utm_source=x", b"") == answer
    assert page.answer("GET", "/favicon.ico", b"").status == 404


def test_an_answer(page):
    shown = send(page, text=HOSTILE)
    assert "probabilities" in shown
    assert "&lt;script&gt;" in shown
    for trace in ("<script", "http:", "https:", "//"):
        assert trace not in shown.replace("&lt;/script", "")


def test_a_page_for_errors():
    shown = error_page("busy <with> others", 503)
    assert (shown.status, shown.kind) == (503, "text/html")
    assert '<p role="alert">busy &lt;with&gt; others</p>' in shown.body


def test_the_model_is_warm_before_the_address_is_shown(run, keras_file, monkeypatch):
    done = []
    monkeypatch.setattr(DemoPage, "_result", lambda self, texts: done.append(texts))
    monkeypatch.setattr(demo, "serve_until_interrupted", lambda *_, **options: done.append(options["show_error"]))
    assert run("demo", keras_file) == 0
    assert done == [{"text": "A word [MASK] is missing."}, error_page]


def test_what_is_missing(page):
    assert "Write something into “Text” first." in send(page, text=" ")
    assert "Write something into “Text” first." in send(page)
    assert "Write at most 100,000 characters and 1,000 lines into “Text”." in send(page, text="a" * 100_001)
    assert "Max number of fields exceeded" in send(page, text="a", other="b")


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_choices_are_lines(vocabulary):
    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=6, num_layers=1, num_heads=2, intermediate_dim=8)
    task = BertMultipleChoice(BertBackbone(config), preprocessor=BertPreprocessor(BertTokenizer(vocabulary)))
    shown = send(DemoPage(task, name="choices"), prompt="a film", choices="good\r\nbad\r\n")
    assert "<th scope=row>choice</th>" in shown


def test_a_model_without_a_task(run, error_line, encoder):
    assert run("demo", encoder) == 2
    assert "`demo`: DIR must have a task and a tokenizer" in error_line()
