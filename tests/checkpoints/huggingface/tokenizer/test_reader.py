import pytest

from keras_bert_layers import load_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer.reader import stated_max_length, truncation_side


def test_warnings_name_the_line_that_loads(tmp_path):
    words = [*("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), *map(str.title, "abcdefgh")]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    with pytest.warns(UserWarning, match="texts are lower-cased, the default of transformers") as caught:
        load_tokenizer(tmp_path)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("config", "truncation", "side"),
    [
        ({}, None, "right"),
        ({"truncation_side": "left"}, None, "left"),
        ({}, {"direction": "Left"}, "left"),
        ({"truncation_side": "right"}, {"direction": "Left"}, "right"),
    ],
)
def test_truncation_side(huggingface, tmp_path, config, truncation, side):
    huggingface.write_json(tmp_path / "tokenizer.json", {"truncation": truncation})
    assert truncation_side(tmp_path, config) == side


@pytest.mark.parametrize(
    ("sentence_bert", "config", "expected"),
    [
        (None, {}, 17),
        (None, {"model_max_length": 12}, 12),
        (None, {"model_max_length": 10**30}, 17),
        (None, {"model_max_length": 1e30}, 17),
        (None, {"model_max_length": None}, 17),
        ({"max_seq_length": 9}, {"model_max_length": 12}, 9),
        ({"max_seq_length": 99}, {}, 17),
        ({"max_seq_length": None}, {"model_max_length": 12}, 12),
    ],
)
def test_longest_text(huggingface, tmp_path, sentence_bert, config, expected):
    if sentence_bert is not None:
        huggingface.write_json(tmp_path / "sentence_bert_config.json", sentence_bert)
    assert stated_max_length(tmp_path, config, positions=17) == expected
