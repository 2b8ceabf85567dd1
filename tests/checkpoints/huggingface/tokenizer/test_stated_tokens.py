"""The added and the new special tokens of byte-level BPE and SentencePiece: ids, as in transformers 5."""

import base64
import json
import shutil

import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer, load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface.families.table import FAMILIES, default_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import (
    write_byte_pair_tokenizer,
    write_sentence_piece_tokenizer,
    write_word_piece_tokenizer,
)
from keras_bert_layers.preprocessing import BytePairTokenizer, SentencePieceTokenizer

byte_pairs = pytest.importorskip("byte_pair_models", reason="keras-hub brings the tokenizers library")
pieces = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")

KINDS = {
    "roberta": "RobertaTokenizer",
    "modernbert": "PreTrainedTokenizerFast",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
}
TEXTS = [
    "<e1>cat</e1> and <e2> a <mask>b</e1><e1>",
    "x <mask> [MASK]<sep>y<cls> [BOS]z[EOS]",
    "<s> a</s> <new_unk> [UNK] <new_pad>[FILM] the\n<e2>",
]
ADDED = ["<e1>", "</e1>", "<e2>"]
# All roles of which two share no token, in an order that is not that of their ids.
NEW_ROLES = {
    "mask_token": "[MASK]",
    "cls_token": "<cls>",
    "film_token": "[FILM]",
    "sep_token": "<sep>",
    "eos_token": "[EOS]",
    "pad_token": "<new_pad>",
    "bos_token": "[BOS]",
}


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """A directory with the tokenizer of each family, and how many tokens it has."""
    found = {}
    for family, kind in KINDS.items():
        directory = found[family] = tmp_path_factory.mktemp(family)
        if kind.startswith("Roberta"):
            options = {"special_tokens": byte_pairs.SPECIAL, "stripping_tokens": ["<mask>"]}
            tokenizer = BytePairTokenizer(*byte_pairs.train(), **options)
            write_byte_pair_tokenizer(directory, tokenizer, max_length=77)
        elif kind.startswith("PreTrained"):
            tokenizer = BytePairTokenizer(**byte_pairs.modern())
            write_byte_pair_tokenizer(directory, tokenizer, max_length=77)
        else:
            proto = pieces.train("unigram", "nmt_nfkc")
            vocabulary, scores = map(list, zip(*pieces.pieces_of(proto, family), strict=True))
            character_map = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
            options = {"character_map": character_map, "stripping_tokens": ["<mask>"]}
            tokenizer = SentencePieceTokenizer(vocabulary, scores, **options)
            write_sentence_piece_tokenizer(directory, tokenizer, max_length=77)
        write_json(directory / "config.json", {"model_type": family, "vocab_size": 5000})
    return found


def write_json(path, values):
    path.write_text(json.dumps(values), "utf-8")


def copied(source, target, *, has_json, **settings):
    """A copy of a directory whose settings are these alone, and the number of its tokens."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    size = len(load_tokenizer(source).get_config()["vocabulary"])
    stated = json.loads((source / "tokenizer_config.json").read_text("utf-8"))
    generic = stated if stated["tokenizer_class"] == KINDS["modernbert"] else {}
    stated = {"tokenizer_class": stated["tokenizer_class"], **generic, **settings}
    stated.pop("added_tokens_decoder", None)
    write_json(target / "tokenizer_config.json", stated)
    (target / "special_tokens_map.json").unlink()
    if not has_json:
        (target / "tokenizer.json").unlink()
    return size


def check(directory, transformers):
    """The same ids as in transformers, whose ids are returned."""
    theirs = transformers.AutoTokenizer.from_pretrained(directory)
    expected = theirs(TEXTS, add_special_tokens=False)["input_ids"]
    ours = load_tokenizer(directory)
    assert ours.tokenize(TEXTS).to_list() == expected
    return theirs, ours


CASES = [(family, has_json) for family in KINDS for has_json in (True, False) if has_json or family != "modernbert"]


@pytest.mark.peers
@pytest.mark.parametrize(("family", "has_json"), CASES)
def test_the_file_of_added_tokens(family, has_json, directories, tmp_path, transformers):
    size = copied(directories[family], tmp_path, has_json=has_json)
    write_json(tmp_path / "added_tokens.json", {content: size + 2 - i for i, content in enumerate(ADDED)})
    theirs, ours = check(tmp_path, transformers)
    assert [ours.token_to_id(content) for content in ADDED] == [size + 2, size + 1, size]
    assert theirs.convert_tokens_to_ids(ADDED) == [size + 2, size + 1, size]
    # With `added_tokens_decoder` the file does not count, there and here.
    write_json(tmp_path / "added_tokens.json", {"<e1>": 1})
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
    stated = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    decoder = {str(size + 1): {"content": "<e1>", **flags}, str(size): {"content": "<e2>", **flags}}
    write_json(tmp_path / "tokenizer_config.json", {**stated, "added_tokens_decoder": decoder})
    _, ours = check(tmp_path, transformers)
    assert ours.token_to_id("<e1>") == size + 1


@pytest.mark.peers
@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_the_mask_in_the_file(family, directories, tmp_path, transformers):
    """Of a token that this file names, other files' flags do not count: it takes no whitespace."""
    size = copied(directories[family], tmp_path, has_json=False)
    vocabulary = load_tokenizer(directories[family]).get_config()["vocabulary"]
    write_json(tmp_path / "special_tokens_map.json", {"mask_token": {"content": "<mask>", "lstrip": True}})
    _, ours = check(tmp_path, transformers)
    assert ours.get_config()["stripping_tokens"] == ["<mask>"]
    write_json(tmp_path / "added_tokens.json", {"<mask>": vocabulary.index("<mask>"), "<e1>": size})
    _, ours = check(tmp_path, transformers)
    assert not ours.get_config()["stripping_tokens"]


