import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer


class Lengths(TextLayer):
    """The number of tokens of each text."""

    def call(self, text):
        return tf.cast(self.tokenizer.tokenize(text).row_lengths(), tf.int32)


def test_strings_stay_as_they_are_and_the_tokenizer_travels(vocabulary):
    layer = Lengths(BertTokenizer(vocabulary, strip_accents=False), name="lengths")
    assert layer(tf.constant(["a b", ""])).numpy().tolist() == [2, 0]
    assert layer(["a"]).numpy().tolist() == [1]
    assert layer.built
    assert layer.weights == []
    copy = Lengths.from_config(layer.get_config())
    assert copy.name == "lengths"
    assert copy.tokenizer.get_config() == layer.tokenizer.get_config()


@pytest.mark.parametrize("wrong", [None, "vocab.txt", ["[PAD]"], BertTokenizer])
def test_what_is_not_a_tokenizer(wrong):
    with pytest.raises(TypeError, match="`Lengths`: `tokenizer` must be a BertTokenizer.*load_tokenizer"):
        Lengths(wrong)
