import warnings

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import read_json_object
from keras_bert_layers.checkpoints.huggingface.tokenizer import stated_max_length, tokenizer_options

UNCASED, CASED = (True, None, True), (False, None, True)
GENERIC = {"tokenizer_class": "PreTrainedTokenizerFast"}


@pytest.fixture
def files(huggingface, tmp_path):
    """Writes tokenizer files and gives what they say."""

    def write_and_read(*, config=None, normalizer=None, vocabulary=True, **others):
        if vocabulary:
            (tmp_path / "vocab.txt").write_text("\n".join(huggingface.VOCABULARY), encoding="utf-8")
        if normalizer is not None:
            values = huggingface.tokenizer_json()
            values["normalizer"] |= normalizer
            huggingface.write_json(tmp_path / "tokenizer.json", values)
        if config is not None:
            huggingface.write_json(tmp_path / "tokenizer_config.json", config)
        for name, value in others.items():
            huggingface.write_json(tmp_path / f"{name}.json", value)
        path = tmp_path / "tokenizer_config.json"
        return tokenizer_options(tmp_path, read_json_object(path) if path.is_file() else {})

    return write_and_read


def options(settings):
    return settings["lowercase"], settings["strip_accents"], settings["split_chinese"]


def test_vocabulary_alone_is_uncased(files, huggingface):
    settings = files()
    assert (settings["vocabulary"], options(settings)) == (tuple(huggingface.VOCABULARY), UNCASED)


def test_tokenizer_json_alone(files, huggingface):
    settings = files(vocabulary=False, normalizer={"lowercase": False})
    assert (settings["vocabulary"], options(settings)) == (tuple(huggingface.VOCABULARY), CASED)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, UNCASED),
        ({"do_lower_case": False, "tokenizer_class": "BertTokenizer"}, CASED),
        ({"do_lower_case": True, "strip_accents": False}, (True, False, True)),
        ({"tokenize_chinese_chars": False, "tokenizer_class": "BertTokenizerFast"}, (True, None, False)),
    ],
)
def test_tokenizer_config(files, config, expected):
    assert options(files(config=config)) == expected


def test_tokenizer_json_states_what_the_config_does_not(files):
    assert options(files(config={"model_max_length": 512}, normalizer={"lowercase": False})) == CASED


def test_tokenizer_config_goes_first_and_a_contradiction_warns(files):
    with pytest.warns(UserWarning, match=r"Following the first, as transformers does"):
        settings = files(config={"do_lower_case": False}, normalizer={"lowercase": True})
    assert options(settings) == CASED


def test_the_same_in_other_words_is_no_contradiction(files):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files(config={"do_lower_case": True, "strip_accents": None}, normalizer={"strip_accents": True})


def test_a_generic_class_reads_tokenizer_json_only(files):
    assert options(files(config={**GENERIC, "do_lower_case": True}, normalizer={"lowercase": False})) == CASED


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"do_lower_case": False}, (True, False, True)),
        ({"do_lower_case": False, "strip_accents": True}, (True, True, True)),
        ({"do_lower_case": True}, UNCASED),
    ],
)
def test_lower_casing_of_sentence_transformers(files, config, expected):
    """It lower-cases ahead of the tokenizer, which then still sees the accents."""
    assert options(files(config=config, sentence_bert_config={"do_lower_case": True})) == expected


def test_standard_special_tokens_in_every_file(files):
    token = {"content": "[MASK]", "lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
    names = {
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": token,
    }
    config = {**names, "added_tokens_decoder": {"4": token}, "additional_special_tokens": [], "bos_token": None}
    files(config=config, special_tokens_map=names, added_tokens={"[MASK]": 4})


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("special_tokens_map", {"unk_token": "<unk>"}, r"`unk_token` must be '\[UNK\]'. Received: '<unk>'"),
        (
            "special_tokens_map",
            {"pad_token": {"content": "[MASK]"}},
            r"`pad_token` must be '\[PAD\]'. Received: '\[MASK\]'",
        ),
        (
            "special_tokens_map",
            {"bos_token": "<s>"},
            r"`bos_token` must be one of \['\[PAD\]', .*'\[MASK\]'\]. Received: '<s>'",
        ),
        (
            "special_tokens_map",
            {"mask_token": {"content": "[MASK]", "lstrip": True}},
            r"\[MASK\] must not have lstrip set",
        ),
        ("special_tokens_map", {"additional_special_tokens": ["<e>"]}, "`additional_special_tokens` .*Received: '<e>'"),
        ("tokenizer_config", {"extra_special_tokens": {"image": "<i>"}}, "`extra_special_tokens` .*Received: '<i>'"),
        ("tokenizer_config", {"added_tokens_decoder": {"9": {"content": "<x>"}}}, "`added_tokens_decoder` .*'<x>'"),
        ("tokenizer_config", {"cls_token": 3}, r"`cls_token` must be '\[CLS\]'. Received: 3"),
        ("added_tokens", {"<new>": 30522}, "Received: '<new>'"),
    ],
)
def test_other_special_tokens_are_refused(files, name, values, message):
    with pytest.raises(CheckpointError, match=rf"{name}\.json: .*{message}"):
        files(**{"config" if name == "tokenizer_config" else name: values})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"tokenizer_class": "RobertaTokenizer"}, "`tokenizer_class` must be one of .*Received: 'RobertaTokenizer'"),
        ({"do_basic_tokenize": False}, "`do_basic_tokenize` must be one of"),
        ({"never_split": ["a"]}, "`never_split` must be one of"),
        ({"padding_side": "left"}, "`padding_side` must be one of"),
        ({"do_lower_case": "yes"}, "`do_lower_case` must be true or false. Received: 'yes'"),
        ({"do_lower_case": None}, "`do_lower_case` must be true or false. Received: None"),
    ],
)
def test_other_tokenizers_are_refused(files, config, message):
    with pytest.raises(CheckpointError, match=rf"tokenizer_config\.json: {message}"):
        files(config=config)


def test_no_vocabulary(files):
    with pytest.raises(
        CheckpointError, match=r"must hold a vocab\.txt or a tokenizer\.json. Found: tokenizer_config\.json"
    ):
        files(config={}, vocabulary=False)


def test_broken_vocabulary_names_the_line(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\na\n")
    with pytest.raises(CheckpointError, match=r"vocab\.txt: .*'a' is on line 5 and on line 6"):
        tokenizer_options(tmp_path, {})


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
