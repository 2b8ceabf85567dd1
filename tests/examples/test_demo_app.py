"""`examples/demo_app.py` in a real browser: every tab is opened, written into and read.

Needs Gradio, from the extra `demo`, the package playwright, and the program chromium. The models are tiny and have
learned little; what the page shows is compared with their answers here.
"""

import importlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SECONDS = 180
HOSTILE = "<img src=x onerror=\"document.title='broken'\"> warm"
LOCAL = ("127.0.0.1", "localhost", "::1")

# Runs the script, and records every host that any Python code in it looks up, or connects to.
WATCHED = """
import runpy, sys
script, log = sys.argv[1:3]
def note(event, values):
    if event in ("socket.connect", "socket.sendto") and isinstance(values[1], tuple):
        host = values[1][0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = values[0]
    else:
        return
    with open(log, "a", encoding="utf-8") as file:
        print(host, file=file)
sys.addaudithook(note)
sys.path.insert(0, str(__import__("pathlib").Path(script).parent))
sys.argv = [script, *sys.argv[3:]]
runpy.run_path(script, run_name="__main__")
"""


@pytest.fixture(scope="module")
def demo(import_example):
    return import_example("_demo_models")


@pytest.fixture(scope="module")
def models(tmp_path_factory, demo, minilm):
    """A folder as the examples leave it, and the models in it; there is none of entities, and MiniLM compares."""
    import keras_bert_layers as kbl

    small_parts = importlib.import_module("_smoke").small_parts
    backbone, preprocessor = small_parts(
        ["why is it warm because a dull film is not and funny cats sleep [MASK] < > ="]
    )
    windows = kbl.preprocessing.SpanPreprocessor(preprocessor.tokenizer, max_length=16, stride=4)
    folder = tmp_path_factory.mktemp("examples")
    found = {
        "mask": kbl.BertMaskedLM(backbone, preprocessor),
        "classifier": kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor),
        "answers": kbl.BertQuestionAnswerer(backbone, windows),
    }
    for name, model in found.items():
        path = folder / demo.SLOTS[name].path
        path.parent.mkdir()
        model.save(path)
    return folder, {**found, "encoder": kbl.load_task(minilm)}


