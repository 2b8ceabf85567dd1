"""`examples/serving/served_model.py`: versions of exported models, without a server."""

import logging
import shutil
import time

import numpy as np
import pytest

from keras_bert_layers import (
    BertBackbone,
    BertClassifier,
    BertConfig,
    BertMaskedLM,
    BertMultipleChoice,
    BertPreprocessor,
    BertSentenceEncoder,
    BertTokenClassifier,
    BertTokenizer,
)
from keras_bert_layers.export import json_request

pytestmark = pytest.mark.slow

TEXTS = ["a good film", "", "un ##happy bad bad night , a film !", "[MASK] film [MASK] !"]

# A batch of other texts sums in another order.
ROUNDING = 1e-6


@pytest.fixture(scope="module")
def module(import_example):
    return import_example("served_model")


@pytest.fixture(scope="module")
def classifier(vocabulary):
    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=15, num_layers=2, num_heads=3, intermediate_dim=21)
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), max_length=9)
    return BertClassifier(BertBackbone(config), class_names=["bad", "good"], preprocessor=preprocessor)


@pytest.fixture
def backbone(vocabulary):
    """One layer: the time of these tests is the tracing of graphs."""
    sizes = {"hidden_dim": 15, "num_layers": 1, "num_heads": 3, "intermediate_dim": 21}
    return BertBackbone(BertConfig(vocabulary_size=len(vocabulary), initializer_range=0.3, **sizes))


@pytest.fixture(scope="module")
def exported(tmp_path_factory, classifier):
    path = tmp_path_factory.mktemp("exported") / "1"
    classifier.export(path)
    return path


@pytest.fixture(scope="module")
def served(module, exported):
    """One that only answers."""
    model = module.ServedModel(exported.parent)
    assert model.load_newest()
    return model


@pytest.fixture
def folder(tmp_path, exported):
    """A folder of versions to change."""
    shutil.copytree(exported, tmp_path / "1")
    return tmp_path


def ask(model, signature="serving_default", **inputs):
    return model.current.answer(signature, model.current.check(signature, inputs))


def assert_equal(ours, expected):
    """Lists of lists of numbers and strings, numbers within `ROUNDING`."""
    if isinstance(expected, list):
        assert len(ours) == len(expected)
        for one, other in zip(ours, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, float):
        assert ours == pytest.approx(expected, abs=ROUNDING)
    else:
        assert ours == expected


