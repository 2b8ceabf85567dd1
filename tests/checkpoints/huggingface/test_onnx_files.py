"""ONNX files of ids beside a checkpoint, as transformers.js reads them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl

PROGRAM = Path(__file__).with_name("transformers_js.mjs")
# Sums in another order, by another library.
TOLERANCE = 1e-5
TASKS = {
    "feature-extraction": lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p),
    "text-classification": lambda b, p: kbl.BertClassifier(b, class_names=["bad", "good"], preprocessor=p),
    "token-classification": lambda b, p: kbl.BertTokenClassifier(b, ["O", "B-x", "I-x"], preprocessor=p),
    "question-answering": kbl.BertQuestionAnswerer,
    "fill-mask": kbl.BertMaskedLM,
}


def made(name, backbone, preprocessor):
    task, generator = TASKS[name](backbone, preprocessor), np.random.default_rng(3)
    for weight in task.weights:
        if "head/" in weight.path and "gamma" not in weight.path:
            weight.assign(generator.normal(size=weight.shape) * 0.3)
    return task


@pytest.fixture(scope="module")
def parts():
    keras.utils.set_random_seed(2)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film"]
    config = kbl.BertConfig(vocabulary_size=9, hidden_dim=12, num_layers=2, num_heads=3, intermediate_dim=16)
    return kbl.BertBackbone(config), kbl.BertPreprocessor(kbl.BertTokenizer(tokens, reference="huggingface"), 12)


@pytest.mark.parametrize("name", ["backbone", *TASKS])
def test_outputs_are_those_of_the_task(name, parts, tmp_path):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package)
    import onnxruntime

    backbone, preprocessor = parts
    model = backbone if name == "backbone" else made(name, backbone, preprocessor)
    folder = kbl.save_huggingface(model, tmp_path / "model", preprocessor=preprocessor, onnx=True)
    assert sorted(path.name for path in (folder / "onnx").iterdir()) == ["model.onnx", "model_quantized.onnx"]
    ids = {name: np.asarray(part) for name, part in preprocessor((["a good film", "bad"], ["a [MASK]", ""])).items()}
    names = {"input_ids": "token_ids", "attention_mask": "padding_mask", "token_type_ids": "segment_ids"}
    session = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx")
    assert [each.name for each in session.get_inputs()] == list(names)
    outputs = session.run(None, {theirs: ids[ours].astype(np.int64) for theirs, ours in names.items()})
    if name in ("backbone", "feature-extraction"):
        expected = [backbone(ids)["sequence_output"]]
    elif name == "fill-mask":
        positions = np.arange(ids["token_ids"].shape[1], dtype="int32")[None].repeat(2, axis=0)
        expected = [model({**ids, "mask_positions": positions})]
    else:
        expected = keras.tree.flatten(model(ids))
    if name == "question-answering":  # Keras's are masked; transformers masks them after the model
        pairs = zip(expected[::-1], outputs, strict=True)
        expected = [np.where(np.asarray(masked) > -1e8, masked, found) for masked, found in pairs]
    real = ids["padding_mask"].astype(bool) if name != "text-classification" else ...
    for found, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(found[real], np.asarray(wanted)[real], atol=TOLERANCE, rtol=0)


def test_refused(parts, tmp_path):
    with pytest.raises(ValueError, match="`onnx` must be False for multiple choice and pretraining"):
        kbl.save_huggingface(kbl.BertMultipleChoice(parts[0]), tmp_path / "model", onnx=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_transformers_js(minilm, tmp_path):
    """Needs Node and its package `@huggingface/transformers`, in the folder that `TRANSFORMERS_JS` names."""
    folder = os.environ.get("TRANSFORMERS_JS")
    if folder is None or shutil.which("node") is None:
        pytest.skip("needs Node, and a folder with node_modules/@huggingface/transformers in TRANSFORMERS_JS")
    backbone, preprocessor = kbl.load_backbone(minilm), kbl.load_preprocessor(minilm, max_length=64)
    tasks = {name: made(name, backbone, preprocessor) for name in TASKS}
    tasks["feature-extraction"] = kbl.load_task(minilm)
    for name, task in tasks.items():
        kbl.save_huggingface(task, tmp_path / name, onnx=True)
    printed = subprocess.run(["node", PROGRAM, tmp_path], cwd=folder, capture_output=True, text=True, check=True).stdout
    texts = ["A cat sleeps on the mat.", "Paris is lovely in May, said Anna."]
    for dtype, found in json.loads(printed).items():
        tolerance = TOLERANCE if dtype == "fp32" else 0.05
        vectors = tasks["feature-extraction"].predict(texts, verbose=0)
        np.testing.assert_allclose(found["feature-extraction"], vectors, atol=tolerance, rtol=0)
        for row, probabilities in zip(
            found["text-classification"], tasks["text-classification"].answer(texts)["probabilities"], strict=True
        ):
            scores = {answer["label"]: answer["score"] for answer in row}
            assert [scores["bad"], scores["good"]] == pytest.approx(probabilities, abs=tolerance)
        words = tasks["fill-mask"].answer("A cat [MASK] on the mat.")
        assert [answer["token_str"] for answer in found["fill-mask"]][:2] == words["token"][0][:2].tolist()
        answer = tasks["question-answering"].answer(("Who sleeps?", texts[0]))["answer"]
        assert found["question-answering"]["answer"] == answer
        tags = tasks["token-classification"].predict_tags([texts[1].replace(",", " ,").replace(".", " .").split()])[0]
        assert [part["entity"] for part in found["token-classification"]] == [tag for tag in tags if tag != "O"]
