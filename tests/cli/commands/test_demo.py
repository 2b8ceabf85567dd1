"""The page of `demo`."""

import shutil
import urllib.parse

import keras
import pytest

from keras_bert_layers import BertBackbone, BertConfig, BertMultipleChoice, BertPreprocessor, BertTokenizer
from keras_bert_layers.cli.commands import demo
from keras_bert_layers.cli.commands.demo import DemoPage, error_page
from keras_bert_layers.visualization.facts_picture import Fact, FactsPicture

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


@pytest.fixture
def facts(tmp_path):
    """The file that `suggest` writes; `test_suggest.py` compares it with what is printed."""
    found = [Fact("labels: of 2 kinds", ("label", "rows"), {HOSTILE: (3, "3")}), Fact("next:", code=["train"])]
    return FactsPicture(found, title="In <a>.csv").save(tmp_path / "facts.html")


@pytest.fixture
def answer(run, keras_file, facts, monkeypatch):
    """What `demo --facts` answers."""
    served = []
    monkeypatch.setattr(demo, "serve_until_interrupted", lambda port, answer, *_, **__: served.append(answer))
    monkeypatch.setattr(DemoPage, "warm_up", lambda _: None)
    assert run("demo", keras_file, "--facts", facts) == 0
    return served[0]


def test_the_facts_of_the_rows(run, facts, answer, page, error_line):
    assert '<p><a href="/facts">In &lt;a&gt;.csv</a></p>' in answer("GET", "/", b"").body
    shown = answer("GET", "/facts?a=b", b"")
    assert (shown.status, shown.kind) == (200, "text/html")
    back = '<p><a href="/" style="color: inherit">Back to the form</a></p>\n'
    assert back in shown.body
    assert shown.body.replace(back, "") == facts.read_text(encoding="utf-8")
    assert answer("POST", "/facts", b"text=a").status == page.answer("GET", "/facts", b"").status == 404
    facts.write_text("<title>Another page</title><script>1</script>")
    for path, message in [(facts, "`--facts` must be a page that `suggest --page` wrote"), ("no.html", "no such file")]:
        assert run("demo", "no-model", "--facts", path) == 2
        assert message in error_line()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_are_usable(scheme, answer, chromium, chromium_frames, axe, tmp_path):
    shutil.copy(axe, tmp_path)
    found = {"form": answer("GET", "/", b""), "facts": answer("GET", "/facts", b""), "error": error_page("busy", 503)}
    for name, text in {"answered": "a good film", "refused": ""}.items():
        found[name] = answer("POST", "/", urllib.parse.urlencode({"text": text}).encode())
    for name, made in found.items():
        (tmp_path / f"{name}.html").write_text(chromium_frames.checked(made.body, name), encoding="utf-8")
    frames = [(name, width, f"{name}.html") for name in found for width in chromium_frames.WIDTHS]
    (tmp_path / "frames.html").write_text(chromium_frames.frames_page(frames), encoding="utf-8")
    results = chromium_frames.look(chromium, (tmp_path / "frames.html").as_uri(), tmp_path / "profile", scheme)
    assert [(result["name"], result["width"]) for result in results] == [frame[:2] for frame in frames]
    for result in results:
        assert result["broken"] == [], result
        assert result["overflow"] <= 0, result


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
