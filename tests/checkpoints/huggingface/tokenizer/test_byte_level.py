"""Reading and writing the tokenizer files of RoBERTa and its like."""

import json

import pytest

import keras_bert_layers as kbl
from keras_bert_layers import load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.tokenizer import byte_level
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import (
    write_byte_pair_tokenizer,
    write_word_piece_tokenizer,
)
from keras_bert_layers.preprocessing import BytePairTokenizer

tokenizers = pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")
models = pytest.importorskip("byte_pair_models")

processors = tokenizers.processors
TEXTS = ["Hello <mask> it's", "  <mask>x", "<s> a</s>", "e\u0301  ½\n\nb", "", "日本語", "x<mask>world"]
GENERIC = "PreTrainedTokenizerFast"


def new_tokenizer(**settings):
    special = {"special_tokens": models.SPECIAL, "stripping_tokens": ["<mask>"]}
    return BytePairTokenizer(*models.train(), **special, **settings)


@pytest.fixture
def written(tmp_path):
    """A directory of RoBERTa's tokenizer, and the tokenizer."""
    tokenizer = new_tokenizer()
    write_byte_pair_tokenizer(tmp_path, tokenizer, max_length=77)
    return tmp_path, tokenizer


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


@pytest.mark.parametrize(
    "settings",
    [{}, {"add_prefix_space": True, "trim_offsets": False}, {"num_pair_separators": 1, "trim_offsets": False}],
    ids=str,
)
def test_read_back(settings, tmp_path):
    tokenizer = new_tokenizer(**settings)
    write_byte_pair_tokenizer(tmp_path, tokenizer, max_length=77)
    assert load_tokenizer(tmp_path).get_config() == tokenizer.get_config()


def test_by_all_of_tokenizer_json(written):
    directory, tokenizer = written
    change(directory / "tokenizer_config.json", tokenizer_class=GENERIC, add_prefix_space=True)
    assert load_tokenizer(directory).get_config() == tokenizer.get_config()


def test_vocabulary_and_merges_alone(written):
    directory, tokenizer = written
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (directory / name).unlink()
    found = load_tokenizer(directory).get_config()
    for name in ("vocabulary", "merges", "add_prefix_space", "trim_offsets"):
        assert found[name] == tokenizer.get_config()[name]


@pytest.mark.peers
@pytest.mark.parametrize("files", ["all", "no json"])
@pytest.mark.parametrize("settings", [{}, {"add_prefix_space": True}], ids=str)
def test_equal_in_transformers(settings, files, tmp_path):
    """Ids and offsets of what is written, pairs too; and of what transformers writes of it."""
    transformers = pytest.importorskip("transformers")
    write_byte_pair_tokenizer(tmp_path, new_tokenizer(**settings), max_length=77)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "roberta", "vocab_size": 1000}))
    if files == "no json":
        (tmp_path / "tokenizer.json").unlink()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert type(theirs).__name__ == "RobertaTokenizer"
    theirs.save_pretrained(tmp_path / "again")
    (tmp_path / "again" / "config.json").write_text(json.dumps({"model_type": "roberta", "vocab_size": 1000}))
    for source in (tmp_path, tmp_path / "again"):
        ours = load_tokenizer(source)
        preprocessor = kbl.BertPreprocessor(ours, 77)
        batch = theirs(TEXTS, TEXTS[::-1], padding=True)
        assert preprocessor((TEXTS, TEXTS[::-1]))["token_ids"].numpy().tolist() == batch["input_ids"]
        for text in TEXTS[:3] + TEXTS[6:]:
            expected = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
            ids, starts, ends = (part.numpy().tolist() for part in ours.tokenize_with_offsets(text))
            assert ids == expected["input_ids"]
            assert list(zip(starts, ends, strict=True)) == [tuple(pair) for pair in expected["offset_mapping"]]


