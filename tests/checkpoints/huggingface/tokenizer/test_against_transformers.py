"""Tokenizers of HuggingFace directories against transformers' own: ids, offsets, pairs and truncation."""

import json
import warnings

import pytest

from keras_bert_layers import BertTokenizer, load_preprocessor, load_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import write_word_piece_tokenizer

pytestmark = pytest.mark.peers

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["a", "b", "foo", "bar", "##bar", "Foo", "x", "中", "国", "##x", ".", "<", ">", "-", "[", "]"]
ROLES = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
MPNET = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, "[UNK]", "<mask>"]
TEXTS = [
    "Foo foo [MASK] 中国 x<e>y <E> new NEW newbar <mask> </s> <s>a b[SEP]",
    "",
    "é <ent> a  <e>  b",
    "[PAD] q",
    "foo\n<x>.",
    "a<UNK>b <unk> < unk>[unk]",
]
PAIR = ("a b foo bar", "x a b x a foo x bar")
# Those of all-mpnet-base-v2, where `<unk>` alone is normalized.
MPNET_DECODER = {str(MPNET.index(token)): {"content": token, **FLAGS} for token in ("<s>", "<pad>", "</s>", "[UNK]")}
MPNET_DECODER["3"] = {"content": "<unk>", **FLAGS, "normalized": True}
MPNET_DECODER[str(len(MPNET) - 1)] = {"content": "<mask>", **FLAGS, "lstrip": True}
DECODER = {
    "4": {"content": "[MASK]", **FLAGS, "lstrip": True},
    "22": {"content": "<e>", **FLAGS, "lstrip": True, "rstrip": True},
    "21": {"content": "new", **FLAGS, "normalized": True, "special": False},
}


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ([*BERT, *WORDS], {}),
        ([*BERT, *WORDS], {"tokenizer_config": {"tokenizer_class": "ElectraTokenizerFast", "do_lower_case": False}}),
        ([*BERT, *WORDS], {"added_tokens": {"new": 22, "<e>": 21}}),
        ([*BERT, *WORDS], {"added_tokens": {"<e>": 40}, "special_tokens_map": {"additional_special_tokens": ["<e>"]}}),
        ([*BERT, *WORDS], {"tokenizer_config": {"additional_special_tokens": ["<e>", "<x>"]}}),
        ([*BERT, *WORDS], {"tokenizer_config": {"extra_special_tokens": {"e_token": "<e>"}, "bos_token": "<s>"}}),
        ([*BERT, *WORDS], {"tokenizer_config": {"added_tokens_decoder": DECODER}}),
        ([*BERT, *WORDS], {"tokenizer_config": {"truncation_side": "left", "never_split": ["Foo"]}}),
        ([*ROLES.values(), *WORDS], {"tokenizer_config": ROLES}),
        ([*ROLES.values(), *WORDS], {"special_tokens_map": ROLES}),
        ([*BERT[:4], *WORDS], {}),
        ([*BERT[1:4], *WORDS], {"added_tokens": {"new": 19}}),
        ([*BERT, "foo", "", *WORDS, "a"], {"added_tokens": {"new": 24}}),
        ([*BERT, *WORDS[:-1], "bar \t", ""], {}),
        (MPNET, {"tokenizer_config": {"tokenizer_class": "MPNetTokenizer"}}),
        (MPNET, {"tokenizer_config": {"tokenizer_class": "MPNetTokenizer", "added_tokens_decoder": MPNET_DECODER}}),
        (
            MPNET,
            {
                "tokenizer_config": {"tokenizer_class": "MPNetTokenizerFast", "do_lower_case": False},
                "special_tokens_map": {"mask_token": {"content": "<mask>", **FLAGS, "lstrip": True}},
            },
        ),
        (MPNET[:-1], {"tokenizer_config": {"tokenizer_class": "MPNetTokenizer", "mask_token": "<mask>"}}),
    ],
)
def test_equal_to_transformers(lines, files, huggingface, tmp_path, transformers):
    config = {
        "model_type": "bert",
        "vocab_size": 60,
        "hidden_size": 4,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
    }
    more = {"intermediate_size": 4, "hidden_act": "gelu", "max_position_embeddings": 64, "type_vocab_size": 2}
    for name, values in {**files, "config": {**config, **more}}.items():
        huggingface.write_json(tmp_path / f"{name}.json", values)
    (tmp_path / "vocab.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = transformers.AutoTokenizer.from_pretrained(tmp_path)
        preprocessor = load_preprocessor(tmp_path, max_length=8)
    ids, starts, ends = preprocessor.tokenizer.tokenize_with_offsets(TEXTS)
    expected = [reference(text, add_special_tokens=False, return_offsets_mapping=True) for text in TEXTS]
    assert ids.to_list() == [encoding["input_ids"] for encoding in expected]
    for text, encoding, *rows in zip(TEXTS, expected, starts.to_list(), ends.to_list(), strict=True):
        offsets = [tuple(len(text[:place].encode()) for place in pair) for pair in encoding["offset_mapping"]]
        assert list(zip(*rows, strict=True)) == offsets
    for texts in (("a b foo bar x a b x a foo",), PAIR):
        inputs = preprocessor(tuple([text] for text in texts) if len(texts) > 1 else list(texts))
        found = reference(*texts, truncation=True, max_length=8, return_token_type_ids=True)
        assert inputs["token_ids"].numpy()[0].tolist() == found["input_ids"]
        assert inputs["segment_ids"].numpy()[0].tolist() == found["token_type_ids"]
    assert preprocessor.tokenizer.pad_id == reference.pad_token_id
    if lines[0] == MPNET[0]:
        check_both_ways(reference, preprocessor, tmp_path, transformers)


def check_both_ways(reference, preprocessor, directory, transformers):
    """transformers reads the file of tokens that we write, and we the one that it writes, also by the generic class."""
    write_word_piece_tokenizer(directory, preprocessor.tokenizer, max_length=8, kind="MPNetTokenizer")
    written = transformers.AutoTokenizer.from_pretrained(directory)
    assert type(written) is transformers.MPNetTokenizer
    assert written(TEXTS, TEXTS[::-1]) == reference(TEXTS, TEXTS[::-1])
    for name in (None, "PreTrainedTokenizerFast"):
        reference.save_pretrained(directory)
        path = directory / "tokenizer_config.json"
        values = json.loads(path.read_text())
        path.write_text(json.dumps(values if name is None else {**values, "tokenizer_class": name}))
        again = load_tokenizer(directory)
        assert again.tokenize(TEXTS).to_list() == preprocessor.tokenizer.tokenize(TEXTS).to_list()
        assert (again.num_pair_separators, again.second_segment) == (2, 0)
        assert BertTokenizer.from_config(again.get_config()).num_pair_separators == 2
