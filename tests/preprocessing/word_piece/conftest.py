"""The small tokenizers that the tests of this folder share."""

import pytest
from small_vocabulary import TOKENS

from keras_bert_layers.preprocessing import BertTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(TOKENS)


@pytest.fixture(scope="module")
def huggingface():
    return BertTokenizer(TOKENS, reference="huggingface")
