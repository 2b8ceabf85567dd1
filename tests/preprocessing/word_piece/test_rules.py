"""`BertTokenizer.rules` as a program of plain Python, against the tokenizer."""

import re

import pytest

from keras_bert_layers.preprocessing import BertTokenizer
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX


def python_pattern(pattern):
    """RE2 writes a code point as `\\x{41}` and the end as `\\z`, Python as `\\U00000041` and `\\Z`."""
    pattern = pattern.replace(r"\z", r"\Z")
    return re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda match: f"\\U{int(match[1], 16):08x}", pattern)


def ids_of(rules, unknown, text):
    if rules.dropped:
        text = re.sub(f"[{python_pattern(rules.dropped)}]", "", text)
    text = "".join(rules.replacements.get(character, character) for character in text)
    for pattern, rewrite in rules.rewrites:
        text = re.sub(python_pattern(pattern), rewrite, text)
    return [token for word in text.split(" ") for token in ids_of_word(rules, unknown, word)]


def ids_of_word(rules, unknown, word):
    ids, start = [], 0
    while start < len(word):
        prefix = SUFFIX if start else ""
        ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in rules.pieces)
        end = next(ends, None)
        if end is None or len(word) > rules.max_word_length:
            return [unknown]
        ids.append(rules.pieces[prefix + word[start:end]])
        start = end
    return ids


@pytest.mark.parametrize(
    ("reference", "lowercase", "split_chinese"), [("google", True, True), ("huggingface", False, False)]
)
def test_rules_give_the_ids_of_the_tokenizer(reference, lowercase, split_chinese, hard_texts, vocabulary):
    tokens = list(dict.fromkeys([*vocabulary, *"abcdeAÉé中国.,-σς", *(f"##{letter}" for letter in "abcdeAÉéσς中")]))
    tokenizer = BertTokenizer(tokens, lowercase, reference=reference, split_chinese=split_chinese)
    rules = tokenizer.rules()
    texts = [text for text in hard_texts(5, 200) if "[" not in text and text.isprintable()] + [
        "ΑΣ ab, cdé中国É Σ",
        "a" * 300,
    ]
    assert len(texts) > 20
    for text, ids in zip(texts, tokenizer.tokenize(texts).to_list(), strict=True):
        assert ids_of(rules, tokenizer.unknown_id, text) == ids, text
    for character, becomes in rules.printable.items():
        assert ids_of(rules, tokenizer.unknown_id, character) == [
            token for word in becomes.split() for token in ids_of(rules, tokenizer.unknown_id, word)
        ]
