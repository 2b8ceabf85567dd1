"""`search`: scores beside those of the encoders, filters, words, re-ranking, and errors."""

import json
import os

import pytest

import keras_bert_layers as kbl
from keras_bert_layers.tasks import StaticBackbone

pytest.importorskip("lancedb")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("traces_nothing")]  # CI installs lancedb for slow tests

TEXTS = ["a good film", "bad night", "unhappy 中文 film", "a bad film"]
TOLERANCE = 2e-6  # float32 in two orders of operations, and six decimals


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text(
        "text,year,the place\n" + "".join(f"{text},{2000 + i},{'xy'[i % 2]}\n" for i, text in enumerate(TEXTS))
    )
    return path


@pytest.fixture(scope="module")
def searched(run, rows, encoder, eagerly):
    """An index by a checkpoint without a head."""
    with eagerly():
        assert run("index", rows, "--model", encoder, "--to", rows.parent / "index") == 0
    return rows.parent / "index"


@pytest.mark.parametrize("kind", ["dual", "static", "sentence"])
def test_cosines_are_those_of_the_encoder(run, answers, capsys, rows, preprocessor, backbone, tmp_path, kind):
    prompts = {"query": "night ", "document": "good "}
    if kind == "static":
        encoder = kbl.BertStaticEncoder(StaticBackbone(backbone.config.vocabulary_size, 4), preprocessor=preprocessor)
        queries, documents = encoder.predict(["bad film"], verbose=0), encoder.predict(TEXTS, verbose=0)
    else:
        make = kbl.BertDualEncoder if kind == "dual" else kbl.BertSentenceEncoder
        encoder = make(backbone, preprocessor=preprocessor, prompts=prompts, normalize=False)
        queries = encoder.encode_queries(["bad film"], verbose=0)
        documents = encoder.encode_documents(TEXTS, verbose=0)
    encoder.save(tmp_path / "model.keras")
    assert run("index", rows, "--model", tmp_path / "model.keras", "--to", tmp_path / "index", "--batch-size", 3) == 0
    capsys.readouterr()
    assert run("search", tmp_path / "index", "bad film", "--json") == 0
    expected, found = kbl.tasks.semantic_search(queries, documents)[0], answers()
    assert [row["id"] for row in found] == [str(row["corpus_id"] + 1) for row in expected]
    assert [row["score"] for row in found] == pytest.approx([row["score"] for row in expected], abs=TOLERANCE)


def test_filters_and_words(run, answers, error_line, searched):
    assert run("search", searched, "bad", "--json", "--where", "year > 2000 and `the place` = 'y'", "--top", 1) == 0
    (row,) = answers()
    assert row["id"] in {"2", "4"}
    assert {name: row[name] for name in ("text", "year", "the place")} == {
        "text": TEXTS[int(row["id"]) - 1],
        "year": 1999 + int(row["id"]),
        "the place": "y",
    }
    assert run("search", searched, '"中文"', "--json", "--hybrid", "--where", "year = 2002") == 0
    assert [(row["id"], row["score"]) for row in answers()] == [("3", round(2 / 61, 6))], "the first of both rankings"
    for where, why in (("yeer > 1", "No field named yeer."), ("year = 1; and more", "sql parser error: Expected: )")):
        assert run("search", searched, "a", "--where", where) == 2
        message = error_line()
        rule = "`search`: `--where` must be a condition of SQL on id, text, year, the place. Received: "
        assert f"{rule}--where={where!r}. " in message
        assert why in message


def test_reranking_is_that_of_the_cross_encoder(run, answers, error_line, searched, huggingface, keras_file, tmp_path):
    config = {**huggingface.CONFIG, **huggingface.CLASSIFIER, "id2label": {"0": "x"}, "label2id": {"x": 0}}
    tensors = huggingface.random_tensors(prefix="bert.", head=1)
    reranker = huggingface.write(tmp_path / "reranker", config=config, tensors=tensors)
    assert run("search", searched, "bad film", "--json", "--rerank", reranker, "--top", 2) == 0
    expected = kbl.load_task(reranker, "cross_encoder").rank("bad film", TEXTS, top_k=2)
    found = answers()
    assert [row["id"] for row in found] == [str(row["corpus_id"] + 1) for row in expected]
    assert [row["score"] for row in found] == pytest.approx([row["score"] for row in expected], abs=TOLERANCE)
    assert run("search", searched, "bad film", "--rerank", keras_file) == 2
    assert "must be the task of" in error_line()


def test_lines_of_a_terminal(run, capsys, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((30, 9)))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.md").write_text("good\n\x1b[31mfilm " * 30, encoding="utf-8")
    assert run("index", tmp_path / "texts", "--model", encoder, "--to", tmp_path / "index") == 0
    capsys.readouterr()
    assert run("search", tmp_path / "index", "a film") == 0
    score, _, rest = capsys.readouterr().out.partition("  ")
    assert abs(float(score)) <= 1
    assert rest == "a.md  good  [31mfilm …\n"


def test_queries(run, answers, error_line, searched, tmp_path):
    assert run("search", searched, "bad film " * 11_111, "--json", "--hybrid") == 0
    assert len(answers()) == 4
    for words, message in (
        ([searched, " \n"], "`search`: `QUERY` must hold a word. Received"),
        ([searched, "a", "--top", 0], "`search`: `--top` must be at least 1"),
        ([tmp_path, "a"], "`search`: `DIR` must be an index. Received"),
        ([tmp_path / "absent", "a"], "Make one with `index`."),
        ([searched, "caf\udce9"], "texts must be valid Unicode"),
    ):
        assert run("search", *words) == 2, words
        assert message in error_line()
    assert not (tmp_path / "absent").exists()
    assert json.loads((searched / "search_index.json").read_text())["complete"]
