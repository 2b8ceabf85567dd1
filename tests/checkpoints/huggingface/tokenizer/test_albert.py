"""Reading and writing the tokenizer files of ALBERT."""

import base64
import json
import shutil

import pytest

import keras_bert_layers as kbl
from keras_bert_layers import load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import write_sentence_piece_tokenizer
from keras_bert_layers.preprocessing import SentencePieceTokenizer

models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")

CONFIG = {"model_type": "albert", "vocab_size": 900}
TEXTS = ["``Quoted''  É(x) [MASK]y", "U.S.-based £5, 1,000, ½ ﬁ", "[CLS] a [SEP]", "", "日本語 각"]
# `tokenizer_config.json` -> our normalizer.
SETTINGS = {
    "quotes_nfkd_lowercase": {},
    "quotes_lowercase": {"keep_accents": True},
    "quotes_nfkd": {"do_lower_case": False},
    "quotes": {"do_lower_case": False, "keep_accents": True},
}


@pytest.fixture(scope="module")
def proto():
    return models.train("unigram", "nmt_nfkc", **models.ALBERT)


@pytest.fixture
def model_alone(proto, tmp_path):
    return write_model(proto, tmp_path / "model")


def write_model(proto, folder):
    """A directory with `spiece.model` and `config.json`."""
    folder.mkdir()
    (folder / "spiece.model").write_bytes(proto.SerializeToString())
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


@pytest.fixture(scope="module")
def original(proto, tmp_path_factory):
    """A directory that was written, without the symbols of `spiece.model` that are found in raw text."""
    options = load_tokenizer(write_model(proto, tmp_path_factory.mktemp("x") / "model")).get_config()
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = SentencePieceTokenizer(**{**options, "special_tokens": special, "stripping_tokens": ["[MASK]"]})
    folder = tmp_path_factory.mktemp("written")
    write_sentence_piece_tokenizer(folder, tokenizer, max_length=77)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder, tokenizer


@pytest.fixture
def written(original, tmp_path):
    """A copy of it, and the tokenizer."""
    return shutil.copytree(original[0], tmp_path / "written"), original[1]


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


def test_the_model_alone(proto, model_alone):
    found = load_tokenizer(model_alone).get_config()
    assert found["vocabulary"] == [piece.piece for piece in proto.pieces]
    assert base64.b64decode(found["character_map"]) == proto.normalizer_spec.precompiled_charsmap
    assert (found["normalizer"], found["num_pair_separators"]) == ("quotes_nfkd_lowercase", 1)
    names = ("start_token", "separator_token", "pad_token", "unknown_token", "mask_token")
    assert [found[name] for name in names] == ["[CLS]", "[SEP]", "<pad>", "<unk>", "[MASK]"]
    assert {"(", "£"} < {*found["special_tokens"]}, "symbols of the user's are found in raw text"


@pytest.mark.parametrize("normalizer", SETTINGS)
def test_settings_of_the_class(normalizer, model_alone):
    (model_alone / "tokenizer_config.json").write_text(json.dumps(SETTINGS[normalizer]))
    assert load_tokenizer(model_alone).normalizer == normalizer


def test_read_back(written):
    folder, tokenizer = written
    assert {path.name for path in folder.iterdir()} > {"spiece.model", "tokenizer.json"}
    found, expected = load_tokenizer(folder).get_config(), tokenizer.get_config()
    assert sorted(found.pop("special_tokens")) == sorted(expected.pop("special_tokens"))
    assert found == expected


def test_segments_of_pairs(written):
    preprocessor = kbl.BertPreprocessor(written[1], 16)
    found = preprocessor((["a"], ["b"]))
    tokens = [written[1].id_to_token(token_id) for token_id in found["token_ids"].numpy()[0].tolist()]
    assert tokens == ["[CLS]", "▁a", "[SEP]", "▁", "b", "[SEP]"]
    assert found["segment_ids"].numpy().tolist() == [[0, 0, 0, 1, 1, 1]]


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("tokenizer_config.json", {"keep_accents": None}, "keep_accents"),
        ("tokenizer_config.json", {"do_lower_case": "yes"}, "do_lower_case"),
        ("tokenizer_config.json", {"add_prefix_space": False}, "add_prefix_space.*must be True"),
        ("tokenizer.json", {"post_processor": {"type": "BertProcessing"}}, "post_processor.type"),
        ("tokenizer.json", {"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}, "must have its id"),
    ],
)
def test_refused(name, values, text, written):
    folder, _ = written
    change(folder / name, **values)
    with pytest.raises(CheckpointError, match=text):
        load_tokenizer(folder)


