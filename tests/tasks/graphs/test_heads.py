"""Which backbones and preprocessors fit together."""

import keras
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers.preprocessing import SpanPreprocessor
from keras_bert_layers.tasks.graphs.heads import check_parts


@pytest.fixture(scope="module")
def backbone(new_backbone):
    return new_backbone()


def test_parts_that_fit(backbone, tokenizer):
    check_parts("Owner", backbone, None)
    check_parts("Owner", backbone, BertPreprocessor(tokenizer, 13))
    check_parts("Owner", backbone, SpanPreprocessor(tokenizer, 13, stride=2), preprocessor_class=SpanPreprocessor)


def test_a_preprocessor_that_is_too_long(backbone, tokenizer):
    with pytest.raises(ValueError, match=r"`Owner`: .*`max_sequence_length` \(13\). Received: .*max_length=14"):
        check_parts("Owner", backbone, BertPreprocessor(tokenizer, 14))


def test_a_vocabulary_that_is_too_large(backbone, vocabulary):
    preprocessor = BertPreprocessor(BertTokenizer([*vocabulary, "extra"]), 9)
    with pytest.raises(ValueError, match=r"`Owner`: .*`vocabulary_size` \(18\). Received: .*=19. Text and weights"):
        check_parts("Owner", backbone, preprocessor)


@pytest.mark.parametrize("backbone", ["bert", keras.Sequential()], ids=["string", "model"])
def test_another_backbone(backbone):
    with pytest.raises(TypeError, match="`Owner`: `backbone` must be a BertBackbone. Received: .*load_backbone"):
        check_parts("Owner", backbone, None)


def test_another_preprocessor(backbone, tokenizer):
    with pytest.raises(TypeError, match="`Owner`: `preprocessor` must be a BertPreprocessor or None. Received:"):
        check_parts("Owner", backbone, tokenizer)
    with pytest.raises(TypeError, match="`Owner`: `preprocessor` must be a SpanPreprocessor or None. Received:"):
        check_parts("Owner", backbone, BertPreprocessor(tokenizer, 9), preprocessor_class=SpanPreprocessor)
