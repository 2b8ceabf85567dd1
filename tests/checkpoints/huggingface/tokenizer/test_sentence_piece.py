"""Reading and writing the tokenizer files of XLM-RoBERTa, CamemBERT and their like."""

import base64
import json

import pytest

import keras_bert_layers as kbl
from keras_bert_layers import load_tokenizer
from keras_bert_layers._internal.files.wire_format import field
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import write_sentence_piece_tokenizer
from keras_bert_layers.preprocessing import SentencePieceTokenizer

models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")

TEXTS = ["Hello <mask> wörld ﬁ½", "<s>NOTUSED a </s>NOTUSED", "x<pad>y<unk>  <mask>", "ab cd e\u0301", "", "日本語"]
MODEL_TYPES = {"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer"}


@pytest.fixture(scope="module")
def proto():
    return models.train("unigram", "nmt_nfkc")


def tokenizer_of(proto, family):
    vocabulary, scores = map(list, zip(*models.pieces_of(proto, family), strict=True))
    character_map = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return SentencePieceTokenizer(vocabulary, scores, character_map=character_map, stripping_tokens=["<mask>"])


@pytest.fixture
def written(proto, tmp_path):
    """A directory of XLM-RoBERTa's tokenizer, and the tokenizer."""
    tokenizer = tokenizer_of(proto, "xlm-roberta")
    write_sentence_piece_tokenizer(tmp_path, tokenizer, max_length=77)
    return tmp_path, tokenizer


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


@pytest.mark.parametrize("family", MODEL_TYPES)
def test_read_back(family, proto, tmp_path):
    tokenizer = tokenizer_of(proto, family)
    write_sentence_piece_tokenizer(tmp_path, tokenizer, max_length=77)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    assert (config["tokenizer_class"], config["model_max_length"]) == (MODEL_TYPES[family], 77)
    found = load_tokenizer(tmp_path).get_config()
    expected = tokenizer.get_config()
    assert sorted(found.pop("special_tokens")) == sorted(expected.pop("special_tokens"))
    assert found == expected


@pytest.mark.parametrize("family", MODEL_TYPES)
def test_the_model_alone(family, proto, tmp_path):
    """The ids follow from the family."""
    (tmp_path / "sentencepiece.bpe.model").write_bytes(proto.SerializeToString())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family, "vocab_size": 1000}))
    found = load_tokenizer(tmp_path)
    expected = tokenizer_of(proto, family)
    for name in ("vocabulary", "scores", "character_map"):
        assert found.get_config()[name] == expected.get_config()[name]


@pytest.mark.peers
@pytest.mark.parametrize("files", ["all", "json", "model"])
@pytest.mark.parametrize("family", MODEL_TYPES)
def test_equal_ids_in_transformers(family, files, proto, tmp_path):
    """What is written gives the same ids there, by tokenizer.json and by the model alone; pairs too."""
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizer_of(proto, family)
    write_sentence_piece_tokenizer(tmp_path, tokenizer, max_length=77)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family, "vocab_size": 1000}))
    if files == "json":
        (tmp_path / "sentencepiece.bpe.model").unlink()
    elif files == "model":
        (tmp_path / "tokenizer.json").unlink()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = load_tokenizer(tmp_path)
    texts = [*TEXTS, *(text for text in models.hard_texts(300, seed=5) if "\udc80" not in text)]
    expected = theirs(texts, add_special_tokens=False)["input_ids"]
    assert ours.tokenize(texts).to_list() == expected
    inputs = kbl.BertPreprocessor(ours)((["ab cd"], ["é"]))
    assert inputs["token_ids"].numpy()[0].tolist() == theirs("ab cd", "é")["input_ids"]


@pytest.fixture(scope="module")
def deberta(tmp_path_factory):
    """A directory with the SentencePiece model of a DeBERTa, and its settings, as the released ones."""
    folder = tmp_path_factory.mktemp("deberta")
    (folder / "spm.model").write_bytes(models.train("unigram", "nmt_nfkc", **models.DEBERTA).SerializeToString())
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, "vocab_type": "spm"}))
    (folder / "config.json").write_text(json.dumps({"model_type": "deberta-v2", "vocab_size": 1000}))
    return folder


