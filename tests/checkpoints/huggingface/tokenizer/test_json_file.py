import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.tokenizer.json_file import TokenizerClass, TokenizerJson


@pytest.fixture
def read(huggingface, tmp_path):
    """Reads what transformers writes, after a change."""

    def change_and_read(change=lambda values: None):
        values = huggingface.tokenizer_json()
        change(values)
        huggingface.write_json(tmp_path / "tokenizer.json", values)
        return TokenizerJson(tmp_path / "tokenizer.json")

    return change_and_read


def at(*keys, value):
    """A change of one value, deep inside."""

    def change(values):
        for key in keys[:-1]:
            values = values[key]
        values[keys[-1]] = value

    return change


def test_vocabulary_and_options(read, huggingface):
    tokenizer = read()
    assert list(tokenizer.vocabulary(())) == huggingface.VOCABULARY
    assert tokenizer.options == {"lowercase": True, "strip_accents": None, "split_chinese": True}


def test_options_are_read(read):
    def change(values):
        values["normalizer"] |= {"lowercase": False, "strip_accents": True, "handle_chinese_chars": False}

    assert read(change).options == {"lowercase": False, "strip_accents": True, "split_chinese": False}


def test_order_of_the_vocabulary_is_by_id(read, huggingface):
    def change(values):
        values["model"]["vocab"] = dict(reversed(values["model"]["vocab"].items()))

    assert list(read(change).vocabulary(())) == huggingface.VOCABULARY


