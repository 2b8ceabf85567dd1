import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs.written_masks import preprocessor_with_masks, read_masks

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "<mask>"]


@pytest.mark.parametrize(
    ("side", "texts", "columns"),
    [
        ("right", [["[MASK] a b [MASK] [MASK]"]], [[0, 1]]),
        ("left", [["[MASK] a b [MASK] [MASK]"]], [[1, 2]]),
        ("right", [["[MASK] a [MASK]"], ["[MASK] a [MASK]"]], [[0, 2]]),
        ("left", [["[MASK] a [MASK]"], ["[MASK] a [MASK]"]], [[1, 3]]),
    ],
)
def test_columns_after_truncation(side, texts, columns):
    given = BertPreprocessor(BertTokenizer(TOKENS), max_length=6, truncation_side=side)
    preprocessor = preprocessor_with_masks(given)
    texts = [tf.constant(text) for text in texts]
    masks = read_masks(preprocessor(tuple(texts) if len(texts) > 1 else texts[0]), preprocessor, texts)
    found = [column for column in masks.columns.numpy()[0].tolist() if column >= 0]
    assert [found] == columns


def test_another_name_of_the_mask():
    given = BertPreprocessor(BertTokenizer(TOKENS, special_tokens={"mask": "<mask>"}))
    preprocessor = preprocessor_with_masks(given)
    text = tf.constant(["a <mask> [MASK]"])
    masks = read_masks(preprocessor(text), preprocessor, [text])
    assert masks.ids["mask_positions"].numpy().tolist() == [[2]]
    assert int(masks.num_columns) == 1
