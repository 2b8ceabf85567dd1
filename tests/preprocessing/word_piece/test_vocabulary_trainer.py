"""`train_vocabulary`: its first tokens, its words, and that the same texts give the same tokens."""

import os
import subprocess
import sys

import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers.preprocessing import train_vocabulary
from keras_bert_layers.preprocessing.tokens.markers import SPECIAL_TOKENS
from keras_bert_layers.preprocessing.word_piece.vocabulary_trainer import TextWords

TEXTS = [
    "The cats sat on the mat, and the rats sat on the cats.",
    "Ünaffable cafés; unaffable CAFÉS!",
    "ΟΔΟΣ Σ ὈΔΟΣ 中国 中 [SEP] a[SEP]b",
    "rare\u2028separator \ue000private don't",
    "",
]
LEARNT = ["lo", "low"]


def test_first_tokens_are_those_of_bert(shared_data):
    tokens = train_vocabulary(TEXTS, 300)
    own = (shared_data / "vocab" / "bert-base-uncased.txt").read_text(encoding="utf-8").split("\n")
    assert tokens[:104] == own[:104]
    assert len(tokens) == len(set(tokens)) <= 300


def test_size_is_kept_and_frequent_words_are_tokens():
    tokens = train_vocabulary(["low lower lowest newer newest wider"] * 3, 130)
    assert len(tokens) == 130
    assert train_vocabulary(["low low"], 130)[104:] == ["l", "o", "w", "##o", "##w", *LEARNT]


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("reference", ["google", "huggingface"])
@pytest.mark.parametrize(("lowercase", "split_chinese"), [(True, True), (False, False)])
def test_every_word_of_the_texts_has_pieces(reference, lowercase, split_chinese):
    options = {"lowercase": lowercase, "split_chinese": split_chinese, "reference": reference}
    tokenizer = BertTokenizer(train_vocabulary(TEXTS, 400, min_frequency=1, **options), **options)
    ids = tokenizer.tokenize(TEXTS)
    assert not (ids.values.numpy() == tokenizer.unknown_id).any()
    words = TextWords(tokenizer).words(TEXTS)
    assert [len(row) for row in words] == [
        sum(not tokenizer.id_to_token(token).startswith("##") and token not in (102,) for token in row)
        for row in ids.to_list()
    ], "with room for all, only the special token is not a word"


def words_of(reference):
    return TextWords(BertTokenizer(SPECIAL_TOKENS, reference=reference)).words(TEXTS)


def test_words_are_those_of_the_library():
    from tokenizers import normalizers, pre_tokenizers

    normalizer, split = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    texts = [text.replace("[SEP]", " ") for text in TEXTS]
    expected = [[word for word, _ in split.pre_tokenize_str(normalizer.normalize_str(text))] for text in texts]
    assert words_of("huggingface") == expected


def test_words_are_the_same_on_the_host(request):
    expected = {reference: words_of(reference) for reference in ("google", "huggingface")}
    request.getfixturevalue("host_engine")
    for reference, words in expected.items():
        assert words_of(reference) == words


PROGRAM = """
from keras_bert_layers.preprocessing import train_vocabulary
texts = ["".join(chr(97 + i * j % 26) for j in range(1, 4 + i % 5)) + " ab cd" for i in range(97)]
tokens = train_vocabulary(texts[::{step}], 260)
"""


@pytest.mark.slow
def test_same_words_give_the_same_tokens_in_two_processes():
    here = {}
    exec(PROGRAM.format(step=1), here)
    assert len(here["tokens"]) == 260
    # Strings have other hashes there.
    environment = {**os.environ, "PYTHONHASHSEED": "4" if os.environ.get("PYTHONHASHSEED") != "4" else "5"}
    command = [sys.executable, "-c", PROGRAM.format(step=-1) + "print(*tokens)"]
    printed = subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout
    assert printed.split() == here["tokens"], "also from the last text to the first"


def test_rare_characters_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"The 2 rarest are left out; 25.00% of the words have one and are \[UNK\]"):
        tokens = train_vocabulary(["ab ab ab xy"], 107)
    assert tokens[104:] == ["a", "b", "##b"]


def test_texts_are_read_once_and_long_words_are_not_tokens():
    tokens = train_vocabulary(iter(["ab" * 150, "ab ab", "é" * 180, "é" * 180]), 140, strip_accents=False)
    tokenizer = BertTokenizer(tokens, strip_accents=False)
    assert tokenizer.tokenize("ab").numpy().tolist() == [tokens.index("ab")]
    assert max(map(len, tokens[104:])) < 10


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a"], 105), ValueError, "`size` must be at least 106, for the special tokens and a character"),
        ((["a"], "9"), TypeError, "`size` must be an integer"),
        (("a text",), TypeError, "`texts` must be a list or another iterable of strings"),
        ((["a", None],), TypeError, r"`texts\[1\]` must be a string"),
        ((["a", "\udc80"],), ValueError, r"`texts\[1\]` must be Unicode text, without lone surrogates"),
        (([" ", "\x00"],), ValueError, "`texts` must hold at least one word"),
    ],
)
def test_refuses(arguments, error, message):
    with pytest.raises(error, match=f"`train_vocabulary`: {message}"):
        train_vocabulary(*arguments)


@pytest.mark.parametrize("option", [{"min_frequency": 0}, {"reference": "other"}])
def test_refuses_options(option):
    with pytest.raises(ValueError, match=f"`train_vocabulary`: `{next(iter(option))}` must be"):
        train_vocabulary(["a"], **option)
