"""Encoders whose prompts choose adapters, against the same encoders with the adapter merged into the weights."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_bert_layers import (
    BertBackbone,
    BertConfig,
    BertDualEncoder,
    BertPreprocessor,
    BertSentenceEncoder,
    BertTokenizer,
    load_task,
)
from keras_bert_layers.layers import EncoderParts, RotaryPositions
from keras_bert_layers.layers.adapters import AdapterBank

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", ":", "a", "good", "film", "night"]
SIZES = {"vocabulary_size": len(TOKENS), "hidden_dim": 12, "num_layers": 1, "num_heads": 3, "intermediate_dim": 20}
CONFIG = BertConfig(**SIZES, num_segments=1, dropout=0.0, attention_dropout=0.0)
ADAPTERS = {"retrieval.query": 2, "retrieval.passage": 1, "separation": 3}
PROMPTS = {"retrieval.query": "query: ", "retrieval.passage": "a night ", "separation": "", "plain": "good: "}
TEXTS = ["a good film", "night", "good night : a film film", ""]


def make_backbone(adapters, **options):
    parts = EncoderParts(positions=RotaryPositions(base=50.0, halves=True))
    backbone = BertBackbone(CONFIG, parts=parts, **options)
    backbone.add_adapters(adapters)
    rng = np.random.default_rng(5)
    for weight in backbone.weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    return backbone


def array(value):
    return keras.ops.convert_to_numpy(value)


def merged(backbone, adapter, **options):
    """A backbone without adapters, of the weights that NumPy merges."""
    banks = {layer.beside: layer for layer in backbone._flatten_layers() if isinstance(layer, AdapterBank)}
    matrices = {id(matrix) for bank in banks.values() for pair in bank.pairs.values() for matrix in pair}
    plain = make_backbone({}, **options)
    own = [weight for weight in backbone.weights if id(weight) not in matrices]
    for mine, theirs in zip(plain.weights, own, strict=True):
        value = array(theirs)
        if adapter and theirs.path in banks:
            first, second = banks[theirs.path].pairs[adapter]
            value = value + array(first) @ array(second)
        mine.assign(value)
    return plain


def preprocessor():
    return BertPreprocessor(BertTokenizer(TOKENS), max_length=16)


def make_encoder(backbone, **options):
    return BertSentenceEncoder(backbone, prompts=PROMPTS, preprocessor=preprocessor(), **options)


def expected(backbone, prompt):
    """The vectors with the adapter of a prompt; of a text, without one."""
    encoder = make_encoder(merged(backbone, prompt if prompt in ADAPTERS else None))
    return array(encoder(preprocessor()([PROMPTS.get(prompt, prompt or "") + text for text in TEXTS])))


@pytest.fixture(scope="module")
def backbone():
    return make_backbone(ADAPTERS)


@pytest.fixture(scope="module")
def encoder(backbone):
    return make_encoder(backbone)


def assert_close(mine, theirs):
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=2e-6)


@pytest.mark.parametrize("adapter", [None, "separation"])
def test_a_call_of_the_backbone(backbone, adapter):
    ids = np.random.default_rng(0).integers(2, 11, (3, 7)).astype("int32")
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": (np.arange(7) < [[7], [3], [1]]).astype("int32")}
    mine, theirs = backbone(batch, adapter=adapter), merged(backbone, adapter)(batch)
    real = batch["padding_mask"].astype(bool)
    assert_close(array(mine["sequence_output"])[real], array(theirs["sequence_output"])[real])
    assert_close(array(mine["pooled_output"]), array(theirs["pooled_output"]))


def test_wrong_arguments(backbone):
    with pytest.raises(
        ValueError, match=r"`BertBackbone`: `adapter` must be one of .*retrieval\.query.* Received: .*'x'"
    ):
        backbone(backbone.input, adapter="x")
    with pytest.raises(ValueError, match=r"`BertBackbone`: `ranks` must be at least 1"):
        BertBackbone(CONFIG).add_adapters({"x": 0})
    with pytest.raises(ValueError, match=r"`BertBackbone`: `model` must have no adapters"):
        backbone.add_adapters({"x": 1})


def test_the_weights_are_there_once(backbone):
    plain, ranks = make_backbone({}), sum(ADAPTERS.values())
    sizes = [3 * (12 + 36), 24, 32, 32]  # query, key and value have three times the rank
    added = ranks * (sum(sizes) + 24 + (len(TOKENS) + 12) + (1 + 12))
    assert backbone.count_params() == plain.count_params() + added
    assert len(backbone.trainable_weights) == len(plain.weights)


def test_prompts(backbone, encoder):
    for prompt in ("retrieval.query", "plain"):
        assert_close(encoder.predict(TEXTS, prompt=prompt, verbose=0), expected(backbone, prompt))
    with pytest.raises(ValueError, match=r"be a text, or the name of a prompt"):
        encoder.predict(TEXTS, prompt="classification", verbose=0)


@pytest.mark.slow
def test_queries_and_documents(backbone, encoder, traces_nothing):
    assert_close(encoder.encode_queries(TEXTS, verbose=0), expected(backbone, "retrieval.query"))
    assert_close(encoder.encode_documents(TEXTS, verbose=0), expected(backbone, "retrieval.passage"))
    dual = BertDualEncoder(
        backbone,
        prompts={"query": PROMPTS["retrieval.query"], "document": PROMPTS["retrieval.passage"]},
        preprocessor=preprocessor(),
    )
    assert_close(dual.encode_queries(TEXTS, verbose=0), expected(backbone, "retrieval.query"))
    assert_close(dual.encode_documents(TEXTS, verbose=0), expected(backbone, "retrieval.passage"))


@pytest.mark.slow
def test_windows(backbone, traces_nothing):
    texts = [" ".join(["a night good film"] * 9), "night"]
    encoder = make_encoder(backbone, long_texts="windows")
    for prompt in ("retrieval.passage", ""):
        mine = encoder.predict(texts, prompt=prompt, verbose=0)
        other = make_encoder(merged(backbone, prompt or None), long_texts="windows")
        assert_close(mine, other.predict(texts, prompt=PROMPTS.get(prompt, ""), verbose=0))


@pytest.mark.slow
def test_the_default_prompt_trains_the_base(tmp_path, traces_nothing, train_eagerly):
    backbone = make_backbone(ADAPTERS)
    encoder, plain = (
        make_encoder(each, default_prompt=name)
        for each, name in ((backbone, "separation"), (merged(backbone, "separation"), "separation"))
    )
    for prompt in (None, ""):
        mine = encoder.predict(TEXTS, prompt=prompt, verbose=0)
        assert_close(mine, expected(backbone, "separation" if prompt is None else prompt))
    before = [array(weight).copy() for weight in backbone.non_trainable_weights]
    logs = [train_eagerly(each, (TEXTS[:3], TEXTS[1:]), None, steps=2) for each in (encoder, plain)]
    np.testing.assert_allclose(*([step["loss"] for step in steps] for steps in logs), rtol=1e-5)
    after = [array(weight) for weight in backbone.non_trainable_weights]
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))
    encoder.save(tmp_path / "x.keras")
    again = load_task(tmp_path / "x.keras")
    assert (again.backbone.adapters, again.default_prompt) == (ADAPTERS, "separation")
    for prompt in (None, ""):
        mine, theirs = (each.predict(TEXTS, prompt=prompt, verbose=0) for each in (encoder, again))
        assert_close(mine, theirs)


def test_gradients_of_blocks_that_are_computed_again():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("the steps of the other backends are in `fit`")
    import tensorflow as tf

    backbone = make_backbone(ADAPTERS)
    plain = merged(backbone, "separation")
    ids = np.random.default_rng(0).integers(2, 11, (2, 5)).astype("int32")
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    found = []
    for model, options in ((backbone, {"adapter": "separation"}), (plain, {})):
        model.rematerialize = True
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(batch, training=True, **options)["sequence_output"] ** 3)
        kernels = [
            model.get_layer(f"encoder_block_{index}").feed_forward.intermediate._kernel
            for index in range(CONFIG.num_layers)
        ]
        found.append(tape.gradient(loss, [kernel.value for kernel in kernels]))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


SERVE = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
texts = tf.constant(np.load(sys.argv[2]).tolist())
found = {name: function(texts)["embedding"].numpy() for name, function in model.signatures.items()
         if name not in ("token_ids", "tokenize")}
np.savez(sys.argv[3], **found)
"""


@pytest.mark.slow
def test_a_saved_model_has_the_base_once(backbone, encoder, tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("only TensorFlow exports a SavedModel")
    encoder.export(tmp_path / "model")
    np.save(tmp_path / "texts.npy", TEXTS)
    command = [sys.executable, "-c", SERVE, *(str(tmp_path / name) for name in ("model", "texts.npy", "out.npz"))]
    subprocess.run(command, check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""})
    found = np.load(tmp_path / "out.npz")
    assert set(found) == {"serving_default", *PROMPTS}
    for name in found:
        assert_close(found[name], expected(backbone, None if name == "serving_default" else name))
    stored = sum(path.stat().st_size for path in (tmp_path / "model" / "variables").iterdir())
    assert stored < 4 * encoder.count_params() + 40_000