@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"<e1>": 0}, "the added token <e1> must have its id of the vocabulary, not 0"),
        ({"<e1>": 4999}, "the added token <e1> must have its id of the vocabulary, not 4999"),
        ({"<e1>": "7"}, "added_tokens.json: `<e1>` must be an integer"),
    ],
)
def test_refuses_ids_of_other_tokens(family, values, message, directories, tmp_path):
    copied(directories[family], tmp_path, has_json=True)
    write_json(tmp_path / "added_tokens.json", values)
    with pytest.raises(CheckpointError, match=message):
        load_tokenizer(tmp_path)


def test_refuses_two_ids(directories, tmp_path):
    copied(directories["roberta"], tmp_path, has_json=True)
    write_json(tmp_path / "added_tokens.json", {"<mask>": 900})
    with pytest.raises(CheckpointError, match="`<mask>` must be 4. Received: 900. tokenizer.json states this id."):
        load_tokenizer(tmp_path)


@pytest.mark.peers
@pytest.mark.parametrize(("family", "has_json"), CASES)
def test_new_tokens_of_roles(family, has_json, directories, tmp_path, transformers):
    """They get ids in transformers' order of roles, whatever their order in the file is."""
    if family == "modernbert":  # whose template names the ends
        roles = {"mask_token": "<new>", "bos_token": "[BOS]", "film_token": "[FILM]", "eos_token": "[EOS]"}
    elif has_json or family == "roberta":
        roles = NEW_ROLES
    else:  # the others name the first pieces
        roles = {role: NEW_ROLES[role] for role in ("mask_token", "cls_token", "sep_token", "film_token")}
    copied(directories[family], tmp_path, has_json=has_json, **roles)
    theirs, ours = check(tmp_path, transformers)
    assert [ours.token_to_id(token) for token in roles.values()] == theirs.convert_tokens_to_ids(list(roles.values()))
    assert [ours.start_id, ours.separator_id] == [theirs("a")["input_ids"][0], theirs("a")["input_ids"][-1]]
    assert [ours.pad_id, ours.mask_id] == [theirs.pad_token_id, theirs.mask_token_id]


@pytest.mark.peers
@pytest.mark.parametrize(
    ("family", "where"),
    [
        *((family, None) for family in KINDS),
        *((family, f"{name}.json") for family in ("roberta", "modernbert") for name in ("tokenizer_config", "config")),
    ],
)
def test_the_class_by_the_model_type(family, where, directories, tmp_path, transformers):
    """No file names a class, or one names RoBERTa's, which does not count for ModernBERT; ids of texts and pairs."""
    shutil.copytree(directories[family], tmp_path, dirs_exist_ok=True)
    for name in ("tokenizer_config.json", "config.json"):
        values = json.loads((tmp_path / name).read_text("utf-8"))
        values.pop("tokenizer_class", None)
        write_json(tmp_path / name, {**values, **({"tokenizer_class": "RobertaTokenizer"} if name == where else {})})
    texts = [*TEXTS, "e\u0301 <mask>e\u0301"]
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)
    assert ours.tokenize(texts).to_list() == theirs(texts, add_special_tokens=False)["input_ids"]
    inputs = BertPreprocessor(ours, 128)((texts, texts[::-1]))
    assert inputs["token_ids"].numpy().tolist() == theirs(texts, texts[::-1], padding=True)["input_ids"]


@pytest.mark.peers
def test_word_pieces_of_modernbert(tmp_path, transformers):
    """All of `tokenizer.json` counts, where BERT's own class would lower-case."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Cat", "cat"]
    tokenizer = BertTokenizer(tokens, lowercase=False, reference="huggingface")
    write_word_piece_tokenizer(tmp_path, tokenizer, max_length=9)
    for stated in ({}, {"tokenizer_class": "BertTokenizer"}):
        write_json(tmp_path / "tokenizer_config.json", stated)
        write_json(tmp_path / "config.json", {"model_type": "modernbert", "vocab_size": 7})
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert theirs("Cat cat", add_special_tokens=False)["input_ids"] == [5, 6]
        assert load_tokenizer(tmp_path).tokenize("Cat cat").numpy().tolist() == [5, 6]


@pytest.mark.peers
def test_every_model_type_has_its_class_of_transformers(transformers):
    names = transformers.models.auto.tokenization_auto.TOKENIZER_MAPPING_NAMES
    types = [kind for family in FAMILIES for kind in family.model_types]
    assert {kind: default_tokenizer({"model_type": kind}) for kind in types} == {
        kind: names.get(kind) for kind in types
    }