def test_deberta(deberta, tmp_path):
    """Its model's ids are its own, and [MASK] follows them; the character map is not read; pairs have one separator."""
    found = load_tokenizer(deberta)
    ids = [getattr(found, f"{role}_id") for role in ("pad", "start", "separator", "unknown", "mask")]
    assert ids == [0, 1, 2, 3, 900]
    assert found.tokenize("ｘ").numpy()[-1] == 3
    inputs = kbl.BertPreprocessor(found)((["ab cd"], ["é"]))
    row, segments = (inputs[name].numpy()[0].tolist() for name in ("token_ids", "segment_ids"))
    middle = row.index(2)
    assert (row[0], row[-1], row.count(2)) == (1, 2, 2)
    assert segments == [0] * (middle + 1) + [1] * (len(row) - middle - 1)
    write_sentence_piece_tokenizer(tmp_path, found, max_length=77)
    assert load_tokenizer(tmp_path).get_config() == found.get_config()


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"do_lower_case": True}, "do_lower_case"),
        ({"split_by_punct": True}, "split_by_punct"),
        ({"add_prefix_space": False}, "add_prefix_space"),
        ({"unk_token": "<unk>"}, "`unk_token` must be a piece with the score 0"),
    ],
)
def test_deberta_refused(values, text, deberta, tmp_path):
    for file in deberta.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    change(tmp_path / "tokenizer_config.json", **values)
    with pytest.raises(CheckpointError, match=text):
        load_tokenizer(tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize("files", ["model", "theirs", "ours"])
def test_equal_ids_in_transformers_of_deberta(files, deberta, tmp_path):
    """By the model alone, by what transformers saves, and by what is written here."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoTokenizer.from_pretrained(deberta)
    folder = tmp_path / "tokenizer"
    if files == "theirs":
        theirs.save_pretrained(folder)
    elif files == "ours":
        folder.mkdir()
        write_sentence_piece_tokenizer(folder, load_tokenizer(deberta), max_length=77)
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(deberta if files == "model" else folder)
    texts = models.hard_texts(500, 6, [*models.HARD, *models.HARD_FOR_DEBERTA])
    batch = theirs(texts, texts[::-1])
    inputs = kbl.BertPreprocessor(ours, max_length=512)((texts, texts[::-1]))
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    for row, length in enumerate(inputs["padding_mask"].numpy().sum(1)):
        for name, key in names.items():
            assert inputs[name].numpy()[row, :length].tolist() == batch[key][row], texts[row]


@pytest.mark.slow
def test_generic_class_takes_the_file_as_it_is(written):
    folder, tokenizer = written
    change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    assert load_tokenizer(folder).tokenize(TEXTS).to_list() == tokenizer.tokenize(TEXTS).to_list()
    change(folder / "tokenizer.json", pre_tokenizer={"type": "Metaspace", "replacement": "▁"})
    with pytest.raises(CheckpointError, match="pre_tokenizer"):
        load_tokenizer(folder)


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"}, "tokenizer_class"),
        ("tokenizer_config.json", {"additional_special_tokens": ["<new>"], "added_tokens_decoder": {
            "4": {"content": "<new>", "rstrip": True}}}, "rstrip"),
        ("tokenizer_config.json", {"add_prefix_space": False}, "add_prefix_space.*must be True"),
        ("tokenizer_config.json", {"split_special_tokens": True}, "split_special_tokens"),
        ("tokenizer_config.json", {"padding_side": "left"}, "padding_side"),
        ("tokenizer.json", {"padding": {"direction": "Left"}}, "padding.direction` must be 'Right'"),
        ("tokenizer.json", {"added_tokens": [{"id": 7, "content": "<s>"}]}, "must have its id"),
        ("tokenizer.json", {"model": {"type": "Unigram", "vocab": 3}}, "must hold pieces with scores"),
        ("tokenizer.json", {"model": {"type": "Unigram", "vocab": [], "byte_fallback": True}}, "byte_fallback"),
    ],
)  # fmt: skip
def test_refused(name, values, text, written):
    folder, _ = written
    change(folder / name, **values)
    with pytest.raises(CheckpointError, match=text):
        load_tokenizer(folder)


def template(single, pair="<s> A </s> </s> B </s>", **ids):
    """A template, of tokens with these ids."""
    parts = {
        name: [{"Sequence" if part in "AB" else "SpecialToken": {"id": part, "type_id": 0}} for part in text.split()]
        for name, text in (("single", single), ("pair", pair))
    }
    stated = {"<s>": 0, "</s>": 2, **ids}
    tokens = {token: {"id": token, "ids": [index], "tokens": [token]} for token, index in stated.items()}
    return {"type": "TemplateProcessing", **parts, "special_tokens": tokens}


REFUSED_OF_GENERIC = {
    "no template": ({"post_processor": None}, r"post_processor\.type.*Without a template this class of transf"),
    "another processor": ({"post_processor": {"type": "ByteLevel"}}, r"post_processor\.type"),
    "no end": ({"post_processor": template("<s> A")}, r"post_processor\.single.*must be <s> A </s>"),
    "ends exchanged": ({"post_processor": template("</s> A <s>")}, r"post_processor\.pair.*<s> A </s> </s> B </s>"),
    "other pair": ({"post_processor": template("<s> A </s>", "<s> A </s> B </s>")}, r"post_processor\.pair"),
    "other ids": ({"post_processor": template("<s> A </s>", **{"</s>": 7})}, r"special_tokens\.</s>\.ids.*\[2\]"),
    "other ids of RoBERTa's": (
        {"post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 7]}},
        "with their ids of the vocabulary",
    ),
    "another marker": (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"}]}},
        r"pre_tokenizer\.replacement",
    ),
    "no unknown token": ({"model": {"unk_id": None}}, r"model\.unk_id.*integer"),
    "unknown token outside": ({"model": {"unk_id": 10_000}}, r"model\.unk_id"),
}  # fmt: skip
EQUAL_IN_CLASS = {
    "other ends": {"bos_token": "<pad>", "eos_token": "<mask>"},
    "other names that the template does not have": {"cls_token": "<pad>", "sep_token": "<unk>"},
    "another unknown token": {"unk_token": "</s>"},
    "nulls": {"cls_token": None, "sep_token": None, "unk_token": None},
}


def change_deeply(path, values):
    model = values.get("model", {})
    change(path, **{**values, "model": {**json.loads(path.read_text("utf-8"))["model"], **model}})


@pytest.mark.parametrize("case", REFUSED_OF_GENERIC)
def test_refused_where_the_class_reads_the_whole_file(case, written):
    values, text = REFUSED_OF_GENERIC[case]
    folder, _ = written
    change_deeply(folder / "tokenizer.json", values)
    load_tokenizer(folder)  # XLM-RoBERTa's class has these parts of its own
    change(folder / "tokenizer_config.json", tokenizer_class="TokenizersBackend")
    with pytest.raises(CheckpointError, match=text):
        load_tokenizer(folder)


@pytest.mark.peers
@pytest.mark.parametrize("case", EQUAL_IN_CLASS)
@pytest.mark.parametrize("kind", ["XLMRobertaTokenizer", "CamembertTokenizer", "PreTrainedTokenizerFast"])
def test_equal_special_tokens_in_transformers(kind, case, written):
    transformers = pytest.importorskip("transformers")
    folder, _ = written
    (folder / "special_tokens_map.json").unlink()
    (folder / "sentencepiece.bpe.model").unlink()
    change(folder / "tokenizer_config.json", tokenizer_class=kind, **EQUAL_IN_CLASS[case])
    change_deeply(folder / "tokenizer.json", {"model": {"unk_id": 7}})
    (folder / "config.json").write_text(json.dumps({"model_type": "xlm-roberta", "vocab_size": 1000}))
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    preprocessor = kbl.BertPreprocessor(load_tokenizer(folder))
    for text in ("ab cd", "日本語 ☃"):
        assert preprocessor([text])["token_ids"].numpy()[0].tolist() == theirs(text)["input_ids"]
    pair = preprocessor((["ab cd"], ["é"]))["token_ids"].numpy()[0].tolist()
    assert pair == theirs("ab cd", "é")["input_ids"]


def test_the_model_of_a_class_that_reads_tokenizer_json_only(proto, tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(proto.SerializeToString())
    for config, text in (
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, "must hold tokenizer.json"),
        ({"tokenizer_class": "XLMRobertaTokenizer", "bos_token": "<pad>"}, "`bos_token` must be '<s>'"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        with pytest.raises(CheckpointError, match=text):
            load_tokenizer(tmp_path)


def test_damaged_model(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "xlm-roberta"}))
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"\x0a\xff\xff")
    with pytest.raises(CheckpointError, match="must be a SentencePiece model"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "must hold at least 4 pieces. Received: 0"),
        (b"\x0a\x00" * 1_100_000, "more than 1000000 fields"),
        (field(1, field(1, b"x" * 300_000)) * 4, r"sentencepiece.bpe.model|at most 10,000 characters"),
    ],
    ids=["empty", "a million pieces", "a long piece"],
)
def test_hostile_models(tmp_path, content, text):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "xlm-roberta"}))
    (tmp_path / "sentencepiece.bpe.model").write_bytes(content)
    with pytest.raises(CheckpointError, match=text):
        load_tokenizer(tmp_path)


@pytest.mark.slow
def test_saved_with_a_model(proto, tmp_path):
    """A BERT over SentencePiece, such as paraphrase-multilingual-MiniLM, goes out and comes back."""
    tokenizer = tokenizer_of(proto, "xlm-roberta")
    size = tokenizer.vocabulary_size()
    config = kbl.BertConfig(vocabulary_size=size, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
    task = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer, 16))
    kbl.save_huggingface(task, tmp_path / "out")
    loaded = kbl.load_task(tmp_path / "out")
    assert isinstance(loaded.preprocessor.tokenizer, SentencePieceTokenizer)
    assert abs(loaded.predict(TEXTS, verbose=0) - task.predict(TEXTS, verbose=0)).max() < 1e-6
    with pytest.raises(ValueError, match="must be a BertTokenizer"):
        kbl.save_google(task.backbone, tmp_path / "google", preprocessor=task.preprocessor)


def test_two_files_that_name_other_tokens_are_refused(written):
    folder, _ = written
    change(folder / "tokenizer_config.json", pad_token="<pad>")
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]"}), "utf-8")
    with pytest.raises(CheckpointError, match=r"special_tokens_map.json: `pad_token` must be '<pad>'"):
        load_tokenizer(folder)
    change(folder / "tokenizer_config.json", added_tokens_decoder={})  # transformers does not read the map then
    assert load_tokenizer(folder).pad_id == 1
