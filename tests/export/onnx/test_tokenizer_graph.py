"""Texts to ids in ONNX Runtime, beside the tokenizer, which is itself tested against its references."""

import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.export.onnx import Answer, Graph, in_sight
from keras_bert_layers.export.onnx._answers_graph import columns_of, laid_out
from keras_bert_layers.export.onnx._rows_graph import rows_of
from keras_bert_layers.export.onnx._tokenizer_graph import TokenizerGraph
from keras_bert_layers.preprocessing.preprocessors.seen_text import seen_tokens

pytestmark = pytest.mark.usefixtures("rules_once")
# NUL ends a string on its way into ONNX Runtime, whatever the graph does.
CHARACTERS = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
CONTEXTS = ["ab{}cd", "{}", "ab{}"]
UNUSUAL = [
    *("", " ", "\t\n a\r\n", "a" * 100, "a" * 101, "é" * 100, "é" * 101, "中中" + "a" * 101, "a" * 200, "a" * 201),
    *("[SEP]", "[sep]", "x[MASK]y", "[ MASK ]", "[MASK][MASK]", "[SE\x01P]", "[SE\nP]", "\x01 \x02\x7f\x0e", "##ab"),
    *("ΟΔΟΣ ΣΑΣ Σ. ΑΣ' b ΑΣ1", "İstanbul", "ﬁ ß ǅ", "한국어 가나", "\u0301a\u0301", "a\u200bb", "\ufffd a", "😀 ok"),
    *("abcd " * 40, "ab?cd", "\ue000ab\uf8ff", "a\\b [x]"),
]
# Characters that people see as one.
JOINED = [
    "abe\u0301 cd\u0308.",
    "a",
    "👨\u200d👩\u200d👧🇫🇷🇩🇪🇫 a🇫b",
    "\u1112\u1161\u11abb \u0600a",
    "नई दिल्ली\u200b में",
    "\u0301 \u0301",
]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ab", "abcd", "b", "é", "ß", "σ", "ς", "中", "؝", "?", "["]
VOCABULARY = [*PIECES, "##a", "##b", "##ab", "##cd", "##é", "##σ", "##ς", "##؝", "##[", "x", "y", "ok", "##k"]


def differences(tokenizer, texts, ask, max_length=64):
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=max_length)
    graph, shape = Graph(), (None, None)
    rows = rows_of([TokenizerGraph(tokenizer).tokens(graph.input("text"))], preprocessor)
    model = graph.model({"text": (None,)}, {"ids": Answer(rows.ids, shape), "mask": Answer(rows.mask, shape)})
    wrong, content = [], model.SerializeToString()
    for start in range(0, len(texts), 20_000):
        part = texts[start : start + 20_000]
        found, expected = ask(content, part), preprocessor(part)
        for name, column in (("ids", "token_ids"), ("mask", "padding_mask")):
            wanted = np.asarray(expected[column])
            assert found[name].shape == wanted.shape
            wrong += [part[row] for row in np.nonzero((found[name] != wanted).any(axis=1))[0]]
    return wrong


def wrong_places(tokenizer, texts, ask, *, seen=False):
    """The texts of which a token has another id, or another place in the text, or where people see it."""
    graph, shape = Graph(), (None, None)
    tokens = TokenizerGraph(tokenizer).tokens(graph.input("text"), with_offsets=True)
    tokens = in_sight(tokens) if seen else tokens
    places = columns_of(tokens.texts_of(), tokens.splits.size() - 1)
    starts, ends = tokens.characters.starts.take(tokens.firsts), tokens.characters.ends.take(tokens.lasts)
    found = {"ids": tokens.ids, "starts": starts, "ends": ends}
    answers = {name: Answer(laid_out(values, places, -1), shape) for name, values in found.items()}
    found = ask(graph.model({"text": (None,)}, answers).SerializeToString(), texts)
    wanted = tokenizer.tokenize_with_offsets(texts)
    if seen:
        found_by_keras = seen_tokens(tokenizer, np.array(texts))
        wanted = [wanted[0], *(wanted[0].with_values(part) for part in found_by_keras[1:3])]
    wanted = [each.to_tensor(-1).numpy() for each in wanted]
    assert [values.shape for values in found.values()] == [values.shape for values in wanted]
    is_wrong = [(ours != theirs).any(axis=1) for ours, theirs in zip(found.values(), wanted, strict=True)]
    return [texts[row] for row in np.nonzero(np.logical_or.reduce(is_wrong))[0]]


TOKENIZERS = {
    "google, lowercase": {"reference": "google", "lowercase": True},
    "google, cased": {"reference": "google", "lowercase": False},
    "huggingface, lowercase": {"reference": "huggingface", "lowercase": True},
    "huggingface, cased": {"reference": "huggingface", "lowercase": False},
    "huggingface, no Chinese": {"reference": "huggingface", "split_chinese": False},
    "huggingface, accents": {"reference": "huggingface", "strip_accents": False},
}
# Half a minute each. The others differ from one of these in one rule, of which `test_unusual_texts` has a sample.
EVERY_CHARACTER = ("google, cased", "huggingface, lowercase")


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return kbl.BertTokenizer(VOCABULARY, **TOKENIZERS[request.param])


