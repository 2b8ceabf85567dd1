"""`examples/serving/token_estimate.py`: estimates for rows, beside the tokens of real texts."""

import numpy as np
import pytest


@pytest.fixture
def module(import_example):
    return import_example("token_estimate")


def column(*rows):
    return np.array(rows, object)


def test_rows(module):
    columns = {"text": column(b"", b"eight by", b"x" * 400)}
    assert module.estimated_tokens(columns) == [3, 5, 103]
    assert module.estimated_tokens(columns, max_length=64) == [3, 5, 64]
    assert module.longest_text(columns) == 100


def test_pairs_are_one_sequence(module):
    columns = {"text": column(b"x" * 40, b""), "text_pair": column(b"y" * 80, b"")}
    assert module.estimated_tokens(columns) == [36, 6]
    assert module.estimated_tokens(columns, max_length=30) == [30, 6]


def test_a_prompt_is_read_with_each_choice(module):
    choices = np.array([[b"a" * 8, b"b" * 12, b""]], object)
    prompt = 3 + 10
    assert module.estimated_tokens({"prompt": column(b"p" * 40), "choices": choices}) == [3 * prompt + 5 + 6 + 3]


def test_ids_are_counted(module):
    assert module.estimated_tokens({"token_ids": np.ones((2, 7), np.int32)}) == [7, 7]
    assert module.longest_text({"token_ids": np.ones((2, 7), np.int32)}) == 0


def test_english_is_estimated_well(module, minilm):
    """Within a third of the tokens of ordinary sentences, which is what a budget needs."""
    from keras_bert_layers import load_tokenizer

    texts = [
        "It 's a charming and often affecting journey , which is all that one may ask of a film of two hours .",
        "The committee will publish the figures of the third quarter before the end of next month.",
        "Where do I find the settings for notifications, and how can I turn them off?",
    ]
    tokens = [len(ids) + 2 for ids in load_tokenizer(minilm).tokenize(texts).numpy()]
    estimates = module.estimated_tokens({"text": column(*(text.encode() for text in texts))})
    np.testing.assert_allclose(estimates, tokens, rtol=1 / 3)