@pytest.mark.parametrize("kind", ["AlbertTokenizer", "TokenizersBackend"])
def test_another_template_is_refused(kind, written):
    path = written[0] / "tokenizer.json"
    processor = json.loads(path.read_text("utf-8"))["post_processor"]
    change(path, post_processor={**processor, "pair": processor["single"]})
    change(written[0] / "tokenizer_config.json", tokenizer_class=kind)
    with pytest.raises(CheckpointError, match=r"post_processor\.pair"):
        load_tokenizer(written[0])


@pytest.mark.parametrize("wrong", ["Replace", "Lowercase", "NFC"])
def test_another_normalization_of_a_generic_class_is_refused(wrong, written):
    """Such a class takes the whole file; without its last step, with another one, and with another order."""
    path = written[0] / "tokenizer.json"
    steps = json.loads(path.read_text("utf-8"))["normalizer"]["normalizers"]
    change(written[0] / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    if wrong == "Lowercase":
        steps = steps[::-1]
    else:
        steps[0] = (
            {"type": wrong, "pattern": {"String": "``"}, "content": "'"} if wrong == "Replace" else {"type": wrong}
        )
    change(path, normalizer={"type": "Sequence", "normalizers": steps})
    with pytest.raises(CheckpointError, match="`?normalizer`?"):
        load_tokenizer(written[0])


@pytest.mark.parametrize("changes", [{"num_pair_separators": 2}, {"unknown_token": "▁"}, {"normalizer": None}])
def test_what_no_class_has_is_not_written(changes, written, tmp_path):
    """The class has the id 1 for unknown characters, and one separator."""
    other = SentencePieceTokenizer(**{**written[1].get_config(), **changes})
    with pytest.raises(ValueError, match="`tokenizer` must be ALBERT's"):
        write_sentence_piece_tokenizer(tmp_path, other, max_length=77)


@pytest.mark.peers
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("files", ["model", "written", "written_model", "theirs", "generic"])
def test_equal_ids_in_transformers(files, settings, written, model_alone, tmp_path):
    """By `spiece.model` alone, by what is written here, and by what transformers writes; pairs and segments too."""
    transformers = pytest.importorskip("transformers")
    folder = model_alone if files in ("model", "theirs") else written[0]
    path = folder / "tokenizer_config.json"
    stored = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**stored, "tokenizer_class": "AlbertTokenizerFast", **settings}))
    if files == "written_model":
        (folder / "tokenizer.json").unlink()
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    if files in ("theirs", "generic"):
        folder = tmp_path / "theirs"
        theirs.save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        if files == "generic":  # with the step that transformers 4 wrote at the end
            steps = json.loads((folder / "tokenizer.json").read_text("utf-8"))["normalizer"]["normalizers"]
            steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
            change(folder / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": steps})
            change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(theirs).__name__ == ("TokenizersBackend" if files == "generic" else "AlbertTokenizer")
    ours = load_tokenizer(folder)
    texts = [*TEXTS, *(text for text in models.hard_texts(1000, seed=5) if "\udc80" not in text)]
    assert ours.tokenize(texts).to_list() == theirs(texts, add_special_tokens=False)["input_ids"]
    inputs, expected = kbl.BertPreprocessor(ours)((["ab cd"], ["é"])), theirs("ab cd", "é", return_token_type_ids=True)
    assert inputs["token_ids"].numpy()[0].tolist() == expected["input_ids"]
    assert inputs["segment_ids"].numpy()[0].tolist() == expected["token_type_ids"]
    # What is written states that there are segments, which ALBERT's class does not give by itself.
    assert ("token_type_ids" in theirs("a", "b")) == (files in ("written", "written_model", "generic"))