@pytest.fixture(scope="module")
def unusual_texts():
    """Texts with a sample of all characters."""
    sample = [character for character in CHARACTERS if ord(character) < 0x400 or ord(character) % 61 == 0]
    placed = [CONTEXTS[0].format(character) for character in sample]
    return [*UNUSUAL, *(" ".join(placed[start : start + 8]) for start in range(0, len(placed), 8))]


@pytest.mark.usefixtures("traces_nothing")
def test_unusual_texts(tokenizer, unusual_texts, ask):
    pytest.importorskip("onnx")
    assert differences(tokenizer, unusual_texts, ask) == []
    assert wrong_places(tokenizer, unusual_texts, ask) == []
    assert wrong_places(tokenizer, ["", "  "], ask) == []
    assert wrong_places(tokenizer, JOINED, ask, seen=True) == []
    assert (
        wrong_places(tokenizer, ["\0"], ask, seen=True)
        == wrong_places(tokenizer, ["e\u0301", "\0"], ask, seen=True)
        == []
    )


@pytest.mark.parametrize(
    "tokenizer",
    [
        pytest.param(name, marks=pytest.mark.slow if name in EVERY_CHARACTER else pytest.mark.exhaustive)
        for name in TOKENIZERS
    ],
    indirect=True,
)
def test_every_character(tokenizer, ask):
    pytest.importorskip("onnx")
    for context in CONTEXTS:
        placed = [context.format(character) for character in CHARACTERS]
        texts = [" ".join(placed[start : start + 32]) for start in range(0, len(placed), 32)]
        assert differences(tokenizer, texts, ask, max_length=256) == []
        assert wrong_places(tokenizer, texts, ask) == []


@pytest.mark.usefixtures("traces_nothing")
def test_special_tokens_of_a_user(ask):
    pytest.importorskip("onnx")
    added = [kbl.preprocessing.AddedToken(content, special=True) for content in ("[E1]", "[E1]x", "ab")]
    tokenizer = kbl.BertTokenizer([*VOCABULARY, "[E1]", "[E1]x"], reference="huggingface", added_tokens=added)
    assert differences(tokenizer, ["a[E1]xb", "[E1] abcd", "AB ab xaby", "[e1]"], ask) == []


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("tokenizer", ["huggingface, lowercase"], indirect=True)
def test_the_unknown_token_as_text(tokenizer, ask):
    pytest.importorskip("onnx")
    assert differences(tokenizer, ["a[UNK]b zz", "[UNK]", "zz[UNK]zz ab"], ask) == []


NORMALIZED = ["<unk>", "New", "a-b"]
# Characters that become a part of `<unk>`, are dropped from it, or break it.
BESIDE = [
    "K",
    "k",
    "\u212a",
    "\u226e",
    "\u226f",
    "\u0338",
    "\u0308",
    "\u200b",
    "\x01",
    "\xad",
    "\t",
    "\xa0",
    "中",
    "é",
    "Σ",
]
FOUND = [
    *("a<unk>b", "<UNK>", "<Unk> x <unk><unk>", "< unk>", "<unk >", "<\nunk>", "[UNK]<unk>[SEP]", "<un", "<unk[SEP]k>"),
    *("new newab abNEW NeW", "n ew", "a-b", "xa-bcd A-B a - b", "a-<unk>-b", "abcda-b", "<unk>" + "a" * 101, ""),
]


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("name", [name for name in TOKENIZERS if name.startswith("huggingface")])
def test_normalized_tokens(name, ask):
    """They are found in what normalization makes of a text, as `<unk>` of every released MPNet."""
    pytest.importorskip("onnx")
    added = [kbl.preprocessing.AddedToken(content, normalized=True, special=True) for content in NORMALIZED]
    tokenizer = kbl.BertTokenizer([*VOCABULARY, *NORMALIZED, "unk", "n"], added_tokens=added, **TOKENIZERS[name])
    beside = [
        text for each in BESIDE for text in (f"<un{each}>", f"{each}unk>", f"<u{each}nk>", f"<unk{each}", f"n{each}ew")
    ]
    texts = [*FOUND, *beside]
    ids = {token: tokenizer.token_to_id(token) for token in NORMALIZED}
    assert ids["<unk>"] in tokenizer.tokenize("a<unk>b").numpy()
    assert (ids["<unk>"] in tokenizer.tokenize("<UNK>").numpy()) == TOKENIZERS[name].get("lowercase", True)
    assert differences(tokenizer, [*texts, *UNUSUAL], ask, max_length=256) == []
    assert wrong_places(tokenizer, [*texts, *UNUSUAL], ask) == []


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (
            [{"content": "né", "normalized": True}],
            "not of visible characters of ASCII, in an ONNX file. Received: .*né",
        ),
        ([{"content": "a b", "normalized": True}], "not of visible characters"),
        ([{"content": "[E]", "special": True, "lstrip": True}], "or takes whitespace"),
        ([{"content": "ab", "normalized": True, "single_word": True}], "`single_word`"),
        ([{"content": content, "normalized": True} for content in ("<a", "a>")], "no `normalized` tokens that overlap"),
        (
            [{"content": content, "normalized": True} for content in ("new", "NEW")],
            "no `normalized` tokens that overlap",
        ),
    ],
)
def test_refuses_tokens_that_would_be_others(tokens, text):
    tokenizer = kbl.BertTokenizer([*VOCABULARY, "é"], reference="huggingface", added_tokens=tokens)
    with pytest.raises(ValueError, match=f"`export`: `added_tokens` must hold .*{text}"):
        TokenizerGraph(tokenizer)