@pytest.fixture(scope="module")
def address(models, tmp_path_factory):
    """The address of the demo, and the file of the hosts that it looked up."""
    pytest.importorskip("gradio", reason="needs Gradio, which the extra `demo` installs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("log")
    (log / "hosts").touch()
    command = [sys.executable, "-c", WATCHED, str(FOLDER / "demo_app.py"), str(log / "hosts")]
    with (log / "output").open("w") as output:
        process = subprocess.Popen(
            [*command, "--folder", str(models[0]), "--port", str(port)], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        end = time.monotonic() + SECONDS
        while "in a browser" not in (log / "output").read_text():
            assert process.poll() is None, (log / "output").read_text()
            assert time.monotonic() < end, (log / "output").read_text()
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/", log / "hosts"
    finally:
        process.terminate()
        process.wait(SECONDS)


@pytest.fixture
def page(browser, address):
    """The page, opened; it must not contact any other machine, and nothing in it may fail."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    asked, failed = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.set_default_timeout(30_000)
    page.goto(address[0])
    yield page
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith((address[0], address[0].replace("http", "ws"), "data:"))] == []
    assert failed == []


def open_tab(page, title):
    """The tab's content."""
    page.get_by_role("tab", name=title).click()
    panel = page.get_by_role("tabpanel").and_(page.locator(":visible"))
    panel.wait_for()
    return panel


def write(panel, **texts):
    """Writes into boxes by their labels."""
    for label, text in texts.items():
        panel.get_by_role("textbox", name=re.compile(f"^{label.replace('_', ' ')}")).fill(text)


def choose(page, box, name):
    """Chooses from a list that opens."""
    page.get_by_role("combobox", name=box).and_(page.locator(":visible")).click()
    page.get_by_role("option", name=name, exact=True).click()


def click(panel, name):
    panel.get_by_role("button", name=name, exact=True).click()


@pytest.mark.slow
def test_fill_masks(page, models):
    panel = open_tab(page, "Fill masks")
    write(panel, Text=f"funny [MASK] {HOSTILE}")
    click(panel, "Fill")
    answer = models[1]["mask"].answer([f"funny [MASK] {HOSTILE}"])
    rows = panel.locator(".kbl-picture tbody tr")
    rows.first.wait_for()
    assert [row.locator("th").inner_text() for row in rows.all()] == answer["token"][0, 0].tolist()
    assert HOSTILE in panel.locator(".kbl-picture .text").inner_text()
    assert page.title() == "Ask a BERT", "what a visitor types is text, never a part of the page"


@pytest.mark.slow
def test_errors_are_shown(page):
    panel = open_tab(page, "Fill masks")
    write(panel, Text="no mask")
    click(panel, "Fill")
    page.get_by_text("Write [MASK], in capitals, where a word is missing.").wait_for()


@pytest.mark.slow
def test_classify(page, models):
    panel = open_tab(page, "Classify")
    write(panel, Text="a warm film")
    click(panel, "Classify")
    label = panel.get_by_test_id("label-output-value")
    label.wait_for()
    assert label.inner_text() == models[1]["classifier"].answer("a warm film")["label"]


@pytest.mark.slow
def test_a_tab_without_a_model_shows_the_command_that_makes_one(page):
    panel = open_tab(page, "Find entities")
    shown = panel.inner_text()
    assert "find_entities_output/token_classifier.keras does not exist yet." in shown
    assert "This command makes it: python3 examples/find_entities.py" in shown
    assert panel.get_by_role("button").count() == 0


@pytest.mark.slow
def test_answer_questions(page, demo, models):
    question, text = "why is it warm", "it is warm because cats sleep and a film is funny " * 2
    panel = open_tab(page, "Answer questions")
    write(panel, Question=question, Text=text)
    click(panel, "Answer")
    picture = panel.locator(".kbl-picture")
    picture.wait_for()
    answer = models[1]["answers"].answer((question, text.strip()))["answer"]
    assert answer
    assert picture.locator("mark bdi").inner_text() == answer


@pytest.mark.slow
def test_compare_sentences(page, demo, models):
    panel = open_tab(page, "Compare sentences")
    write(panel, Sentence="A cat sleeps.", Other_sentences="Stocks fell.\nA kitten naps.\nThe dog is awake.")
    click(panel, "Compare")
    panel.get_by_role("gridcell", name="A kitten naps.").wait_for()
    cells = [cell.inner_text() for cell in panel.get_by_role("gridcell").all()]
    rows = list(zip(cells[::2], cells[1::2], strict=True))
    assert [row[1] for row in rows] == ["A kitten naps.", "The dog is awake.", "Stocks fell."]
    expected = demo.compare(models[1]["encoder"], "A cat sleeps.", "\n".join(row[1] for row in rows))
    assert [float(row[0]) for row in rows] == pytest.approx([cosine for cosine, _ in expected], abs=0.002)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["Lines", "Shares", "All heads", "Input"])
def test_look_at_attention(page, view):
    panel = open_tab(page, "Look at attention")
    write(panel, Text="The cat sleeps.")
    panel.get_by_label(view, exact=True).check()
    choose(page, "Layer", "3")
    choose(page, "Head", "11")
    click(panel, "Look")
    picture = panel.locator(".kbl-picture")
    picture.wait_for()
    shown = picture.inner_text()
    assert "sleeps" in shown or view == "All heads"
    assert ("layer 3, head 11" in shown) == (view in ("Lines", "Shares"))


@pytest.mark.slow
def test_look_from_one_token(page):
    panel = open_tab(page, "Look at attention")
    write(panel, Text="The cat sleeps.")
    click(panel, "Look")
    panel.locator(".kbl-picture").get_by_label("cat").check()
    assert [group.is_visible() for group in panel.locator(".kbl-picture svg g").all()].count(True) == 1


@pytest.mark.slow
def test_look_into_another_model(page):
    panel = open_tab(page, "Look at attention")
    choose(page, "Layer", "5")
    choose(page, "Model", "Classify")
    page.wait_for_function("document.querySelector('[role=combobox][aria-label=Layer]').value === '0'")
    layer = panel.get_by_role("combobox", name="Layer")
    layer.click()
    options = page.locator(f"#{layer.get_attribute('aria-controls')} [role=option]")
    options.first.wait_for()
    assert options.count() == 1, "the model has one layer"
    options.first.click()
    write(panel, Text="a film")
    click(panel, "Look")
    panel.get_by_text("layer 0, mean of all heads").wait_for()


@pytest.mark.slow
def test_the_program_asks_no_other_machine(page, address):
    hosts = set(address[1].read_text(encoding="utf-8").split())
    assert hosts, "the program listens, at least"
    assert hosts <= set(LOCAL)


@pytest.mark.slow
def test_refuses_a_missing_file(tmp_path):
    pytest.importorskip("gradio", reason="needs Gradio, which the extra `demo` installs")
    command = [sys.executable, str(FOLDER / "demo_app.py"), "--classifier", str(tmp_path / "none.keras")]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1].startswith("demo_app: `load_task`: `source` must be an existing file")
