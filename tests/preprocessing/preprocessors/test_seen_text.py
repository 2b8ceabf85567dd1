"""Words and characters as people see them: the words of every tokenizer are BERT's, and characters are Unicode's."""

import base64
import functools
import itertools
import random
import unicodedata

import byte_pair_models
import numpy as np
import pytest
import sentence_piece_models
from hard_texts import hard_texts

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import BytePairTokenizer, SentencePieceTokenizer
from keras_bert_layers.preprocessing.preprocessors.seen_text import SeenText, seen_tokens
from keras_bert_layers.preprocessing.preprocessors.word_aligner import WordAligner
from keras_bert_layers.preprocessing.tokens.tokens import rows_of

# What the guide "Find entities" says about words.
WORDS = {
    "He is in Paris.": ["He", "is", "in", "Paris", "."],
    "Paris,Berlin\nRome\tOslo": ["Paris", ",", "Berlin", "Rome", "Oslo"],
    "  don't  ": ["don", "'", "t"],
    "St. Louis's (U.S.)": ["St", ".", "Louis", "'", "s", "(", "U", ".", "S", ".", ")"],
    'He said "no."': ["He", "said", '"', "no", ".", '"'],
    "http://a.b/c?d=1": ["http", ":", "/", "/", "a", ".", "b", "/", "c", "?", "d", "=", "1"],
    "$3.50": ["$", "3", ".", "50"],
    "東京に田中がいる。": ["東", "京", "に", "田", "中", "がいる", "。"],
    "ภาษาไทย คือ": ["ภาษาไทย", "คือ"],
    "नई दिल्ली में": ["नई", "दिल्ली", "में"],
    "good 👨‍👩‍👧🇫🇷 film": ["good", "👨‍👩‍👧🇫🇷", "film"],
    "Zoe\u0308 went": ["Zoe\u0308", "went"],
    "a\u200bb": ["a\u200bb"],
    "": [],
    " \n\t": [],
}
UNSURE = ("Mn", "Mc", "Me", "Cn")
DROPPED = "\v\f\x85"  # BERT drops these kinds of whitespace
SPECIAL = ("[SEP]", "[MASK]", "[CLS]", "[PAD]", "[UNK]")
# Texts of characters that join others, or are alone, in Unicode's rules.
TRICKY = [*"ab .\u0308\u0301\u200d\u200b\ufe0f\u0600ि्क가각👨👧🏽🇫🇷♀☃\u0903\u0e33\u20e31", "\u1112\u1161\u11ab"]


@functools.cache
def tokenizers():
    vocabulary, merges = byte_pair_models.train()
    proto = sentence_piece_models.train("unigram", "nmt_nfkc")
    pieces, scores = zip(*sentence_piece_models.pieces_of(proto), strict=True)
    characters = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return {
        "roberta": BytePairTokenizer(vocabulary, merges),
        "modernbert": BytePairTokenizer(**byte_pair_models.modern()),
        "sentencepiece": SentencePieceTokenizer(pieces, scores, character_map=characters),
        "wordpiece": kbl.BertTokenizer(
            ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"], lowercase=False, reference="huggingface"
        ),
    }


def words_of(tokenizer, texts):
    words = WordAligner(kbl.BertPreprocessor(tokenizer, max_length=256)).align(texts)
    rows = zip(texts, words.starts.numpy(), words.ends.numpy(), strict=True)
    return [
        [text.encode()[start:end].decode() for start, end in zip(starts, ends, strict=True) if start >= 0]
        for text, starts, ends in rows
    ]


@pytest.mark.parametrize("name", ["roberta", "modernbert", "sentencepiece", "wordpiece"])
def test_words_are_those_of_the_guide_for_every_tokenizer(name):
    # The model's own normalization makes a space of U+200B.
    wanted = WORDS | ({"a\u200bb": ["a", "b"]} if name == "sentencepiece" else {})
    assert words_of(tokenizers()[name], list(WORDS)) == list(wanted.values())


def printed(words):
    """Words without what BERT drops: controls, private and unassigned characters."""
    kept = ["".join(c for c in word if unicodedata.category(c)[0] != "C" and c != "\ufffd") for word in words]
    return [word for word in kept if word]


@pytest.mark.parametrize("name", ["roberta", "modernbert"])
def test_words_of_hard_texts_are_those_of_bert(name):
    """But special tokens, which are one token of BERT's, and marks, which BERT may take from their character; what is
    not assigned is a mark or not by the version of Unicode.
    """
    texts = [text for text in hard_texts(3, 400) if not any(token in text for token in SPECIAL)]
    texts = ["".join(c for c in text if unicodedata.category(c) not in UNSURE and c not in DROPPED) for text in texts]
    pairs = zip(*(words_of(tokenizers()[each], texts) for each in (name, "wordpiece")), texts, strict=True)
    differ = [ascii(text) for found, wanted, text in pairs if printed(found) != printed(wanted)]
    assert not differ
    assert len(texts) > 200


def test_characters_are_those_of_unicode():
    regex = pytest.importorskip("regex")
    draw = random.Random(4)
    texts = ["".join(draw.choices(TRICKY, k=12)) for _ in range(400)]
    for text, found in zip(texts, units_of(texts), strict=True):
        wanted = regex.findall(r"\X", text)
        # A space is apart for us, and a joiner joins all pictures: what Unicode says needs more than the neighbours.
        if not any(each in text for each in (" ", "\u200d", "्")):
            assert found == wanted, ascii(text)


def units_of(texts):
    seen = SeenText(tf.constant(texts))
    starts = [0, *np.cumsum([len(text.encode()) for text in texts])]
    first_bytes = tf.gather(seen._starts, seen._unit_firsts).numpy()
    joined = "".join(texts).encode()
    found = []
    for start, end in itertools.pairwise(starts):
        bounds = [*first_bytes[(first_bytes >= start) & (first_bytes < end)], end]
        found.append([joined[a:b].decode() for a, b in itertools.pairwise(bounds)])
    return found


@pytest.mark.parametrize("name", ["roberta", "modernbert", "sentencepiece", "wordpiece"])
def test_tokens_are_seen_without_whitespace_and_with_all_marks(name):
    tokenizer, draw = tokenizers()[name], random.Random(5)
    texts = ["".join(draw.choices(TRICKY, k=9)) for _ in range(60)] + [" a \n noon. "]
    seen = seen_tokens(tokenizer, tf.constant(texts))
    bounds = [set(np.cumsum([0, *(len(unit.encode()) for unit in units)])) for units in units_of(texts)]
    rows = rows_of(seen.ids.row_splits).numpy()
    for row, start, end, is_seen in zip(
        rows, seen.starts.numpy(), seen.ends.numpy(), seen.is_seen.numpy(), strict=True
    ):
        part = texts[row].encode()[start:end].decode()
        if is_seen:
            assert part == part.strip()
            assert {start, end} <= bounds[row]
        else:
            assert not part.strip()


def test_an_older_tokenizer_keeps_its_words():
    """A file without `word_boundaries` was trained with words that end at spaces."""
    tokenizer = tokenizers()["roberta"]
    config = {key: value for key, value in tokenizer.get_config().items() if key != "word_boundaries"}
    older = BytePairTokenizer.from_config(config)
    assert words_of(older, ["in Paris. Ok"]) == [["in", "Paris.", "Ok"]]
    assert BytePairTokenizer.from_config(older.get_config()).word_boundaries == "spaces"
    with pytest.raises(ValueError, match="`word_boundaries` must be one of"):
        BytePairTokenizer.from_config({**config, "word_boundaries": "words"})
