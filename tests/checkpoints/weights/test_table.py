import subprocess
import sys

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig, tasks
from keras_bert_layers.checkpoints import config_from_huggingface
from keras_bert_layers.checkpoints.weights import table as weight_table
from keras_bert_layers.checkpoints.weights.table import Layout, StoredWeight, Transform, WeightRow, backbone_rows

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
    rows = backbone_rows(config_from_huggingface(values))
    names = [row.huggingface.name for row in rows]
    assert len(set(names)) == len(names)
    assert set(names) == set(huggingface.shapes(values))


HEADS = {
    "BertClassifier": ({"num_classes": 3}, weight_table.CLASSIFIER_ROWS),
    "BertCrossEncoder": ({}, weight_table.CLASSIFIER_ROWS),
    "BertMaskedLM": ({}, weight_table.MASKED_LM_ROWS),
    "BertMultipleChoice": ({}, weight_table.MULTIPLE_CHOICE_ROWS),
    "BertPretrainer": ({}, (*weight_table.MASKED_LM_ROWS, *weight_table.NEXT_SENTENCE_ROWS)),
    "BertQuestionAnswerer": ({}, weight_table.SPAN_ROWS),
    "BertSentenceEncoder": ({}, ()),
    "BertTokenClassifier": ({"tag_names": ["O", "B-x", "I-x"]}, weight_table.TOKEN_CLASSIFIER_ROWS),
}


@pytest.mark.parametrize("name", HEADS)
def test_head_rows_are_the_weights_of_the_head(backbone, name):
    options, rows = HEADS[name]
    task = getattr(tasks, name)(backbone, **options)
    known = {id(weight) for weight in backbone.weights}
    head = [weight.path for weight in task.weights if id(weight) not in known]
    assert len(head) == len(rows)
    assert all(any(f"/{path}".endswith(f"/{row.ours}") for row in rows) for path in head)


@pytest.mark.parametrize("layout", Layout)
def test_a_name_stands_for_one_weight(layout):
    heads = (weight_table.MASKED_LM_ROWS, weight_table.NEXT_SENTENCE_ROWS, weight_table.SPAN_ROWS)
    rows = [*backbone_rows(CONFIG), *(row for head in heads for row in head)]
    names = [row.stored(layout).name for row in rows if row.stored(layout)]
    assert len(set(names)) == len(names)


def test_names_within_a_column_belong_to_one_place():
    places = [(row.ours, row.part_index) for row in backbone_rows(FACTORISED)]
    assert len(set(places)) == len(places)


def test_kernels_of_keras_are_transposed_in_torch():
    kernels = [row for row in backbone_rows(FACTORISED) if row.ours.endswith("/kernel")]
    others = [row for row in backbone_rows(FACTORISED) if not row.ours.endswith("/kernel")]
    assert {row.huggingface.transform for row in kernels} == {Transform.TRANSPOSE}
    assert {row.huggingface.transform for row in others} == {Transform.COPY}


@pytest.mark.parametrize("module", ["weights.table", "task_table"])
def test_the_tables_need_no_framework(module):
    """The tables are data: names, and no class or tensor of any backend."""
    heavy = "('keras', 'tensorflow', 'keras_hub', 'torch', 'jax', 'h5py')"
    code = f"import sys, keras_bert_layers.checkpoints.{module}; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_the_index_of_a_block_reaches_every_name():
    config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=8, num_heads=2, intermediate_dim=7)
    (row,) = (row for row in backbone_rows(config) if row.ours == "encoder_block_7/attention/output/bias")
    assert [cell.name for cell in (row.google, row.huggingface, row.kerashub)] == [
        "bert/encoder/layer_7/attention/output/dense/bias",
        "encoder.layer.7.attention.output.dense.bias",
        "transformer_layer_7/self_attention_layer/attention_output/bias",
    ]


NUM_HEADS = 3


def test_parts_put_together_are_the_whole():
    whole = np.arange(4 * 15).reshape(4, 15)
    rows = [WeightRow("kernel", part_index=third) for third in range(3)]
    np.testing.assert_array_equal(np.concatenate([row.part(whole) for row in rows], axis=-1), whole)
    assert {row.part(whole).shape for row in rows} == {rows[0].part_shape((4, 15))} == {(4, 5)}


@pytest.mark.parametrize(
    ("transform", "shape", "stored_shape"),
    [
        (Transform.COPY, (4, 6), (4, 6)),
        (Transform.TRANSPOSE, (4, 6), (6, 4)),
        (Transform.TRANSPOSE, (4,), (4,)),
        (Transform.SPLIT_LAST, (4, 6), (4, 3, 2)),
        (Transform.SPLIT_LAST, (6,), (3, 2)),
        (Transform.SPLIT_FIRST, (6, 4), (3, 2, 4)),
    ],
)
def test_transforms_there_and_back(transform, shape, stored_shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    stored = transform.to_stored(array, NUM_HEADS)
    assert stored.shape == transform.stored_shape(shape, NUM_HEADS) == stored_shape
    np.testing.assert_array_equal(transform.to_ours(stored, shape), array)


def test_a_head_is_a_run_of_neighbours():
    """Head 1 of a kernel is the columns from D to 2 D, as every implementation splits its product."""
    kernel = np.arange(4 * 6).reshape(4, 6)
    np.testing.assert_array_equal(Transform.SPLIT_LAST.to_stored(kernel, NUM_HEADS)[:, 1], kernel[:, 2:4])
    np.testing.assert_array_equal(Transform.SPLIT_FIRST.to_stored(kernel.T, NUM_HEADS)[1], kernel.T[2:4])


def test_a_layout_without_the_weight():
    row = WeightRow("bias", google=StoredWeight("bias"), kerashub=StoredWeight("b"), part_index=2)
    assert [row.stored(layout) is None for layout in Layout] == [False, True, False]
