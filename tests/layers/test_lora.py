"""LoRA on the dense layers of a backbone."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, load_backbone, save_huggingface
from keras_bert_layers.layers.lora import is_lora

SIZES = {"vocabulary_size": 9, "hidden_dim": 6, "num_layers": 2, "num_heads": 2, "intermediate_dim": 10}
IDS = {"token_ids": np.arange(8).reshape(2, 4), "segment_ids": np.zeros((2, 4)), "padding_mask": np.ones((2, 4))}
LABELS = np.array([0, 1])
ROUNDING = 1e-6  # float32 sums in another order


@pytest.fixture
def backbone():
    keras.utils.set_random_seed(5)
    return BertBackbone(BertConfig(**SIZES, dropout=0.0, attention_dropout=0.0))


@pytest.fixture
def trained(backbone):
    backbone.enable_lora(3, lora_alpha=6)
    classifier = BertClassifier(backbone, 2)
    classifier.compile(keras.optimizers.Adam(0.1), run_eagerly=True)
    classifier.train_on_batch(IDS, LABELS)
    return classifier


def outputs(model):
    return np.asarray(model(IDS))


def test_two_matrices_beside_each_kernel(backbone):
    before = np.asarray(backbone(IDS)["pooled_output"])
    backbone.enable_lora(3)
    assert [weight.path.split("/", 1)[1] for weight in backbone.trainable_weights[:8]] == [
        f"{layer}/lora_kernel_{matrix}"
        for layer in (
            "attention/query_key_value",
            "attention/output",
            "feed_forward/intermediate",
            "feed_forward/output",
        )
        for matrix in "ab"
    ]
    assert {tuple(weight.shape) for weight in backbone.trainable_weights} == {(6, 3), (3, 18), (3, 6), (3, 10), (10, 3)}
    np.testing.assert_allclose(backbone(IDS)["pooled_output"], before, atol=ROUNDING)


def test_the_last_blocks_alone(backbone):
    backbone.enable_lora(3, lora_blocks=1)
    assert {weight.path.split("/")[0] for weight in backbone.trainable_weights} == {"encoder_block_1"}
    assert len(backbone.trainable_weights) == 8
    assert not any(is_lora(weight) for weight in backbone.get_layer("encoder_block_0").weights)
    again = BertBackbone.from_config(backbone.get_config())
    assert again.lora_blocks == 1
    assert [weight.path for weight in again.weights] == [weight.path for weight in backbone.weights]


def test_training_changes_lora_and_the_head(trained):
    names = {weight.path.split("/")[-1] for weight in trained.trainable_weights}
    assert names == {"lora_kernel_a", "lora_kernel_b", "kernel", "bias"}
    assert {weight.path.split("/")[0] for weight in trained.trainable_weights if not is_lora(weight)} == {
        "classification_head"
    }
    before = [weight.numpy() for weight in trained.weights]
    trained.train_on_batch(IDS, LABELS)
    changed = {
        weight.path for weight, old in zip(trained.weights, before, strict=True) if np.any(weight.numpy() != old)
    }
    assert changed == {weight.path for weight in trained.trainable_weights}


def test_alpha_scales_what_is_added(trained):
    dense = trained.backbone.get_layer("encoder_block_1").feed_forward.intermediate
    x = np.random.default_rng(3).normal(size=(4, 6)).astype("float32")
    a, b = dense.lora_kernel_a.numpy(), dense.lora_kernel_b.numpy()
    assert np.abs(b).max() > 0.01
    np.testing.assert_allclose(dense(x), x @ (dense._kernel.numpy() + 6 / 3 * a @ b) + dense.bias.numpy(), atol=1e-5)


def test_a_file_holds_the_matrices(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.backbone.get_config() == trained.backbone.get_config()
    assert (again.backbone.lora_rank, again.backbone.lora_alpha) == (3, 6)
    np.testing.assert_array_equal(outputs(again), outputs(trained))
    for task in (again, trained):
        task.run_eagerly = True
        task.train_on_batch(IDS, LABELS)
    np.testing.assert_array_equal(outputs(again), outputs(trained))
    assert [weight.path for weight in again.trainable_weights] == [weight.path for weight in trained.trainable_weights]


def test_weights_are_read_into_a_model_with_lora(trained, tmp_path):
    expected = outputs(trained)
    trained.save_weights(tmp_path / "x.weights.h5")
    trained.train_on_batch(IDS, LABELS)
    trained.load_weights(tmp_path / "x.weights.h5")
    np.testing.assert_array_equal(outputs(trained), expected)


def test_a_clone_has_it(trained):
    clone = keras.models.clone_model(trained)
    assert len(clone.trainable_weights) == len(trained.trainable_weights) == 18


def test_a_task_that_was_trained_before(backbone):
    classifier = BertClassifier(backbone, 2)
    classifier.compile(keras.optimizers.SGD(0.5), run_eagerly=True)
    classifier.train_on_batch(IDS, LABELS)
    backbone.enable_lora(1)
    classifier.run_eagerly = True
    classifier.train_on_batch(IDS, LABELS)
    assert classifier.optimizer.learning_rate == 0.5
    assert len(classifier.trainable_weights) == 18


def test_a_checkpoint_holds_the_sums(trained, tmp_path):
    save_huggingface(trained, tmp_path / "x")
    again = load_backbone(tmp_path / "x")
    assert again.lora_rank is None
    expected = trained.backbone(IDS)["pooled_output"]
    np.testing.assert_allclose(again(IDS)["pooled_output"], expected, atol=1e-5)


def test_errors(backbone):
    with pytest.raises(ValueError, match="`BertBackbone`: `rank` must be at least 1"):
        backbone.enable_lora(0)
    with pytest.raises(ValueError, match="`lora_alpha` must be greater than 0"):
        backbone.enable_lora(1, -2.0)
    backbone.enable_lora(1)
    with pytest.raises(ValueError, match="`rank` must be given once. Received: rank=2"):
        backbone.enable_lora(2)