@pytest.mark.peers
def test_modernbert_in_transformers(tmp_path):
    """Its files read here, and ours read there: ids of texts and pairs."""
    transformers = pytest.importorskip("transformers")
    options = models.modern()
    roles = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=models.modern_library(options), **{f"{role}_token": token for role, token in roles.items()}
    )
    theirs.save_pretrained(tmp_path / "theirs")
    write_byte_pair_tokenizer(tmp_path / "theirs", load_tokenizer(tmp_path / "theirs"), max_length=77)
    texts = [*TEXTS, "a [MASK] b", "e\u0301[SEP]   x", "[unused0]" + " " * 30]
    ours = load_tokenizer(tmp_path / "theirs")
    assert ours.get_config() == {**BytePairTokenizer(**options).get_config(), "special_tokens": ours.special_tokens}
    for tokenizer in (theirs, transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")):
        found = kbl.BertPreprocessor(ours, 77)((texts, texts[::-1]))["token_ids"].numpy().tolist()
        assert found == tokenizer(texts, texts[::-1], padding=True)["input_ids"]


def model_with(directory, **values):
    path = directory / "tokenizer.json"
    change(path, model={**json.loads(path.read_text("utf-8"))["model"], **values})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dropout": 0.1}, "`model.dropout` must be .*Received: 0.1"),
        ({"end_of_word_suffix": "</w>"}, "`model.end_of_word_suffix`"),
        ({"byte_fallback": True}, "`model.byte_fallback`"),
        ({"vocab": {"a": 0, "b": 2}}, "the vocabulary must give each token its id"),
        ({"vocab": {"a": "x"}}, "the vocabulary must give each token its id"),
        ({"merges": ["a b c"]}, "`merges` must hold pairs of tokens"),
    ],
)
def test_refuses_other_models(values, message, written):
    model_with(written[0], **values)
    with pytest.raises(CheckpointError, match=message):
        load_tokenizer(written[0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"normalizer": {"type": "NFD"}}, "`normalizer`"),
        ({"normalizer": {"type": "NFC"}}, "`trim_offsets` must be False with a normalizer"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "`pre_tokenizer.type`"),
        ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, "`pre_tokenizer.use_regex`"),
        ({"post_processor": {"type": "ByteLevel"}}, "`post_processor.type`.*tokens at the ends of a text"),
        ({"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}] * 2}}, "`post_processor.type`"),
    ],
)
def test_refuses_other_parts(values, message, written):
    """A class that reads all of the file; RoBERTa's own reads its model alone."""
    directory, tokenizer = written
    change(directory / "tokenizer.json", **values)
    assert load_tokenizer(directory).get_config() == tokenizer.get_config()
    change(directory / "tokenizer_config.json", tokenizer_class=GENERIC)
    with pytest.raises(CheckpointError, match=message):
        load_tokenizer(directory)


def test_refuses_other_classes(written):
    change(written[0] / "tokenizer_config.json", tokenizer_class="CLIPTokenizer")
    with pytest.raises(
        CheckpointError, match="`tokenizer_class` must be .*RobertaTokenizer.*Received: 'CLIPTokenizer'"
    ):
        load_tokenizer(written[0])


@pytest.mark.parametrize("name", ["BartTokenizer", "BartTokenizerFast", "LongformerTokenizer", "LEDTokenizerFast"])
def test_classes_that_are_robertas(name, written):
    directory, tokenizer = written
    change(directory / "tokenizer_config.json", tokenizer_class=name)
    change(directory / "tokenizer.json", normalizer={"type": "NFD"}, post_processor=None)  # which it does not read
    assert load_tokenizer(directory).get_config() == tokenizer.get_config()


FORMS = "template", "template of two", "BertProcessing", "ByteLevel first", "ByteLevel last", "one in a sequence"


def form(kind, ids):
    """A post-processor of the library."""
    template = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>" if kind == "template of two" else "<s> $A </s> $B </s>",
        special_tokens=[("<s>", ids["<s>"]), ("</s>", ids["</s>"])],
    )
    bert = processors.BertProcessing(("</s>", ids["</s>"]), ("<s>", ids["<s>"]))
    level = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    return {
        "BertProcessing": bert,
        "ByteLevel first": processors.Sequence([level, template]),
        "ByteLevel last": processors.Sequence([bert, level]),
        "one in a sequence": processors.Sequence([template]),
    }.get(kind, template)


