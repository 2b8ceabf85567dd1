"""The layers and the backbone on every Keras backend, each in its own process, against the NumPy BERT."""

import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path

import disentangled_reference
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
# Float32 sums in another order, over two blocks.
EQUAL = 1e-5
# bfloat16 keeps 8 bits; LayerNorm holds the values near 1, the weights above are drawn large.
HALF_PRECISION = 0.2
MASK = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]], "int32")
# What `predict` leaves out on TensorFlow: padding, and rows of nothing else.
REAL = {"sequence_output": MASK.astype(bool), "pooled_output": MASK.any(axis=1)}


# On TensorFlow the tests of each layer show the same, so there this one, which takes half a minute, is slow.
@pytest.fixture(
    scope="module",
    params=[pytest.param("tensorflow", marks=pytest.mark.slow), "jax", pytest.param("torch", marks=pytest.mark.slow)],
)
def found(request, tmp_path_factory):
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"the backend {request.param} is not installed here")
    path = tmp_path_factory.mktemp(request.param) / "outputs.npz"
    environment = {**os.environ, "KERAS_BACKEND": request.param, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
    # XLA compiles a program for each operation and shape, which takes nearly all of the time on JAX.
    environment["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    command = [sys.executable, str(ROOT / "tests" / "backend_outputs.py"), str(path)]
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    with np.load(path) as outputs:
        return {**outputs, "backend": request.param}


@pytest.fixture(scope="module")
def inputs():
    generator = np.random.default_rng(4)
    return {
        "token_ids": generator.integers(0, 29, (3, 7)),
        "segment_ids": generator.integers(0, 4, (3, 7)),
        "padding_mask": MASK,
    }


def test_backbone(found, inputs, numpy_bert):
    weights = {key.removeprefix("weight:"): value for key, value in found.items() if key.startswith("weight:")}
    expected = numpy_bert.bert(weights, inputs, num_layers=2, num_heads=3)
    for key in ("sequence_output", "pooled_output"):
        for way in ("backbone", "predicted", "own", "loaded", "google"):
            real = REAL[key] if way == "predicted" else ...
            np.testing.assert_allclose(found[f"{way}:{key}"][real], expected[key][real], atol=EQUAL, err_msg=way)
        np.testing.assert_allclose(found[f"half:{key}"], expected[key], atol=HALF_PRECISION)
    for index, scores in enumerate(expected["attention_scores"]):
        np.testing.assert_allclose(found[f"scores:{index}"], scores, atol=EQUAL)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_both_ways_through_attention_are_equal(causal, masked, found):
    name = f"attention:{causal}:{masked}"
    np.testing.assert_allclose(found[f"{name}:fused"], found[f"{name}:own"], atol=EQUAL)


@pytest.mark.parametrize("positions", ["rotary", "relative"])
def test_local_attention_in_blocks(positions, found):
    real = MASK.astype(bool)
    blocks, own = (found[f"window:{positions}:{way}"][real] for way in ("blocks", "own"))
    np.testing.assert_allclose(blocks, own, atol=EQUAL)


@pytest.mark.parametrize(("name", "calls"), [("even", 1), ("odd", 0), ("first", 0)])
def test_masked_attention_in_training_is_cudnns_kernel_on_a_gpu(name, calls, found):
    """cuDNN has no gradient for an odd length with a mask, as for one query."""
    if f"kernels:{name}" not in found:
        pytest.skip("only JAX calls cuDNN")
    np.testing.assert_array_equal(found[f"kernels:{name}"], [calls, calls])


def test_layers_without_weights(found, numpy_bert):
    hidden = found["hidden"]
    np.testing.assert_array_equal(found["pooling:cls"], hidden[:, 0])
    means = [hidden[0].mean(axis=0), hidden[1, :4].mean(axis=0), np.zeros(12)]
    np.testing.assert_allclose(found["pooling:mean"], means, atol=EQUAL)
    maxima = [hidden[0].max(axis=0), hidden[1, :4].max(axis=0), np.zeros(12)]
    np.testing.assert_allclose(found["pooling:max"], maxima, atol=EQUAL)
    for name in ("gelu_erf", "gelu_tanh"):
        np.testing.assert_allclose(found[name], numpy_bert.ACTIVATIONS[name](hidden.astype("float64")), atol=EQUAL)
    assert np.isfinite(found["block"]).all()
    assert np.isfinite(found["block:rematerialized"]).all()


def test_relative(found, inputs, numpy_bert):
    prefix = "relative:weight:"
    weights = {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
    options = {"position_offset": 2, "pooler_activation": "relu"}
    expected = numpy_bert.bert(weights, inputs, num_layers=1, num_heads=3, **options)
    for key in ("sequence_output", "pooled_output"):
        rows = REAL[key]
        np.testing.assert_allclose(found[f"relative:{key}"][rows], expected[key][rows], atol=EQUAL)


@pytest.mark.parametrize("what", ["eager", "trained"])
def test_packed_rows(what, found):
    packed, apart = (found[f"packed:{name}:{what}"] for name in ("packed", "apart"))
    np.testing.assert_allclose(packed, apart, atol=EQUAL)


def _rotate(vector, position):
    angles = position * 100.0 ** (-2 * np.arange(len(vector) // 2) / len(vector))
    turned = (vector[0::2] + 1j * vector[1::2]) * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], axis=-1).ravel()


@pytest.mark.parametrize("name", ["rotary", "relative"])
def test_encoder_parts(name, found, inputs, numpy_bert):
    prefix = f"parts:{name}:weight:"
    weights = {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
    options = {"rotate": _rotate}
    if name == "relative":
        buckets = [3, 3, 3, 2, 2, 1, 0, 5, 6, 6, 7, 7, 7]  # of the distances -6 to 6: 1, 2 to 3, and further
        options = {"causal": True}
        options["added"] = lambda head, distance: weights["positions/bucket_bias"][buckets[distance + 6], head]
    options |= {"normalize_first": True, "position_table": np.zeros((7, 1))}
    expected = numpy_bert.bert(weights, inputs, num_layers=2, num_heads=3, **options)["sequence_output"]
    rows = MASK.any(axis=1)
    np.testing.assert_allclose(found[f"parts:{name}"][rows], expected[rows], atol=EQUAL)
    assert (found["parts:moved"] > 0).all()


@pytest.mark.parametrize("shares", [False, True])
def test_disentangled_attention(shares, found):
    prefix = f"disentangled:{shares}"
    beginning = f"{prefix}:weight:"
    weights = {key.removeprefix(beginning): value for key, value in found.items() if key.startswith(beginning)}
    rows = [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7]  # of the distances -6 to 6
    vectors, options = weights["positions/vectors"], {"kinds": ("c2p", "p2c"), "shares": shares}
    expected = disentangled_reference.probabilities(
        found["hidden"][:2], weights, lambda distance: rows[distance + 6], vectors, MASK[:2], 3, **options
    )
    np.testing.assert_allclose(found[f"{prefix}:scores"][:2], expected, atol=EQUAL)


def test_training(found):
    assert np.isfinite(found["training:loss"]).all()
    assert np.isfinite(found["training:moved"]).all()
    assert (found["training:moved"] > 0).all()


def test_heads_of_pretraining(found, inputs, numpy_bert):
    prefix = "pretraining:weight:"
    weights = {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
    hidden = numpy_bert.bert(weights, inputs, num_layers=1, num_heads=3)
    picked = hidden["sequence_output"][np.arange(3)[:, None], [[6, 0], [3, 3], [1, 0]]]
    picked = numpy_bert.gelu_erf(numpy_bert.dense(weights, "masked/dense", picked))
    picked = numpy_bert.layer_norm(weights, "masked/layer_norm", picked, 1e-12)
    logits = picked @ weights["embedding/token_embedding"].T + weights["masked/bias"]
    rows = REAL["pooled_output"]
    np.testing.assert_allclose(found["pretraining:masked"][rows], logits[rows], atol=EQUAL)
    pair = numpy_bert.dense(weights, "next/dense", hidden["pooled_output"])
    np.testing.assert_allclose(found["pretraining:next"][rows], pair[rows], atol=EQUAL)
    assert (found["pretraining:moved"] > 0).all()
    np.testing.assert_allclose(found["pretraining:loaded"], 0, atol=EQUAL)


def test_dual_encoder(found):
    scores = found["dual:query"] @ found["dual:document"].T / 0.05
    scores[[0, 2], [2, 0]] = -np.inf  # the same document
    forward, backward = (np.log(np.exp(logits).sum(axis=1)) - np.diag(logits) for logits in (scores, scores.T))
    np.testing.assert_allclose(found["dual:loss"], np.mean([forward, backward]), rtol=EQUAL)
    assert np.isfinite(found["dual:training"]).all()


def test_sparse_encoder(found):
    weights = found["sparse:weights"]
    assert 0.1 < (weights > 0).mean() < 0.9
    queries, documents = weights[0::2], weights[1::2]
    logits = queries @ documents.T
    loss = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    np.testing.assert_allclose(found["sparse:loss:0"], loss, rtol=1e-4)  # a difference of large sums
    penalty = (0.5 * (queries.mean(axis=0) ** 2).sum() + 0.25 * (documents.mean(axis=0) ** 2).sum()) / 4
    np.testing.assert_allclose(found["sparse:penalty:1"], penalty, rtol=EQUAL)
    np.testing.assert_allclose(found["sparse:loss:1"], loss + penalty, rtol=1e-4)
    assert (found["sparse:penalty:0"], found["sparse:active_dims:1"]) == (0, (weights > 0).sum(axis=1).mean())


def test_token_classifier(found):
    """The loss against the scores of all rows of tags, of which those that begin no entity are out."""
    transitions, starts, ends = (found[f"tags:{name}"].astype("float64") for name in ("transitions", "starts", "ends"))
    transitions[0, 2] = starts[2] = -np.inf  # "I-a" needs a "B-a" or an "I-a" before it
    total = 0
    for tags, logits in zip(found["tags:given"], found["tags:logits"], strict=True):
        given, emissions = tuple(tags[tags >= 0]), logits[tags >= 0]
        rows = [row for row in itertools.product(range(3), repeat=len(given)) if row]
        scores = {row: starts[row[0]] + ends[row[-1]] + transitions[row[:-1], row[1:]].sum() for row in rows}
        scores = {row: score + emissions[range(len(row)), row].sum() for row, score in scores.items()}
        total += np.log(np.exp(list(scores.values())).sum()) - scores[given] if scores else 0
    np.testing.assert_allclose(found["tags:loss"], total / (found["tags:given"] >= 0).sum(), atol=EQUAL)
    assert 0 <= found["tags:f1"] <= 1
    assert (found["tags:moved"] > 0).all()


@pytest.mark.parametrize("output", ["pooled_output", "sequence_output"])
def test_on_torch_a_task_computes_only_what_it_reads_of_its_encoder(output, found):
    np.testing.assert_allclose(found[f"read:{output}"], 0, atol=EQUAL)
    assert found[f"read:{output}:calls"] == (1 if found["backend"] == "torch" else 2)


@pytest.mark.parametrize("way", ["mkl", "onednn"])
def test_products_on_torch(way, found):
    """Against NumPy in float64; the gradients of the gradients are of float32 sums over sums, some 1e3 large."""
    if found["backend"] != "torch":
        pytest.skip("other backends have one product")
    inputs, kernel, bias, weights = (
        found[f"product:{name}"].astype("float64") for name in ("inputs", "kernel", "bias", "weights")
    )
    outputs = inputs @ kernel + bias
    of_outputs = 2 * weights * outputs
    of_inputs, of_bias = of_outputs @ kernel.T, of_outputs.sum((0, 1))
    of_kernel = np.einsum("bsi,bso->io", inputs, of_outputs)
    expected = {"outputs": outputs, "inputs": of_inputs, "kernel": of_kernel, "bias": of_bias}
    expected |= {"none": np.zeros((0, 5, 7)), "transposed": bias[None] @ kernel.T}
    # Of |of_inputs|^2 + |of_kernel|^2 + |of_bias|^2, through `of_outputs` and directly.
    through = 2 * (2 * of_inputs @ kernel + 2 * inputs @ of_kernel + 2 * of_bias) * weights
    expected["again:inputs"] = through @ kernel.T + 2 * of_outputs @ of_kernel.T
    expected["again:kernel"] = np.einsum("bsi,bso->io", inputs, through) + 2 * np.einsum(
        "bsi,bso->io", of_inputs, of_outputs
    )
    for name, values in expected.items():
        scale = max(1, np.abs(values).max(initial=0))
        np.testing.assert_allclose(found[f"product:{way}:{name}"] / scale, values / scale, atol=EQUAL, err_msg=name)
    assert found[f"product:{way}:made_by"].item().startswith("Product") == (way == "onednn")
    assert not any(name.startswith("Product") for name in found[f"product:{way}:others"])


def test_ids_out_of_range_are_loud(found):
    assert np.isnan(found["wrong:negative"]).all()
    assert np.isnan(found["wrong:large"]).all()