@pytest.mark.parametrize("kind", [BertTokenClassifier, BertMaskedLM, BertSentenceEncoder])
def test_a_row_answers_the_same_in_any_company(module, tmp_path, backbone, preprocessor, kind):
    options = {"tag_names": ["O", "B-good", "I-good"]} if kind is BertTokenClassifier else {}
    task = kind(backbone, preprocessor=preprocessor, **options)
    task.export(tmp_path / "1")
    model = module.ServedModel(tmp_path)
    model.load_newest()
    together = ask(model, text=TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        (alone,) = ask(model, text=[text])
        for name, value in alone.items():
            assert_equal(row[name], value)


def test_answers_are_those_of_the_model(served, classifier):
    rows, expected = ask(served, text=TEXTS), classifier.answer(TEXTS)
    assert [row["label"] for row in rows] == expected["label"].tolist()
    np.testing.assert_allclose([row["probabilities"] for row in rows], expected["probabilities"], rtol=0, atol=ROUNDING)


def test_ids(served):
    ids = ask(served, "tokenize", text=TEXTS)
    assert {len(row["token_ids"]) for row in ids} == {len(ids[2]["token_ids"])}, "filled up with 0, which is an id"
    rows = ask(served, "token_ids", **{name: [row[name] for row in ids] for name in ids[0]})
    assert np.shape([row["logits"] for row in rows]) == (4, 2)


def test_choices(module, tmp_path, backbone, preprocessor):
    BertMultipleChoice(backbone, preprocessor=preprocessor).export(tmp_path / "1")
    model = module.ServedModel(tmp_path)
    model.load_newest()
    (row,) = ask(model, prompt=["a film"], choices=[["good", "bad", "un"]])
    assert len(row["probabilities"]) == 3
    with pytest.raises(ValueError, match="'choices' must have rows of one length; fill up the shorter ones"):
        model.current.check("serving_default", {"prompt": ["a", "b"], "choices": [["good"], ["good", "bad"]]})
    with pytest.raises(
        ValueError, match="row 0 of the input 'choices' must be a list that is not empty. Received: 'a'"
    ):
        model.current.check("serving_default", {"prompt": ["a"], "choices": ["a"]})


@pytest.mark.parametrize(
    ("signature", "inputs", "message"),
    [
        ("serve", {"text": ["a"]}, "signature_name must be one of .*'serving_default'.*Received: 'serve'"),
        ("serving_default", {"words": ["a"]}, r"takes the inputs \['text'\]. Received: \['words'\]"),
        ("serving_default", {"text": "a"}, "'text' must be a list that is not empty. Received: "),
        ("serving_default", {"text": []}, "'text' must be a list that is not empty. Received: "),
        ("serving_default", {"text": ["a", 1]}, "row 1 of the input 'text' must be a string. Received: 1"),
        ("serving_default", {"text": ["a", None]}, "row 1 of the input 'text' must be a string. Received: None"),
        ("serving_default", {"text": ["a", ["b"]]}, "row 1 of the input 'text' must be a string"),
        ("serving_default", {"text": ["ab\ud800"]}, "row 0 .* holds half a surrogate pair at 2"),
        ("token_ids", [[1, 2]], "inputs must be an object with .*'padding_mask', 'segment_ids', 'token_ids'"),
        (
            "token_ids",
            {"token_ids": [[1, 2.5]], "segment_ids": [[0, 0]], "padding_mask": [[1, 1]]},
            "row 0 of the input 'token_ids' must be an integer of 32 bits. Received: 2.5",
        ),
        (
            "token_ids",
            {"token_ids": [[1, 2]], "segment_ids": [[0, 0], [0, 0]], "padding_mask": [[1, 1]]},
            "all inputs must have the same number of rows",
        ),
    ],
)
def test_requests_that_are_refused(served, signature, inputs, message):
    with pytest.raises(ValueError, match=message) as caught:
        served.current.check(signature, inputs)
    assert type(caught.value).__name__ == "RequestError"


def test_what_the_model_refuses_is_reported_in_one_line(served, import_example):
    ids = {"token_ids": [[2, 9999, 3]], "segment_ids": [[0, 0, 0]], "padding_mask": [[1, 1, 1]]}
    with pytest.raises(Exception, match="9999") as caught:
        ask(served, "token_ids", **ids)
    reason = json_request.reason(caught.value)
    assert "9999 is not in [0, " in reason
    assert "\n" not in reason


def test_the_input_of_a_signature_that_has_one_needs_no_name(served):
    assert served.current.check("serving_default", ["a"])["text"].tolist() == [b"a"]


def test_the_newest_version_answers(module, folder, backbone, preprocessor):
    served = module.ServedModel(folder)
    assert served.load_newest()
    assert served.versions() == {1: "AVAILABLE"}
    assert not served.load_newest()
    other = BertClassifier(backbone, class_names=["no", "yes"], preprocessor=preprocessor)
    other.export(folder / "10")
    shutil.copytree(folder / "1", folder / "9")
    (folder / "latest").mkdir()
    assert served.load_newest()
    assert served.versions() == {1: "END", 9: "END", 10: "AVAILABLE"}
    assert ask(served, text=["a"])[0]["label"] in ("no", "yes")
    shutil.rmtree(folder / "10")  # the way back
    assert served.load_newest()
    assert served.versions() == {1: "END", 9: "AVAILABLE"}


def test_a_version_that_does_not_load_leaves_the_one_before(module, folder, caplog):
    served = module.ServedModel(folder)
    served.load_newest()
    (folder / "2").mkdir()
    (folder / "2" / "saved_model.pb").write_bytes(b"not a graph")
    with caplog.at_level(logging.ERROR):
        assert not served.load_newest()
        assert not served.load_newest()
    (record,) = [record for record in caplog.records if record.name == "served_model"]
    assert "version 2 is not served: " in record.getMessage()
    assert served.versions() == {1: "AVAILABLE", 2: "END"}
    assert ask(served, text=["a"])
    shutil.rmtree(folder / "2")
    shutil.copytree(folder / "1", folder / "2")
    assert served.load_newest(), "mended files are tried again"
    assert served.versions() == {1: "END", 2: "AVAILABLE"}


def test_no_version_yet(module, tmp_path, exported):
    model = module.ServedModel(tmp_path / "sentiment", poll_seconds=0.05)
    assert not model.load_newest()
    assert (model.current, model.versions()) == (None, {})
    thread = model.watch()
    (tmp_path / "sentiment").mkdir()
    shutil.copytree(exported, tmp_path / "copied")
    (tmp_path / "copied").rename(tmp_path / "sentiment" / "1")
    end = time.monotonic() + 60
    while model.current is None and time.monotonic() < end:
        time.sleep(0.05)
    model.stop()
    thread.join(60)
    assert model.versions() == {1: "AVAILABLE"}
