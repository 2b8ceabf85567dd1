import warnings

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import read_json_object
from keras_bert_layers.checkpoints.huggingface.tokenizer.special_tokens import fit_embeddings
from keras_bert_layers.checkpoints.huggingface.tokenizer.word_piece import word_piece_options

UNCASED, CASED = (True, None, True), (False, None, True)
WORD = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
NEW = 18  # the first id after the vocabulary


@pytest.fixture
def files(huggingface, tmp_path):
    """Writes tokenizer files, and returns the options that are read from them."""

    def write_and_read(
        *, config=None, normalizer=None, vocabulary=True, lines=None, model=None, added_tokens_of_json=5, **others
    ):
        if vocabulary:
            (tmp_path / "vocab.txt").write_text("\n".join(lines or huggingface.VOCABULARY), encoding="utf-8")
        if model is not None:
            huggingface.write_json(tmp_path / "config.json", {"tokenizer_class": model})
        if normalizer is not None:
            values = huggingface.tokenizer_json()
            values["normalizer"] |= normalizer
            del values["added_tokens"][added_tokens_of_json:]
            huggingface.write_json(tmp_path / "tokenizer.json", values)
        if config is not None:
            huggingface.write_json(tmp_path / "tokenizer_config.json", config)
        for name, value in others.items():
            huggingface.write_json(tmp_path / f"{name}.json", value)
        path = tmp_path / "tokenizer_config.json"
        return word_piece_options(tmp_path, read_json_object(path) if path.is_file() else {})

    return write_and_read


def options(settings):
    return settings["lowercase"], settings["strip_accents"], settings["split_chinese"]


def test_vocabulary_alone_is_uncased(files, huggingface):
    settings = files()
    assert (settings["vocabulary"], options(settings)) == (tuple(huggingface.VOCABULARY), UNCASED)


def test_tokenizer_json_alone(files, huggingface):
    """BERT's class in transformers takes the tokens from it, and nothing else."""
    with pytest.warns(
        UserWarning, match=r"config.json states nothing, and transformers' defaults are .*tokenizer.json"
    ):
        settings = files(vocabulary=False, normalizer={"lowercase": False})
    assert (settings["vocabulary"], options(settings)) == (tuple(huggingface.VOCABULARY), UNCASED)


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


def test_tokenizer_config_goes_first_and_a_contradiction_warns(files):
    with pytest.warns(UserWarning, match=r"Following the first, as transformers does"):
        settings = files(config={"do_lower_case": False}, normalizer={"lowercase": True})
    assert options(settings) == CASED


def test_the_same_in_other_words_is_not_a_contradiction(files):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files(config={"do_lower_case": True, "strip_accents": None}, normalizer={"strip_accents": True})


@pytest.mark.parametrize(
    "name", ["PreTrainedTokenizerFast", "TokenizersBackend", "RetriBertTokenizer", "ConvBertTokenizer"]
)
def test_classes_that_read_tokenizer_json_only(files, name):
    config = {"tokenizer_class": name, "do_lower_case": True}
    assert options(files(config=config, normalizer={"lowercase": False})) == CASED


@pytest.mark.parametrize("name", ["DistilBertTokenizer", "ElectraTokenizerFast", "RealmTokenizer", "AutoTokenizer"])
def test_other_names_of_the_same_tokenizer(files, name):
    assert options(files(config={"tokenizer_class": name, "do_lower_case": False})) == CASED


def test_class_in_the_config_of_the_model(files):
    with pytest.raises(CheckpointError, match=r"/config.json: `tokenizer_class` .*BertJapanese.*dictionary \(MeCab"):
        files(model="BertJapaneseTokenizer")
    assert options(files(config={"tokenizer_class": "BertTokenizer"}, model="BertJapaneseTokenizer")) == UNCASED


def test_cased_vocabulary_without_a_stated_case(files):
    with pytest.warns(
        UserWarning, match=r"lower-cased, the default of transformers.* may be wrong: \d+% of the tokens"
    ):
        assert options(files(lines=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "The", "cat"])) == UNCASED


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


FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"added_tokens": {"new": NEW + 1, "<e>": NEW}}, {"<e>": WORD, "new": WORD}),
        ({"config": {"additional_special_tokens": ["<e>"]}}, {"<e>": FLAGS}),
        ({"config": {"extra_special_tokens": {"ent_token": "<e>"}}}, {"<e>": FLAGS}),
        ({"config": {"ent_token": "<e>", "bos_token": "<s>"}}, {"<s>": FLAGS, "<e>": FLAGS}),
        ({"special_tokens_map": {"eos_token": {"content": "</s>", **FLAGS}}}, {"</s>": FLAGS}),
        (
            {"special_tokens_map": {"mask_token": {"content": "[MASK]", "lstrip": True}}},
            {"[MASK]": {**FLAGS, "lstrip": True}},
        ),
        (
            {
                "config": {"added_tokens_decoder": {str(NEW): {"content": "<x>", **FLAGS, "rstrip": True}}},
                "added_tokens": {"a": 1},
            },
            {"<x>": {**FLAGS, "rstrip": True}},
        ),
    ],
)
def test_added_tokens(files, written, expected):
    found = files(**written)["added_tokens"]
    assert {token.pop("content"): token for token in found} == expected


def test_ids_are_those_of_transformers(files):
    with pytest.warns(UserWarning, match=r"state the id 99 for the added token 'new'. It gets 18, the next free one"):
        files(added_tokens={"new": 99})


