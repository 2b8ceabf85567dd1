import json

import pytest
import tokenizers

from keras_bert_layers import BertTokenizer, load_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import TokenizerJson
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import write_word_piece_tokenizer
from keras_bert_layers.preprocessing import AddedToken


def write(directory, vocabulary, max_length=9, **options):
    tokenizer = BertTokenizer(vocabulary, reference="huggingface", **options)
    write_word_piece_tokenizer(directory, tokenizer, max_length=max_length)
    return tokenizer


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [None, True, False])
@pytest.mark.parametrize("split_chinese", [True, False])
def test_read_back(vocabulary, tmp_path, lowercase, strip_accents, split_chinese):
    options = {"lowercase": lowercase, "strip_accents": strip_accents, "split_chinese": split_chinese}
    tokenizer = write(tmp_path, vocabulary, **options)
    assert load_tokenizer(tmp_path).get_config() == tokenizer.get_config()
    assert TokenizerJson(tmp_path / "tokenizer.json").options == options


def test_tokenizer_json_is_the_one_of_the_library(huggingface, tmp_path):
    write(tmp_path, huggingface.VOCABULARY)
    values = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    assert values == huggingface.tokenizer_json()
    assert list(values["model"]["vocab"]) == huggingface.VOCABULARY


def test_the_other_files(vocabulary, tmp_path):
    write(tmp_path, vocabulary, max_length=77)
    roles = {
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "unk_token": "[UNK]",
    }
    assert json.loads((tmp_path / "special_tokens_map.json").read_text()) == roles
    assert json.loads((tmp_path / "tokenizer_config.json").read_text()) == {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": 77,
        **roles,
    }
    assert (tmp_path / "vocab.txt").read_text().split("\n") == [*vocabulary, ""]


def test_special_tokens_at_other_places(tmp_path):
    vocabulary = ["a", "[MASK]", "[SEP]", "b", "[UNK]", "[CLS]", "c", "[PAD]"]
    write(tmp_path, vocabulary)
    values = json.loads((tmp_path / "tokenizer.json").read_text())
    added = {token["content"]: token["id"] for token in values["added_tokens"]}
    assert added == {"[MASK]": 1, "[SEP]": 2, "[UNK]": 4, "[CLS]": 5, "[PAD]": 7}
    assert values["post_processor"]["special_tokens"]["[SEP]"] == {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}
    assert load_tokenizer(tmp_path).get_config()["vocabulary"] == vocabulary


def test_without_mask(tmp_path):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]
    write(tmp_path, vocabulary)
    # null, not absent: transformers would add a token of its own, for which there is no embedding.
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["mask_token"] is None
    assert "mask_token" not in json.loads((tmp_path / "special_tokens_map.json").read_text())
    assert load_tokenizer(tmp_path).get_config()["vocabulary"] == vocabulary


@pytest.mark.parametrize("token", ["a\nb", "a\r", "a\u2028b", "\u00e9", '"', "\\", "##\x00"])
def test_odd_tokens(vocabulary, tmp_path, token):
    tokenizer = write(tmp_path, [*vocabulary, token])
    assert load_tokenizer(tmp_path).get_config() == tokenizer.get_config()
    assert (tmp_path / "vocab.txt").exists() == (token not in ("a\nb", "a\r"))


def test_added_tokens_and_other_names(tmp_path):
    names = {"pad": "<pad>", "unknown": "<unk>", "start": "<s>", "separator": "</s>", "mask": "<mask>"}
    tokens = [
        AddedToken("covid", single_word=True),
        AddedToken("a", special=True, normalized=True),
        AddedToken("<e>", special=True, lstrip=True),
    ]
    tokenizer = write(tmp_path, [*names.values(), "a", "b"], special_tokens=names, added_tokens=tokens)
    loaded = load_tokenizer(tmp_path)
    texts = ["a covid <e> b<mask>", "Covid</s>covids", "[SEP]"]
    assert loaded.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list()
    assert loaded.get_config()["special_tokens"] == names
    assert loaded.all_tokens() == tokenizer.all_tokens() == [*names.values(), "a", "b", "covid", "<e>"]
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    encodings = library.encode_batch(texts, add_special_tokens=False)
    assert [encoding.ids for encoding in encodings] == tokenizer.tokenize(texts).to_list()


def test_truncation_side(vocabulary, tmp_path):
    write_word_piece_tokenizer(tmp_path, BertTokenizer(vocabulary), max_length=9, truncation_side="left")
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["truncation_side"] == "left"
