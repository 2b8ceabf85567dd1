import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.layers import BertEmbedding, MaskedLMHead

# Two float32 products and a LayerNorm, against float64.
FLOAT32 = 1e-5
POSITIONS = np.array([[4, 0, 2], [1, 1, 0]], "int32")


def make(embedding_dim=None, **kwargs):
    embedding = BertEmbedding(17, 7, embedding_dim=embedding_dim, dropout=0.0, initializer_range=0.5)
    return MaskedLMHead(embedding, **{"initializer_range": 0.5, **kwargs})


@pytest.fixture
def hidden(draw):
    return draw(2, 5, 7)


def expected_logits(head, hidden, numpy_bert, named_weights):
    weights = named_weights(head, "head")
    x = numpy_bert.ACTIVATIONS[head.activation](numpy_bert.dense(weights, "head/dense", hidden))
    x = numpy_bert.layer_norm(weights, "head/layer_norm", x, head.layer_norm_epsilon)
    return x @ np.asarray(head.token_embedding.token_embedding, "float64").T + weights["head/bias"]


@pytest.mark.parametrize("embedding_dim", [None, 4])
@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu"])
def test_values(activation, embedding_dim, hidden, numpy_bert, named_weights):
    head = make(embedding_dim, activation=activation, layer_norm_epsilon=0.01)
    head(hidden)
    everywhere = expected_logits(head, hidden, numpy_bert, named_weights)
    np.testing.assert_allclose(np.asarray(head(hidden)), everywhere, atol=FLOAT32)
    at_masks = np.take_along_axis(everywhere, POSITIONS[..., None], axis=1)
    np.testing.assert_allclose(np.asarray(head(hidden, POSITIONS)), at_masks, atol=FLOAT32)
    np.testing.assert_allclose(np.asarray(head(hidden[:, 0])), everywhere[:, 0], atol=FLOAT32)


def test_a_matrix_of_its_own(hidden, numpy_bert, named_weights):
    head = make(tie_weights=False)
    head.token_embedding.build((None, None))
    head(hidden)
    tied = expected_logits(head, hidden, numpy_bert, named_weights)
    assert np.abs(np.asarray(head(hidden)) - tied).max() > 1
    head.decoder.assign(head.token_embedding.token_embedding)
    np.testing.assert_allclose(np.asarray(head(hidden)), tied, atol=FLOAT32)
    assert [weight.path.rpartition("/")[2] for weight in head.trainable_weights].count("decoder") == 1


def test_no_masks_no_logits(hidden):
    assert make()(hidden, np.zeros((2, 0), "int32")).shape == (2, 0, 17)


@pytest.mark.parametrize("positions", [None, POSITIONS], ids=["everywhere", "masks"])
def test_contract(check_layer, hidden, tmp_path, positions):
    keras.utils.set_random_seed(3)
    embedding = make().token_embedding
    embedding.build([None, None])
    check_layer(
        lambda **kwargs: MaskedLMHead(embedding, initializer_range=0.5, **kwargs),
        {"hidden": hidden} if positions is None else {"hidden": hidden, "mask_positions": positions},
        output_shape=(2, 5 if positions is None else 3, 17),
        output_dtype="float32",
        num_weights=5,
        tmp_path=tmp_path,
    )


def test_the_matrix_stays_the_embeddings(hidden):
    head = make()
    head(hidden)
    assert [weight.path.split("/", 1)[1] for weight in head.weights] == [
        "bias",
        "dense/kernel",
        "dense/bias",
        "layer_norm/gamma",
        "layer_norm/beta",
    ]
    head.trainable = False
    assert head.token_embedding.trainable


@pytest.fixture(scope="module")
def tied():
    """A model of ids whose embedding is used on both sides."""
    keras.utils.set_random_seed(3)
    config = BertConfig(vocabulary_size=17, hidden_dim=6, num_layers=1, num_heads=3, intermediate_dim=5, dropout=0.0)
    backbone = BertBackbone(config)
    head = MaskedLMHead(backbone, initializer_range=0.5, name="head")
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    logits = head(backbone(backbone.input)["sequence_output"], positions)
    assert logits.shape == (None, None, 17)
    return keras.Model({**backbone.input, "mask_positions": positions}, logits)


@pytest.fixture(scope="module")
def inputs():
    ids = np.random.default_rng(1).integers(0, 17, (2, 5)).astype("int32")
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1, "mask_positions": POSITIONS}


def test_keras_file_keeps_them_tied(tied, inputs, tmp_path):
    tied.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), tied(inputs))
    assert loaded.count_params() == tied.count_params()
    backbone = next(layer for layer in loaded.layers if isinstance(layer, BertBackbone))
    assert loaded.get_layer("head").token_embedding is backbone.get_layer("embedding")


def test_gradients_reach_the_matrix_from_both_sides(tied, inputs):
    import tensorflow as tf

    matrix = tied.get_layer("head").token_embedding.token_embedding
    with tf.GradientTape() as tape:
        logits = tied(inputs)
        loss = tf.reduce_sum(logits * np.random.default_rng(2).normal(size=logits.shape))
    gradients = tape.gradient(loss, [weight.value for weight in tied.get_layer("head").weights] + [matrix.value])
    assert all(np.abs(tf.convert_to_tensor(gradient)).max() > 0 for gradient in gradients)
    rows = np.abs(tf.convert_to_tensor(gradients[-1])).max(axis=-1)
    absent = np.setdiff1d(np.arange(17), inputs["token_ids"])
    assert (rows[absent] > 0).all()  # from the logits alone
    frozen = tf.stop_gradient(matrix.value)
    with tf.GradientTape() as tape:  # and from the input side alone
        hidden = tied.get_layer("head").token_embedding(inputs["token_ids"])
        loss = tf.reduce_sum((hidden @ tf.transpose(frozen)) ** 2)
    assert tape.gradient(loss, matrix.value) is not None


def test_clone_is_not_tied_and_shows_it(tied):
    clone = keras.models.clone_model(tied)
    assert len(clone.weights) > len(tied.weights)


@pytest.mark.parametrize("position", [-1, 5])
def test_position_outside_the_row(hidden, position):
    head = make()
    positions = POSITIONS.copy()
    positions[0, 1] = position
    logits = np.asarray(head(hidden, positions))
    assert np.isnan(logits[0, 1]).all()
    assert np.isfinite(np.delete(logits.reshape(6, 17), 1, axis=0)).all()


def test_errors():
    for encoder in (keras.layers.Embedding(3, 4), keras.Sequential([keras.layers.Embedding(3, 4)]), None):
        with pytest.raises(TypeError, match="`encoder` must be a BertEmbedding, or a model .* Give a `BertBackbone`."):
            MaskedLMHead(encoder)
    with pytest.raises(ValueError, match="`MaskedLMHead`: `activation` must"):
        make(activation="gelu")
    with pytest.raises(ValueError, match="`MaskedLMHead`: `layer_norm_epsilon` must be greater than 0"):
        make(layer_norm_epsilon=0)
    with pytest.raises(ValueError, match="`MaskedLMHead`: `initializer_range` must be greater than 0"):
        make(initializer_range=-1.0)
