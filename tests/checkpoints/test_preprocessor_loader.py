import pytest

from keras_bert_layers import load_preprocessor
from keras_bert_layers.checkpoints import CheckpointError


def test_longest_text_of_the_checkpoint(checkpoint, huggingface):
    assert load_preprocessor(checkpoint).max_length == 17
    huggingface.write_json(checkpoint / "tokenizer_config.json", {"model_max_length": 11})
    assert load_preprocessor(checkpoint).max_length == 11


def test_options_reach_the_preprocessor(checkpoint):
    preprocessor = load_preprocessor(checkpoint, max_length=5, padding="max_length", truncation="only_first")
    assert (preprocessor.max_length, preprocessor.padding, preprocessor.truncation) == (5, "max_length", "only_first")
    assert preprocessor(["good bad film night"])["token_ids"].numpy().tolist() == [[2, 6, 7, 8, 3]]


def test_tokenizer_of_the_checkpoint(checkpoint):
    assert load_preprocessor(checkpoint).tokenizer.reference == "huggingface"


def test_errors_name_the_function():
    with pytest.raises(CheckpointError, match=r"`load_preprocessor`: `source` must be an existing directory"):
        load_preprocessor("nowhere")
