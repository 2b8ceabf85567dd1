import re
from pathlib import Path

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.kerashub.objects import tokenizer_object, tokenizer_options

PATH = Path("preset/tokenizer.json")
PLAIN = ["[PAD]", "cafe"]
SWITCHES = ("lowercase", "strip_accents", "split_chinese", "reference")


def options(arguments, vocabulary=PLAIN):
    found = tokenizer_options(PATH, {"class_name": "BertTokenizer", "config": arguments}, vocabulary)
    return tuple(found[name] for name in SWITCHES)


def test_what_kerashub_itself_writes(kerashub):
    values = {"class_name": "BertTokenizer", "config": kerashub.tokenizer().get_config()}
    found = tokenizer_options(PATH, values, kerashub.VOCABULARY)
    ours = tokenizer_object({**found, "strip_accents": False})["config"]
    assert ours == {**{key: value for key, value in values["config"].items() if key != "dtype"}, "name": ours["name"]}


@pytest.mark.parametrize(
    ("arguments", "vocabulary", "expected"),
    [
        ({}, PLAIN, (False, False, True, "google")),
        ({"lowercase": True}, PLAIN, (True, True, True, "google")),
        ({"lowercase": True}, [*PLAIN, "café"], (True, False, True, "google")),
        ({"lowercase": True}, [*PLAIN, "ß", "中", "##ø"], (True, True, True, "google")),
        ({"lowercase": True, "strip_accents": True}, [*PLAIN, "café"], (True, True, True, "google")),
        ({"strip_accents": True}, PLAIN, (False, True, True, "google")),
        ({"split_on_cjk": False}, PLAIN, (False, False, False, "google")),
        ({"special_tokens_in_strings": True, "special_tokens": ["[MASK]"]}, PLAIN, (False, False, True, "huggingface")),
    ],
)
def test_switches(arguments, vocabulary, expected):
    assert options(arguments, vocabulary) == expected


@pytest.mark.parametrize("strip_accents", [True, False, None])
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("reference", ["google", "huggingface"])
def test_round_trip(lowercase, strip_accents, reference):
    ours = {"lowercase": lowercase, "strip_accents": strip_accents, "split_chinese": True, "reference": reference}
    values = tokenizer_object(ours)
    effective = lowercase if strip_accents is None else strip_accents
    assert tokenizer_options(PATH, values, ["café"]) == {**ours, "strip_accents": effective}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"lowercase": "yes"}, "`lowercase` must be true or false. Received: 'yes'."),
        ({"split": False}, "`split` must be True. Received: False. BertTokenizer has no other."),
        ({"suffix_indicator": "@@"}, "`suffix_indicator` must be '##'. Received: '@@'. BertTokenizer has no other."),
        ({"oov_token": "<unk>"}, "`oov_token` must be '[UNK]'"),
        ({"sequence_length": 64}, "`sequence_length` must be None"),
        ({"vocabulary": ["a"]}, "`vocabulary` must be None"),
        ({"special_tokens": ["<url>"]}, "`special_tokens` must be among ['[PAD]',"),
        ({"special_tokens": "[MASK]"}, "`special_tokens` must be among"),
        ({"stemming": True}, "`stemming` must be a known key. Received: stemming=True."),
    ],
)
def test_settings_that_are_refused(arguments, text):
    with pytest.raises(CheckpointError, match=re.escape(f"{PATH}: {text}")):
        options(arguments)


@pytest.mark.parametrize(
    "values", [{"class_name": "XLMRobertaTokenizer", "config": {}}, {"class_name": "BertTokenizer"}]
)
def test_other_objects(values):
    with pytest.raises(
        CheckpointError, match=r"`class_name` must be 'BertTokenizer'\.|`config` must be a JSON object\."
    ):
        tokenizer_options(PATH, values, PLAIN)


def test_the_vocabulary_of_uncased_bert_has_no_accent(minilm):
    tokens = (minilm / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert options({"lowercase": True}, tokens) == (True, True, True, "google")
