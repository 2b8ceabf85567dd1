import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory, ignored_reason, table_name


def test_prefix_and_old_names():
    stored = ["bert.embeddings.LayerNorm.gamma", "bert.pooler.dense.bias", "cls.predictions.transform.LayerNorm.beta"]
    assert [table_name(name) for name in stored] == [
        "embeddings.LayerNorm.weight",
        "pooler.dense.bias",
        "cls.predictions.transform.LayerNorm.bias",
    ]


@pytest.mark.parametrize("other", ["bert.embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"])
def test_one_weight_under_two_names(other, tmp_path):
    with pytest.raises(
        CheckpointError, match=f"{tmp_path}: the tensors 'embeddings.LayerNorm.weight' and '{other}' are the same"
    ):
        HuggingFaceDirectory(tmp_path, owner="x").stored_names(["embeddings.LayerNorm.weight", other])


def test_reasons():
    assert "buffer" in ignored_reason("embeddings.position_ids")
    assert "question" in ignored_reason("qa_outputs.weight")
    assert ignored_reason("classifiers.weight") is None
    assert ignored_reason("encoder.layer.0.crossattention.self.query.weight") is None
