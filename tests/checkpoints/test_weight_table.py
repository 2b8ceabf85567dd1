import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig
from keras_bert_layers.checkpoints.weight_table import (
    CLASSIFIER_ROWS,
    StoredWeight,
    Transform,
    WeightRow,
    backbone_rows,
)

CONFIG = BertConfig.from_dict(
    {"vocabulary_size": 23, "hidden_dim": 15, "num_layers": 3, "num_heads": 5, "intermediate_dim": 22}
)
FACTORISED = BertConfig.from_dict({**CONFIG.to_dict(), "embedding_dim": 7})


@pytest.mark.parametrize("config", [CONFIG, FACTORISED], ids=["plain", "factorised"])
def test_rows_are_the_weights_of_the_backbone(config):
    paths = {row.ours for row in backbone_rows(config)}
    weights = [weight.path for weight in BertBackbone(config).weights]
    assert len(weights) == len(paths)
    assert {path for path in paths for weight in weights if f"/{weight}".endswith(f"/{path}")} == paths


def test_rows_are_the_tensors_of_huggingface(huggingface):
    values = {**huggingface.CONFIG, "num_hidden_layers": 3}
    rows = backbone_rows(BertConfig.from_huggingface(values))
    names = [row.huggingface.name for row in rows]
    assert len(set(names)) == len(names)
    assert set(names) == set(huggingface.shapes(values))


def test_head_rows_are_the_weights_of_the_head(backbone):
    classifier = BertClassifier(backbone, num_classes=3)
    known = {id(weight) for weight in backbone.weights}
    head = [weight.path for weight in classifier.weights if id(weight) not in known]
    assert [row.ours for row in CLASSIFIER_ROWS] == head


def test_names_within_a_column_belong_to_one_place():
    places = [(row.ours, row.third) for row in backbone_rows(FACTORISED)]
    assert len(set(places)) == len(places)


def test_parts_put_together_are_the_whole():
    whole = np.arange(4 * 15).reshape(4, 15)
    rows = [WeightRow("kernel", StoredWeight("x"), third) for third in range(3)]
    np.testing.assert_array_equal(np.concatenate([row.part(whole) for row in rows], axis=-1), whole)
    assert {row.part(whole).shape for row in rows} == {rows[0].part_shape((4, 15))} == {(4, 5)}


@pytest.mark.parametrize("transform", Transform)
def test_transforms_are_their_own_inverse(transform):
    array = np.arange(6).reshape(2, 3)
    stored = transform.apply(array)
    assert stored.shape == transform.shape(array.shape)
    np.testing.assert_array_equal(transform.apply(stored), array)


def test_kernels_of_keras_are_transposed_in_torch():
    kernels = [row for row in backbone_rows(FACTORISED) if row.ours.endswith("/kernel")]
    others = [row for row in backbone_rows(FACTORISED) if not row.ours.endswith("/kernel")]
    assert {row.huggingface.transform for row in kernels} == {Transform.TRANSPOSE}
    assert {row.huggingface.transform for row in others} == {Transform.COPY}


def test_keras_is_not_needed_for_the_table():
    """The table is data: it holds names, and no tensor of any backend."""
    assert not any(isinstance(value, keras.Variable) for row in backbone_rows(CONFIG) for value in vars(row).values())
