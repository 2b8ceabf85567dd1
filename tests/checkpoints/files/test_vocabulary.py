import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.vocabulary import (
    cased_share,
    check_num_tokens,
    read_vocabulary,
    vocabulary_bytes,
)

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s"]


def test_round_trip(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocabulary_bytes(TOKENS))
    assert read_vocabulary(path) == TOKENS
    assert read_vocabulary(path, lambda path: [*TOKENS, path.name]) == [*TOKENS, "vocab.txt"]


def test_required_tokens(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(vocabulary_bytes(TOKENS))
    with pytest.raises(CheckpointError, match=rf"^{path}: .*<s>"):
        read_vocabulary(path, required=("<s>",))


def test_more_tokens_than_embeddings():
    check_num_tokens("vocab.txt", 7, 8, "vocab_size")
    text = r"vocab.txt: must not hold more tokens than vocab_size of 6\. Received: 7 tokens\."
    with pytest.raises(CheckpointError, match=text):
        check_num_tokens("vocab.txt", 7, 6, "vocab_size")


@pytest.mark.parametrize(
    ("tokens", "share"),
    [(["[CLS]", "the", "##s"], 0.0), (["<S>", "The", "the", "##s", "É"], 1 / 3), (["[CLS]", "中", "1"], None)],
)
def test_cased_share(tokens, share):
    assert cased_share(tokens) == share
