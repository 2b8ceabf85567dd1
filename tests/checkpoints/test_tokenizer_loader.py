import pytest

from keras_bert_layers import load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError


def ids(huggingface, *tokens):
    return [[huggingface.VOCABULARY.index(token) for token in tokens]]


def test_arguments_of_the_tokenizer(checkpoint, huggingface):
    huggingface.write_json(
        checkpoint / "tokenizer_config.json", {"do_lower_case": False, "tokenize_chinese_chars": False}
    )
    assert load_tokenizer(checkpoint).get_config() == {
        "vocabulary": huggingface.VOCABULARY,
        "lowercase": False,
        "strip_accents": None,
        "split_chinese": False,
        "reference": "huggingface",
        "added_tokens": [],
        "special_tokens": None,
    }


def test_uncased(checkpoint, huggingface):
    tokens = load_tokenizer(checkpoint).tokenize(["A GOODness中 films"]).to_list()
    assert tokens == ids(huggingface, "a", "good", "##ness", "中", "film", "##s")


def test_cased(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "tokenizer_config.json", {"do_lower_case": False})
    assert load_tokenizer(checkpoint).tokenize(["É A é"]).to_list() == ids(huggingface, "É", "[UNK]", "é")


def test_tokenizer_json_goes_before_vocab_txt(checkpoint, huggingface):
    vocabulary = [*huggingface.VOCABULARY, "more"]
    huggingface.write_json(checkpoint / "tokenizer.json", huggingface.tokenizer_json(vocabulary))
    assert load_tokenizer(checkpoint).tokenize(["more"]).to_list() == [[18]]


def test_needs_neither_weights_nor_config(checkpoint):
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "config.json").unlink()
    assert load_tokenizer(checkpoint).tokenize(["good"]).to_list() == [[6]]


def test_fewer_tokens_than_embeddings_are_allowed(checkpoint, huggingface):
    assert len(huggingface.VOCABULARY) < huggingface.CONFIG["vocab_size"]
    load_tokenizer(checkpoint)


def test_more_tokens_than_embeddings(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "vocab_size": 17})
    with pytest.raises(
        CheckpointError, match=r"must not hold more tokens than config.json's vocab_size of 17. Received: 18"
    ):
        load_tokenizer(checkpoint)


def test_no_such_directory():
    with pytest.raises(CheckpointError, match=r"`load_tokenizer`: `source` must be an existing directory"):
        load_tokenizer("nowhere")
