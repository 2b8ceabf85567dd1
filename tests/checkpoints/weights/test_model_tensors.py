import numpy as np
import pytest

from keras_bert_layers.checkpoints.weights import table as weight_table
from keras_bert_layers.checkpoints.weights.model_tensors import ModelTensors, weights_by_row
from keras_bert_layers.checkpoints.weights.table import Layout, WeightRow


def tensors(backbone, layout, **options):
    rows = weight_table.backbone_rows(backbone.config)
    return ModelTensors(backbone, rows, layout, num_heads=backbone.config.num_heads, **options)


@pytest.mark.parametrize("layout", Layout)
def test_shapes_are_known_before_anything_is_read(backbone, layout):
    file = tensors(backbone, layout)
    assert all(file.read(name).shape == info.shape for name, info in file.infos.items())
    assert sum(np.prod(info.shape) for info in file.infos.values()) == backbone.count_params()


def test_parts_of_a_merged_weight_in_any_order(backbone):
    file = tensors(backbone, Layout.GOOGLE)
    names = [f"bert/encoder/layer_0/attention/self/{part}/kernel" for part in ("query", "key", "value")]
    weights = {weight.path: np.asarray(weight.value) for weight in backbone.weights}
    merged = weights["encoder_block_0/attention/query_key_value/kernel"]
    file.read("bert/pooler/dense/bias")
    found = {name: file.read(name) for name in reversed(names)}
    np.testing.assert_array_equal(np.concatenate([found[name] for name in names], axis=1), merged)


def test_names_of_the_file(backbone):
    file = tensors(backbone, Layout.HUGGINGFACE, rename="bert.{}".format)
    assert file.read("bert.pooler.dense.bias").shape == (backbone.config.hidden_dim,)


def test_rows_and_weights_must_agree(backbone):
    rows = weight_table.backbone_rows(backbone.config)
    with pytest.raises(LookupError, match=r"needs one row for the weight '.*pooler/dense/kernel'"):
        weights_by_row(backbone, rows[:-2])
    with pytest.raises(LookupError, match=r"rows without a weight in the model: other/bias"):
        weights_by_row(backbone, [*rows, WeightRow("other/bias")])
    with pytest.raises(LookupError, match=r"has no name for 'pooler/dense/bias' in the layout"):
        ModelTensors(backbone, [WeightRow("pooler/dense/bias")], Layout.GOOGLE, num_heads=2)
