"""The encoder's graph in ONNX: its forms, activations and weights, run by ONNX Runtime."""

import dataclasses

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers import layers
from keras_bert_layers.config import ACTIVATIONS
from keras_bert_layers.export.onnx import Answer, Graph, activation
from keras_bert_layers.export.onnx._encoder_graph import Int8Products, quantized
from keras_bert_layers.export.onnx._rows_graph import row_places
from keras_bert_layers.layers.dense import activation_function

pytestmark = pytest.mark.usefixtures("rules_once")
TEXTS = ["a good film", "unhappy night, BAD film!", "", "film [MASK] " * 9, "Ünhappy\tnight"]


def test_every_activation(ask):
    """All in one graph."""
    pytest.importorskip("onnx")
    values = np.linspace(-12, 12, 241, dtype=np.float32)
    graph = Graph()
    constant = graph.constant(values)
    answers = {name: Answer(activation(constant, name), (None,)) for name in ACTIVATIONS}
    found = ask(graph.model({"text": (None,)}, answers).SerializeToString(), TEXTS)
    for name in ACTIVATIONS:
        expected = keras.activations.get(activation_function("test", name))(values)
        np.testing.assert_allclose(found[name], expected, atol=1e-6, rtol=1e-6, err_msg=name)


# The two that are one operation with the bias, and one of the others.
@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu6"])
def test_activations_of_the_encoder(activation, new_backbone, preprocessor, check_onnx):
    backbone = new_backbone(activation=activation, pooler_activation=activation, num_layers=1)
    check_onnx(kbl.BertClassifier(backbone, 2, preprocessor=preprocessor))


@pytest.mark.parametrize(
    "changes",
    [{"embedding_dim": 6}, {"num_segments": 0}, {"position_offset": 2}, {"layer_norm_epsilon": 0.1}],
    ids=str,
)
def test_forms_of_the_encoder(changes, new_backbone, preprocessor, check_onnx):
    check_onnx(kbl.BertSentenceEncoder(new_backbone(**changes), preprocessor=preprocessor))


@pytest.mark.parametrize(
    "parts",
    [
        {
            "positions": layers.RotaryPositions(halves=True, interpolation=1.5),
            "feed_forward": layers.GatedFeedForward(21, activation="silu", gate_has_bias=False, dropout=0.1),
        },
        {"positions": layers.RelativePositionBias(num_buckets=8, max_distance=5), "normalize_first": True},
        {"positions": layers.SinusoidalPositions(), "causal": True},
        {"normalize_first": True, "causal": True, "positions": layers.RotaryPositions(base=50.0)},
        {
            "positions": layers.RotaryPositions(base=70.0, halves=True),
            "feed_forward": layers.GatedFeedForward(21, use_bias=False),
            "local_attention": layers.LocalAttention(4, global_every=2, positions=layers.RotaryPositions(halves=True)),
            **{"normalize_first": True, "normalizes_first_attention": False, "use_bias": False},
        },
        {"shares_block": True},
        {"projects_first": True, "convolution": layers.TokenConvolution(3, initializer_range=0.5)},
        {"local_attention": layers.LocalAttention(3), "positions": layers.RelativePositionBias(num_buckets=8)},
        {
            "attention": layers.DisentangledSelfAttention(3, shares_projections=True),
            "positions": layers.RelativeVectors(num_buckets=4, max_distance=8, normalize=True, initializer_range=0.5),
        },
        {
            "attention": layers.DisentangledSelfAttention(3, position_to_content=False),
            "positions": layers.RelativeVectors(max_distance=3, keeps_position_embedding=True, initializer_range=0.5),
        },
    ],
    ids=" ".join,
)
def test_parts_of_other_encoders(parts, new_backbone, preprocessor, check_onnx):
    config = new_backbone(hidden_dim=12, embedding_dim=6 if "projects_first" in parts else None).config
    keras.utils.set_random_seed(3)
    backbone = kbl.BertBackbone(config, parts=layers.EncoderParts(**parts))
    check_onnx(kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor, pooling=["cls", "mean"]))


@pytest.mark.parametrize("changes", [{}, {"position_offset": 2}], ids=str)
def test_short_texts_share_rows(changes, new_backbone, preprocessor, ask, tmp_path):
    """Their vectors are those that they have alone; the order of the texts, and their lengths, do not matter."""
    task = kbl.BertSentenceEncoder(new_backbone(**changes), preprocessor=preprocessor)
    path = task.export(tmp_path / "model.onnx", format="onnx")
    texts = ["film", "a good film " * 3, "", "bad", "good film !", "a", "night " * 5, "film", "a bad film"]
    expected = task.answer(texts)["embedding"]
    many = np.resize([6, 4], 40)  # 7 and 5 tokens: two rows of 126 instead of 40 of 7
    for order in (np.arange(9), np.arange(9)[::-1], np.array([1, 6]), np.array([0, 7]), many):
        found = ask(path, [texts[index] for index in order])["embedding"]
        np.testing.assert_allclose(found, expected[order], atol=1e-6)


