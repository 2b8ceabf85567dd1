import pytest

from keras_bert_layers.visualization import Architecture


def rows(picture):
    return [(part.name, part.count, part.depth, part.shape) for part in picture.parts]


def test_backbone(backbone):
    picture = Architecture(backbone)
    hidden = "(batch, sequence, 15)"
    assert rows(picture)[3:] == [
        ("embedding", 1, 0, hidden),
        ("encoder_block_0", 2, 0, hidden),
        ("attention", 1, 1, hidden),
        ("attention_layer_norm", 1, 1, hidden),
        ("feed_forward", 1, 1, hidden),
        ("feed_forward_layer_norm", 1, 1, hidden),
        ("pooler", 1, 0, "(batch, 15)"),
    ]
    outer = sum(part.count * part.num_weights for part in picture.parts if part.depth == 0)
    inner = sum(part.num_weights for part in picture.parts if part.depth == 1)
    block = next(part for part in picture.parts if part.count == 2)
    assert outer == picture.num_weights == backbone.count_params()
    assert inner == block.num_weights
    assert "encoder_block_0 and 1 more" in picture.html()


def test_task(backbone):
    from keras_bert_layers import BertClassifier

    picture = Architecture(BertClassifier(backbone, 3))
    found = {part.name: part for part in picture.parts}
    assert found[backbone.name].depth == 0
    assert found["encoder_block_0"].depth == 1
    assert found["attention"].depth == 2
    assert found["classification_head"].shape == "(batch, 3)"
    assert [part.name for part in picture.parts].count("token_ids") == 1
    assert picture.title == "BertClassifier"


def test_blocks_that_differ_are_rows_of_their_own():
    import keras

    from keras_bert_layers.layers import BertEmbedding, TransformerEncoderBlock

    inputs = keras.Input((None,), dtype="int32")
    hidden = BertEmbedding(11, 6, max_sequence_length=7)(inputs)
    for width, before in ((10, False), (10, False), (14, True)):
        hidden = TransformerEncoderBlock(2, width, normalize_first=before)(hidden)
    parts = Architecture(keras.Model(inputs, hidden)).parts
    assert [part.count for part in parts if part.kind == "TransformerEncoderBlock"] == [2, 1]
    assert [part.name for part in parts[-4:]][::2] == ["attention_layer_norm", "feed_forward_layer_norm"]


def test_every_task_is_drawn(backbone, preprocessor):
    import keras_bert_layers as kbl

    for task in (
        kbl.BertMaskedLM(backbone),
        kbl.BertMultipleChoice(backbone),
        kbl.BertQuestionAnswerer(backbone),
        kbl.BertPretrainer(backbone),
        kbl.BertDualEncoder(backbone),
    ):
        assert Architecture(task).html().count(">BertBackbone<") == 1, task


def test_what_is_not_a_model():
    with pytest.raises(
        TypeError, match="`model` must be a BertBackbone, a task or another functional Keras model. Rec"
    ):
        Architecture("bert")
