"""all-MiniLM-L6-v2 against the frozen outputs of transformers + torch; see README.md beside this file."""

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from keras_bert_layers import load_backbone, load_preprocessor, load_task
from keras_bert_layers.checkpoints import load_report

FOLDER = Path(__file__).parent
# What two float32 implementations of six blocks may differ by; the project's promise.
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def maker():
    """The script that wrote the reference; it imports torch only when it runs."""
    spec = importlib.util.spec_from_file_location("make_minilm_reference", FOLDER / "make_minilm_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def texts():
    return (FOLDER / "minilm_texts.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def reference():
    with np.load(FOLDER / "minilm_reference.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def inputs(reference):
    """The token ids as one padded batch."""
    lengths = reference["lengths"].astype(int)
    mask = np.arange(lengths.max()) < lengths[:, None]
    token_ids = np.zeros(mask.shape, "int32")
    token_ids[mask] = reference["token_ids"]
    return {"token_ids": token_ids, "segment_ids": 0 * token_ids, "padding_mask": mask.astype("int32")}


@pytest.fixture(scope="module")
def outputs(minilm, inputs):
    """Of the short texts and of the long ones apart: padded to the longest, the short ones would take nine tenths."""
    backbone, lengths = load_backbone(minilm), inputs["padding_mask"].sum(axis=1)
    found = {"sequence_output": np.zeros((*inputs["token_ids"].shape, 384)), "pooled_output": np.zeros((64, 384))}
    for rows in (np.flatnonzero(lengths <= 48), np.flatnonzero(lengths > 48)):
        longest = lengths[rows].max()
        parts = backbone.predict({name: ids[rows, :longest] for name, ids in inputs.items()}, batch_size=64, verbose=0)
        found["sequence_output"][rows, :longest] = parts["sequence_output"]
        found["pooled_output"][rows] = parts["pooled_output"]
    return found


def test_reference_is_of_these_weights_and_texts(minilm, reference):
    provenance = json.loads(str(reference["provenance"]))
    weights, texts = minilm / "model.safetensors", FOLDER / "minilm_texts.txt"
    assert provenance["weights_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert provenance["texts_sha256"] == hashlib.sha256(texts.read_bytes()).hexdigest()


def test_texts_are_of_mixed_length(texts, reference):
    assert len(texts) == len(reference["lengths"]) == 64
    assert (reference["lengths"].min(), reference["lengths"].max()) == (3, 258)


def test_every_column_is_kept(maker):
    assert set(maker.kept_columns(24, 384).ravel()) == set(range(384))


def test_sequence_output(maker, reference, inputs, outputs):
    tokens = outputs["sequence_output"][inputs["padding_mask"].astype(bool)]
    kept = np.take_along_axis(tokens, maker.kept_columns(*tokens.shape), axis=1)
    np.testing.assert_allclose(kept, reference["sequence_output"], rtol=0, atol=TOLERANCE)


def test_pooled_output(reference, outputs):
    np.testing.assert_allclose(outputs["pooled_output"], reference["pooled_output"], rtol=0, atol=TOLERANCE)


def test_every_weight_is_read(minilm):
    report = load_report(load_backbone(minilm))
    assert (len(report.loaded), report.fresh, list(report.ignored)) == (103, (), ["embeddings.position_ids"])


def test_token_ids(minilm, texts, inputs):
    pytest.importorskip("tensorflow")
    ours = load_preprocessor(minilm, max_length=512)(texts)
    for name, expected in inputs.items():
        np.testing.assert_array_equal(ours[name], expected)


def test_sentence_encoder(minilm):
    pytest.importorskip("tensorflow")
    encoder = load_task(minilm)
    assert (encoder.pooling, encoder.normalize, encoder.preprocessor.max_length) == ("mean", True, 256)
    vectors = encoder.predict(["A cat sits on the mat.", "A kitten rests on a rug.", "Interest rates rose."], verbose=0)
    similarity = vectors @ vectors.T
    assert similarity[0, 1] > 0.5 > 0.2 > similarity[0, 2]
    np.testing.assert_allclose(np.diag(similarity), 1, atol=1e-5)
