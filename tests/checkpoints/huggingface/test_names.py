import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.names import ignored_reason, stored_names


def test_prefix_and_old_names():
    stored = ["bert.embeddings.LayerNorm.gamma", "bert.pooler.dense.bias", "cls.predictions.transform.LayerNorm.beta"]
    assert stored_names(stored, source="x") == {
        "embeddings.LayerNorm.weight": stored[0],
        "pooler.dense.bias": stored[1],
        "cls.predictions.transform.LayerNorm.bias": stored[2],
    }


@pytest.mark.parametrize("other", ["bert.embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"])
def test_one_weight_under_two_names(other):
    with pytest.raises(
        CheckpointError, match=f"here: the tensors 'embeddings.LayerNorm.weight' and '{other}' are the same"
    ):
        stored_names(["embeddings.LayerNorm.weight", other], source="here")


def test_reasons():
    assert "buffer" in ignored_reason("embeddings.position_ids")
    assert "question" in ignored_reason("qa_outputs.weight")
    assert ignored_reason("classifiers.weight") is None
    assert ignored_reason("encoder.layer.0.crossattention.self.query.weight") is None