def test_places_of_texts(ask):
    """From the longest on, each in the first row with room; rows of 9, and texts that fill a row together."""
    pytest.importorskip("onnx")
    graph = Graph()
    begins, num_rows = row_places(graph.constant([2, 9, 4, 3, 5, 7, 2]), graph.constant(9))
    answers = {"begins": Answer(begins, (None,)), "num_rows": Answer(num_rows, ())}
    found = ask(graph.model({"text": (None,)}, answers).SerializeToString(), TEXTS)
    # Rows of 9; 7 and 2; 5 and 4; 3 and 2.
    assert found["begins"].tolist() == [16, 0, 23, 27, 18, 9, 30]
    assert found["num_rows"] == 4


def test_lora_is_in_the_weights(new_backbone, preprocessor, check_onnx):
    task = kbl.BertClassifier(new_backbone(), 2, preprocessor=preprocessor)
    task.backbone.enable_lora(2)
    for weight in task.backbone.trainable_weights:
        weight.assign(keras.random.normal(weight.shape, seed=1))
    check_onnx(task)


def test_weights_of_8_bits(new_backbone, preprocessor, tmp_path, ask):
    task = kbl.BertSentenceEncoder(new_backbone(hidden_dim=48, activation="relu"), preprocessor=preprocessor)
    paths = [task.export(tmp_path / f"{dtype}.onnx", format="onnx", dtype=dtype) for dtype in ("float32", "int8")]
    exact, rounded = (ask(path, TEXTS)["embedding"] for path in paths)
    assert (exact * rounded).sum(axis=1).min() > 0.99
    assert np.abs(exact - rounded).max() > 0
    with pytest.raises(ValueError, match="dtype.*int4"):
        task.export(tmp_path / "int4.onnx", format="onnx", dtype="int4")


def test_a_shared_block_is_in_the_file_once(new_backbone, preprocessor, tmp_path, ask):
    """Its columns of large inputs are those of all layers."""
    config = new_backbone(hidden_dim=48).config

    def written(num_layers, dtype):
        keras.utils.set_random_seed(3)
        parts = layers.EncoderParts(shares_block=True)
        backbone = kbl.BertBackbone(dataclasses.replace(config, num_layers=num_layers), parts=parts)
        path = tmp_path / f"{num_layers}{dtype}.onnx"
        return kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor).export(path, format="onnx", dtype=dtype)

    paths = [written(4, "float32"), written(4, "int8")]
    exact, rounded = (ask(path, TEXTS)["embedding"] for path in paths)
    assert (exact * rounded).sum(axis=1).min() > 0.99
    block = 4 * 4 * config.hidden_dim**2  # the bytes of the attention's kernels
    assert paths[0].stat().st_size - written(1, "float32").stat().st_size < block


def test_8_bits_are_the_nearest():
    kernel = np.random.default_rng(1).normal(size=(45, 7)).astype(np.float32)
    kernel[:, 0] = 0
    numbers, scales = quantized(kernel)
    assert (numbers.dtype, numbers.shape, scales.shape) == (np.int8, (45, 7), (7,))
    assert (np.abs(numbers * scales - kernel) <= scales * 0.5001).all()


def product_of_8_bits(ask, inputs, kernel):
    """The product of a dense layer whose largest inputs are these, as ONNX Runtime computes it."""
    pytest.importorskip("onnx")
    layer = keras.layers.Dense(kernel.shape[1])
    layer.build(inputs.shape)
    layer.kernel.assign(kernel)
    graph = Graph()
    products = Int8Products({id(layer): np.abs(inputs).max((0, 1))})
    product = products.product(graph.constant(inputs), layer)
    return ask(graph.model({"text": (None,)}, {"product": Answer(product, (None,) * 3)}).SerializeToString(), TEXTS)[
        "product"
    ]


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_8_bits_do_not_overflow(ask, sign):
    """The largest inputs and weights, which instructions that sum pairs in 16 bits would cut."""
    inputs, kernel = np.ones((1, 9, 64), np.float32), np.full((64, 33), sign, np.float32)
    np.testing.assert_allclose(product_of_8_bits(ask, inputs, kernel), 64 * sign, rtol=0.01)


def test_large_columns_are_multiplied_in_float32(ask):
    """Beside them, the others keep the error of 8 bits."""
    rng = np.random.default_rng(2)
    inputs, kernel = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((2, 3, 65), (65, 5)))
    inputs[..., 7] *= 1000
    inputs[1, 2, :] = 0
    error = product_of_8_bits(ask, inputs, kernel) - inputs @ kernel
    # 64 products of which each has two errors of half a step, 1 / 127 and 2 / 127 at most, that are independent.
    assert np.abs(error).max() < 4 * np.sqrt(64 / 12 / 3) * np.hypot(1, 2) / 127
    assert np.abs(error).max() > 0
    assert (error[1, 2] == 0).all()
