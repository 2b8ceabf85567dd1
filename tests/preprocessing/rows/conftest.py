"""A tokenizer of numbered words, and random documents of them."""

import random

import pytest
from document_rows import NUM_WORDS, make_documents

from keras_bert_layers import BertTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(NUM_WORDS))])


@pytest.fixture(scope="module")
def documents():
    generator = random.Random(3)
    return make_documents([[generator.randint(1, 29) for _ in range(generator.randint(1, 13))] for _ in range(40)])
