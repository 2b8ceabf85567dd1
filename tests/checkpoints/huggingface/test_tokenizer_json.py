import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.tokenizer_json import TokenizerJson


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
    assert list(tokenizer.vocabulary) == huggingface.VOCABULARY
    assert tokenizer.options == {"lowercase": True, "strip_accents": None, "split_chinese": True}


def test_options_are_read(read):
    def change(values):
        values["normalizer"] |= {"lowercase": False, "strip_accents": True, "handle_chinese_chars": False}

    assert read(change).options == {"lowercase": False, "strip_accents": True, "split_chinese": False}


def test_order_of_the_vocabulary_is_by_id(read, huggingface):
    def change(values):
        values["model"]["vocab"] = dict(reversed(values["model"]["vocab"].items()))

    assert list(read(change).vocabulary) == huggingface.VOCABULARY


def test_other_writers(read):
    """What older releases and other converters leave out or write in another way."""
    bert = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    for change in (
        at("post_processor", value=None),
        at("post_processor", value=bert),
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
        (at("model", "unk_token", value="<unk>"), r"`model.unk_token` must be '\[UNK\]'"),
        (at("model", "continuing_subword_prefix", value="@@"), "`model.continuing_subword_prefix` must be '##'"),
        (at("model", "max_input_chars_per_word", value=50), "`model.max_input_chars_per_word` must be 100"),
        (at("model", "vocab", value=["a"]), "`model.vocab` must give an id for each token"),
        (at("model", "vocab", "bad", value=99), "`model.vocab` must use the ids 0 to 17. Received: 'bad': 99"),
        (at("model", "vocab", "bad", value=True), "`model.vocab` must use the ids 0 to 17. Received: 'bad': True"),
        (at("model", "vocab", "bad", value=0), r"`model.vocab` gives '\[PAD\]' and 'bad' the id 0"),
        (at("added_tokens", 0, "content", value="<pad>"), "`added_tokens` must be one of .*Received: '<pad>'"),
        (at("added_tokens", 1, "id", value=7), r"the added token \[UNK\] must have its id"),
        (at("added_tokens", 4, "lstrip", value=True), r"`added_tokens \[MASK\] lstrip` must be False"),
        (at("added_tokens", value=[1]), "`added_tokens` must be a list of JSON objects"),
        (at("post_processor", "type", value="RobertaProcessing"), "`post_processor.type` must be 'TemplateProcessing'"),
        (at("post_processor", "single", value=[]), "`post_processor.single` must be"),
        (at("post_processor", "pair", value="x"), "`post_processor.pair` must be"),
        (at("post_processor", value={"type": "BertProcessing", "cls": 3}), r"`post_processor.cls` must be '\[CLS\]'"),
        (at("model", "vocab", value={"a": 0}), r"`model.vocab`: .*must hold \[PAD\].*Add \[PAD\] and"),
        (
            at("normalizer", value=["x" * 9999]),
            r"`normalizer` must be a JSON object. Received: \['x{30,40}\.\.\.x{30,40}'\]",
        ),
        (at("post_processor", value=3), "`post_processor.type` must be 'TemplateProcessing'"),
    ],
)
def test_other_tokenizers_are_refused(read, change, message):
    with pytest.raises(CheckpointError, match=rf"tokenizer\.json: {message}"):
        read(change)


def test_added_token_that_the_vocabulary_lacks(read):
    def change(values):
        values["added_tokens"].append({"id": 18, "content": "[NEW]"})

    with pytest.raises(CheckpointError, match=r"Received: '\[NEW\]'"):
        read(change)