def test_other_writers(read):
    """What older releases and other converters leave out or write in another way."""
    bert = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    sequence = {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}]}
    for change in (
        at("post_processor", value=bert),
        at("pre_tokenizer", value=sequence),
        lambda values: values.update(normalizer={"type": "Sequence", "normalizers": [values["normalizer"]]}),
        at("truncation", value={"max_length": 128}),
        at("padding", value={"strategy": {"Fixed": 128}}),
        at("added_tokens", value=[]),
        lambda values: values["model"].pop("type"),
    ):
        read(change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            at("normalizer", "type", value="Lowercase"),
            "`normalizer.type` must be 'BertNormalizer'.*Received: 'Lowercase'",
        ),
        (at("normalizer", value=None), "`normalizer` must be a JSON object. Received: None"),
        (at("normalizer", "clean_text", value=False), "`normalizer.clean_text` must be True"),
        (at("normalizer", "lowercase", value=1), "`normalizer.lowercase` must be true or false. Received: 1"),
        (at("pre_tokenizer", "type", value="Metaspace"), "`pre_tokenizer.type` must be 'BertPreTokenizer'"),
        (at("model", "type", value="BPE"), "`model.type` must be 'WordPiece'.*Received: 'BPE'"),
        (at("model", "continuing_subword_prefix", value="@@"), "`model.continuing_subword_prefix` must be '##'"),
        (at("model", "max_input_chars_per_word", value=50), "`model.max_input_chars_per_word` must be 100"),
        (at("model", "vocab", value=["a"]), "`model.vocab` must give an id for each token"),
        (
            at("model", "vocab", "bad", value=99),
            "`model.vocab` must use the ids from 0 to 17, with few gaps. Received: 'bad': 99",
        ),
        (
            at("model", "vocab", "bad", value=True),
            "`model.vocab` must use the ids from 0 to 17, with few gaps. Received: 'bad': True",
        ),
        (at("model", "vocab", "bad", value=0), r"`model.vocab` gives '\[PAD\]' and 'bad' the id 0"),
        (at("added_tokens", value=[1]), "`added_tokens` must be a list of JSON objects"),
        (at("post_processor", "type", value="ByteLevel"), "`post_processor.type` must be 'TemplateProcessing'"),
        (at("post_processor", "single", value=[]), "`post_processor.single` must be"),
        (at("post_processor", "pair", value="x"), "`post_processor.pair` must be"),
        (
            at("post_processor", value={"type": "BertProcessing", "cls": 3}),
            "`post_processor` must name `cls` and `sep`",
        ),
        (
            at("normalizer", value=["x" * 9999]),
            r"`normalizer` must be a JSON object. Received: \['x{30,40}\.\.\.x{30,40}'\]",
        ),
        (at("post_processor", value=3), "`post_processor.type` must be 'TemplateProcessing'"),
        (
            at("post_processor", value=None),
            "`post_processor.type` must be 'TemplateProcessing'. Received: None. Without a template .* adds no special",
        ),
        (at("post_processor", value={"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 9]}), ".* ids of"),
        (
            at("post_processor", "special_tokens", "[CLS]", "ids", value=[2, 7]),
            r"`post_processor.special_tokens.\[CLS\].ids` must be \[2\]. Received: \[2, 7\]",
        ),
    ],
)
def test_other_tokenizers_are_refused(read, change, message):
    with pytest.raises(CheckpointError, match=rf"tokenizer\.json: {message}"):
        read(change)


def test_empty_parts_of_a_sequence(read):
    empty = {"type": "Sequence", "normalizers": []}

    def add_empty(values):
        values["normalizer"] = {"type": "Sequence", "normalizers": [empty, values["normalizer"]]}

    assert read(add_empty).options == read(lambda values: None).options
    with pytest.raises(CheckpointError, match="`normalizer` must be a JSON object. Received: None"):
        read(lambda values: values.update(normalizer=empty))


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer", "post_processor"])
def test_parts_that_a_class_does_not_read(huggingface, tmp_path, part):
    path = tmp_path / "tokenizer.json"
    huggingface.write_json(path, {**huggingface.tokenizer_json(), part: {"type": "Lowercase"}})
    tokenizer = TokenizerJson(path, TokenizerClass.BERT)
    assert list(tokenizer.vocabulary(())) == huggingface.VOCABULARY
    assert (tokenizer.options is None) == (part != "post_processor") == bool(tokenizer.unread)
    if part == "post_processor":
        assert TokenizerJson(path, TokenizerClass.STORED_BERT).options == tokenizer.options
    else:
        with pytest.raises(CheckpointError, match=part):
            TokenizerJson(path, TokenizerClass.STORED_BERT)


def test_added_tokens(read):
    def change(values):
        values["added_tokens"].append({"id": 18, "content": "[NEW]"})

    assert [token["content"] for token in read(change).added_tokens][-2:] == ["[MASK]", "[NEW]"]


def test_roles(read):
    def change(values):
        values["model"]["unk_token"] = "<unk>"
        for part in ("single", "pair"):
            for item in values["post_processor"][part]:
                if "SpecialToken" in item:
                    item["SpecialToken"]["id"] = item["SpecialToken"]["id"].replace("[CLS]", "<s>")

    tokenizer = read(change)
    ours = {"pad": "[PAD]", "unknown": "<unk>", "start": "<s>", "separator": "[SEP]", "mask": "[MASK]"}
    assert sorted(tokenizer.roles.values()) == sorted(ours.values())
    tokenizer.check_roles(ours)
    with pytest.raises(CheckpointError, match=r"`post_processor` must be \('\[CLS\]', '\[SEP\]'\). Received: \('<s>'"):
        tokenizer.check_roles({**ours, "start": "[CLS]"})
    with pytest.raises(CheckpointError, match=r"`model.unk_token` must be '\[UNK\]'. Received: '<unk>'"):
        tokenizer.check_roles({**ours, "unknown": "[UNK]"})


def test_gaps_between_ids_are_empty_tokens(read, huggingface):
    """A vocab.txt with a token twice gives them."""

    def change(values):
        values["model"]["vocab"]["##s"] = 20

    vocabulary = read(change).vocabulary(())
    assert [vocabulary[index] for index in (huggingface.VOCABULARY.index("##s"), 18, 19, 20)] == ["", "", "", "##s"]


def test_missing_tokens(read):
    with pytest.raises(CheckpointError, match=r"tokenizer.json: `model.vocab`: .*must hold <pad>. .*Add <pad>"):
        read().vocabulary(["<pad>"])