def test_other_names_of_special_tokens(files):
    names = {
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "mask_token": "<mask>",
    }
    ours = {"pad": "<pad>", "unknown": "<unk>", "start": "<s>", "separator": "</s>", "mask": "<mask>"}
    for where in ("config", "special_tokens_map"):
        settings = files(lines=[*names.values(), "a"], **{where: names})
        assert (settings["special_tokens"], settings["added_tokens"]) == (ours, [])


def test_missing_mask_is_added(files):
    """transformers adds it even if no file names it."""
    lines = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]
    assert [token["content"] for token in files(lines=lines)["added_tokens"]] == ["[MASK]"]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("special_tokens_map", {"cls_token": 3}, "a token must be a string. Received: 3"),
        (
            "special_tokens_map",
            {"cls_token": {"content": "[CLS]", "lstrip": 1}},
            r"the token '\[CLS\]': .*`lstrip` must be",
        ),
        ("special_tokens_map", {"unk_token": "<unk>"}, "`vocabulary` must hold .*<unk>"),
        ("special_tokens_map", {"additional_special_tokens": "<e>"}, "must be a list of tokens. Received: '<e>'"),
        ("added_tokens", {"<new>": "x"}, "an added token's id must be a number"),
    ],
)
def test_what_is_not_a_token_is_refused(files, name, values, message):
    with pytest.raises(CheckpointError, match=message):
        files(**{name: values})


@pytest.mark.parametrize("setting", [{"do_basic_tokenize": False}, {"never_split": ["a"]}])
def test_settings_of_slow_tokenizers_change_nothing(files, setting):
    with pytest.warns(UserWarning, match=f"`{next(iter(setting))}` changes nothing, as in transformers 5"):
        assert options(files(config=setting)) == UNCASED


@pytest.mark.parametrize(("num_embeddings", "kept"), [(NEW, []), (NEW + 1, ["<e>"]), (NEW + 2, ["<e>", "new"])])
def test_tokens_without_an_embedding_are_left_out(files, tmp_path, num_embeddings, kept):
    settings = files(added_tokens={"<e>": NEW, "new": NEW + 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = fit_embeddings(tmp_path, settings, num_embeddings)
    assert [token["content"] for token in fitted["added_tokens"]] == kept
    assert len(caught) == (num_embeddings < NEW + 2)
    with pytest.raises(CheckpointError, match="must not hold more tokens than config.json's vocab_size of 17"):
        fit_embeddings(tmp_path, settings, NEW - 1)


def test_empty_lines_at_the_end_need_no_embedding(tmp_path):
    settings = {"vocabulary": ["a", "b", "", ""], "added_tokens": []}
    assert fit_embeddings(tmp_path, settings, 2)["vocabulary"] == ["a", "b"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"tokenizer_class": "RobertaTokenizer"}, "`tokenizer_class` must be one of .*Received: 'RobertaTokenizer'"),
        ({"tokenizer_class": 3}, "`tokenizer_class` must be one of"),
        ({"split_special_tokens": True}, "`split_special_tokens` must be one of"),
        ({"truncation_side": "up"}, "`truncation_side` must be one of"),
        ({"padding_side": "left"}, "`padding_side` must be one of"),
        ({"do_lower_case": "yes"}, "`do_lower_case` must be true or false. Received: 'yes'"),
        ({"do_lower_case": None}, "`do_lower_case` must be true or false. Received: None"),
    ],
)
def test_other_tokenizers_are_refused(files, config, message):
    with pytest.raises(CheckpointError, match=rf"tokenizer_config\.json: {message}"):
        files(config=config)


@pytest.mark.parametrize(
    ("config", "role"),
    [
        ({"cls_token": None}, "cls_token"),
        ({"sep_token": None, "tokenizer_class": "ConvBertTokenizer"}, "sep_token"),
        ({"mask_token": None}, "mask_token"),
    ],
)
def test_a_null_in_the_place_of_a_special_token(files, config, role):
    """transformers puts another token in its place, or does not find it in texts."""
    with pytest.raises(CheckpointError, match=rf"tokenizer_config\.json: `{role}` must be a token.*Received: null"):
        files(config=config)


def test_special_tokens_that_a_generic_class_does_not_find(files):
    with pytest.raises(CheckpointError, match=r"`mask_token` must be a token: .* Received: no entry"):
        files(config={"tokenizer_class": "TokenizersBackend"}, normalizer={}, added_tokens_of_json=4)


def test_padding_on_the_left(huggingface, tmp_path):
    huggingface.write_json(
        tmp_path / "tokenizer.json", {**huggingface.tokenizer_json(), "padding": {"direction": "Left"}}
    )
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: `padding\.direction` must be 'Right'"):
        word_piece_options(tmp_path, {})
    word_piece_options(tmp_path, {"padding_side": "right"})


def test_a_normalizer_that_bert_s_class_does_not_read(huggingface, tmp_path):
    huggingface.write_json(tmp_path / "tokenizer.json", {**huggingface.tokenizer_json(), "normalizer": {"type": "NFC"}})
    with pytest.warns(UserWarning, match=r"`normalizer\.type` must be.*reads only the tokens of this file"):
        assert options(word_piece_options(tmp_path, {})) == UNCASED


def test_no_vocabulary(files):
    with pytest.raises(
        CheckpointError, match=r"must hold a vocab\.txt or a tokenizer\.json. Found: tokenizer_config\.json"
    ):
        files(config={}, vocabulary=False)


def test_doubtful_vocabulary_warns_of_the_line(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\na\n")
    with pytest.warns(UserWarning, match=r"vocab\.txt.* 'a' is on line 6 and on line 7"):
        word_piece_options(tmp_path, {})