@pytest.mark.parametrize("kind", FORMS)
def test_forms_that_the_library_writes(kind, written):
    directory, _ = written
    library = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    library.post_processor = form(kind, library.get_vocab())
    library.normalizer = tokenizers.normalizers.Sequence([])
    library.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([library.pre_tokenizer])
    library.save(str(directory / "tokenizer.json"))
    change(directory / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
    by_gpt2 = load_tokenizer(directory).get_config()
    change(directory / "tokenizer_config.json", tokenizer_class=GENERIC)
    ours = load_tokenizer(directory)
    assert ours.get_config() == by_gpt2
    for text in TEXTS[:3] + TEXTS[6:]:
        ids, starts, ends = (part.numpy().tolist() for part in ours.tokenize_with_offsets(text))
        expected = library.encode(text)
        assert ids == expected.ids[1:-1]
        assert list(zip(starts, ends, strict=True)) == expected.offsets[1:-1]
    library.enable_padding(pad_id=ours.pad_id)
    pairs = kbl.BertPreprocessor(ours, 77)((TEXTS, TEXTS[::-1]))["token_ids"].numpy().tolist()
    assert pairs == [row.ids for row in library.encode_batch(list(zip(TEXTS, TEXTS[::-1], strict=True)))]


@pytest.mark.parametrize(
    ("values", "json_values", "message"),
    [
        ({"unk_token": None}, {}, "`unk_token` must be stated, or GPT2Tokenizer"),
        ({"add_prefix_space": True}, {}, "`add_prefix_space` must be False. Received: True. So is tokenizer.json's"),
        ({}, {"normalizer": {"type": "NFC"}}, "`normalizer` must be None"),
        ({}, {"post_processor": {"type": "ByteLevel"}}, "`post_processor.type`"),
    ],
    ids=["a default", "spaces", "normalizer", "no ends"],
)
def test_what_gpt2_would_read_in_another_way(values, json_values, message, written):
    change(written[0] / "tokenizer.json", **json_values)
    change(written[0] / "tokenizer_config.json", tokenizer_class="GPT2TokenizerFast", **values)
    with pytest.raises(CheckpointError, match=message):
        load_tokenizer(written[0])


def test_words_of_a_vocabulary_are_not_the_model(tmp_path):
    """A WordPiece vocabulary may hold the names of other models and of their parts."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "BPE", "merges", "Unigram", "type"]
    tokenizer = kbl.BertTokenizer(tokens, lowercase=False, reference="huggingface")
    write_word_piece_tokenizer(tmp_path, tokenizer, max_length=9)
    assert load_tokenizer(tmp_path).tokenize("BPE merges Unigram type").numpy().tolist() == [4, 5, 6, 7]


def test_merges_of_another_file_are_not_shown(written):
    directory, _ = written
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (directory / name).unlink()
    (directory / "secret").write_text("root:x:0:0:root")
    (directory / "merges.txt").unlink()
    (directory / "merges.txt").symlink_to("secret")
    with pytest.raises(CheckpointError, match=r"merges\.txt: line 1 must hold two tokens") as error:
        load_tokenizer(directory)
    assert "x:0:0" not in str(error.value)


@pytest.mark.parametrize("token", ["", "\ud800"], ids=["empty", "surrogate"])
def test_odd_tokens(written, token):
    """An empty token is of no text, and a surrogate is not Unicode text."""
    directory, tokenizer = written
    ids = {each: index for index, each in enumerate([*tokenizer.all_tokens(), token])}
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (directory / name).unlink()
    (directory / "vocab.json").write_text(json.dumps(ids))
    (directory / "merges.txt").write_text("\n".join(map(" ".join, models.train()[1])), "utf-8")
    if token:
        with pytest.raises(CheckpointError, match="without lone surrogates"):
            load_tokenizer(directory)
    else:
        assert load_tokenizer(directory)(["good night"]).to_list() == tokenizer(["good night"]).to_list()


def test_more_tokens_than_any_has(written, monkeypatch):
    directory, _ = written
    monkeypatch.setattr(byte_level, "MAX_TOKENS", 100)
    with pytest.raises(CheckpointError, match="must hold at most 100 tokens. Received: 900"):
        load_tokenizer(directory)
