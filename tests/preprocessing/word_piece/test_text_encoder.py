"""Ids and offsets of single texts: limits, final sigmas, special tokens, switches."""

import time
import unicodedata

import pytest
from small_vocabulary import TOKENS

from keras_bert_layers.preprocessing import BertTokenizer

# A word that no one should wait for; linear time makes it a fraction of a second, quadratic time minutes.
MILLION = 1_000_000
SECONDS = 20


def tokens(tokenizer, text):
    return [tokenizer.id_to_token(token_id) for token_id in tokenizer.tokenize(text).numpy()]


def pieces(tokenizer, text):
    """Tokens with the bytes that their offsets cut out."""
    data = text if isinstance(text, bytes) else text.encode()
    ids, starts, ends = (part.numpy() for part in tokenizer.tokenize_with_offsets(text))
    return [(tokenizer.id_to_token(i), data[start:end]) for i, start, end in zip(ids, starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n\u00a0\u3000\u2028", []),
        ("Unaffable!", ["un", "##aff", "##able", "!"]),
        ("ÜN\u0301affable", ["un", "##aff", "##able"]),
        ("a\x00b a\ufffdb a\u200db", ["ab", "ab", "ab"]),
        ("a中b", ["a", "[UNK]", "b"]),
        ("unx", ["[UNK]"]),
        ("[SEP]", ["[", "sep", "]"]),
        ("abb", ["ab", "##b"]),
        (b"a\xffb", ["ab"]),
        (b"a\xed\xa0\x80b \xe2\x82", ["ab"]),
    ],
)
def test_google(text, expected, tokenizer):
    assert tokens(tokenizer, text) == expected
    assert [token for token, _ in pieces(tokenizer, text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[SEP]", ["[SEP]"]),
        ("a[SEP]b[MASK][CLS] [PAD]", ["a", "[SEP]", "b", "[MASK]", "[CLS]", "[PAD]"]),
        ("[sep] [ SEP]", ["[", "sep", "]", "[", "sep", "]"]),
        ("un[UNK]affable", ["un", "[UNK]", "[UNK]"]),
        ("a\ue000b\x00b[SEP]b", ["ab", "##b", "[SEP]", "b"]),
    ],
)
def test_huggingface(text, expected, huggingface):
    assert tokens(huggingface, text) == expected
    assert [token for token, _ in pieces(huggingface, text)] == expected


def test_offsets_count_bytes_of_the_original(tokenizer):
    assert pieces(tokenizer, "\u00a0ÜN\u0301afF\u0301ABLÉ\u0301 !") == [
        ("un", "ÜN".encode()),
        ("##aff", "\u0301afF".encode()[2:]),
        ("##able", b"ABL\xc3\x89"),
        ("!", b"!"),
    ]


def test_offsets_of_special_tokens(huggingface):
    assert pieces(huggingface, "Éa[SEP]Σ b") == [
        ("[UNK]", "Éa".encode()),
        ("[SEP]", b"[SEP]"),
        ("σ", "Σ".encode()),
        ("b", b"b"),
    ]


def test_parts_of_one_character_cover_it():
    tokenizer = BertTokenizer([*TOKENS, "\u1100", "##\u1161", "##\u11a8"])
    assert pieces(tokenizer, "a 각!")[1:] == [(part, "각".encode()) for part in ("\u1100", "##\u1161", "##\u11a8")] + [
        ("!", b"!")
    ]


def test_final_sigma(tokenizer, huggingface):
    """Python's `lower` makes ς of a capital sigma that ends a word; the library of HuggingFace does not."""
    assert tokens(tokenizer, "ΣΣ ΣΣΣ Σ'Σ Σ") == ["σ", "##ς", "σ", "##σ", "##ς", "σ", "[UNK]", "[UNK]", "σ"]
    assert tokens(huggingface, "ΣΣ Σ") == ["σ", "##σ", "σ"]


@pytest.mark.slow
@pytest.mark.parametrize("character", ["a", "é", "ก", "😀"])
@pytest.mark.parametrize(("reference", "limit"), [("google", 200), ("huggingface", 100)])
@pytest.mark.parametrize("split_chinese", [True, False])
def test_limit_counts_characters(character, reference, limit, split_chinese):
    tokenizer = BertTokenizer(
        [*TOKENS[:5], "a", "é", "ก", "😀", "##a", "##é", "##ก", "##😀"],
        strip_accents=False,
        reference=reference,
        split_chinese=split_chinese,
    )
    texts = [character * limit, f"a {character * (limit + 1)} a", character * (limit - 1)]
    ids, starts, ends = tokenizer.tokenize_with_offsets(texts)
    size = len(character.encode())
    assert [len(row) for row in ids.to_list()] == [limit, 3, limit - 1]
    assert ids.to_list()[1] == [5, 1, 5]
    assert starts.to_list()[1] == [0, 2, 3 + size * (limit + 1)]
    assert ends.to_list()[1] == [1, 2 + size * (limit + 1), 4 + size * (limit + 1)]
    assert ends.to_list()[0][-1] == size * limit
    assert tokenizer.tokenize(texts).to_list() == ids.to_list()


def test_only_texts_that_need_it_go_the_careful_way(huggingface):
    """In one batch, all others keep their place and their tokens."""
    texts = ["ab", "a [SEP]", "", "un", "x" * 101 + " a", "[", "b" * 60 + "x" * 60 + "[PAD]", "ab!"]
    together = [part.to_list() for part in huggingface.tokenize_with_offsets(texts)]
    alone = [[part.numpy().tolist() for part in huggingface.tokenize_with_offsets(text)] for text in texts]
    assert [list(row) for row in zip(*together, strict=True)] == alone
    assert together[0] == [[14], [11, 3], [], [5], [1, 11], [15], [1, 0], [14, 8]]


@pytest.mark.parametrize("character", ["a", "é", "ก", "."])
def test_million_characters(character, huggingface):
    start = time.perf_counter()
    ids = huggingface.tokenize([character * MILLION])
    assert time.perf_counter() - start < SECONDS
    assert len(ids.to_list()[0]) == (MILLION if character == "." else 1)


@pytest.mark.usefixtures("traces_nothing")
def test_split_chinese():
    vocabulary = [*TOKENS, "中", "##中", "##b!"]
    text = "a中b中 中中!"
    assert tokens(BertTokenizer(vocabulary), text) == ["a", "中", "b", "中", "中", "中", "!"]
    assert tokens(BertTokenizer(vocabulary, split_chinese=False), text) == [
        *("a", "##中", "##b", "##中", "中", "##中", "!")
    ]
    vocabulary += ["a中", "中!"]
    assert tokens(BertTokenizer(vocabulary, split_chinese=False), text)[:2] == ["a中", "##b"]


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "expected"),
    [
        (True, None, ["e", "e"]),
        (False, None, ["É", "é"]),
        (True, False, ["é", "é"]),
        (False, True, ["E", "e"]),
        (True, True, ["e", "e"]),
        (False, False, ["É", "é"]),
    ],
)
@pytest.mark.parametrize("reference", ["google", "huggingface"])
def test_switches(lowercase, strip_accents, expected, reference):
    tokenizer = BertTokenizer([*TOKENS, *"eEéÉ"], lowercase, strip_accents=strip_accents, reference=reference)
    assert tokens(tokenizer, "É é") == expected


@pytest.mark.usefixtures("traces_nothing")
def test_tokens_that_no_text_can_hold():
    """A blank inside, control characters, stand-in characters: never matched, and without effect on other tokens."""
    odd = ["new york", "\x01", "\x11", "\x11a", "a\xad", "\ue000", "##\ue000", "a\x00", "##", "\U000e0020", "y" * 300]
    for reference in ("google", "huggingface"):
        tokenizer = BertTokenizer([*TOKENS, *odd, "new", "york"], reference=reference)
        assert tokens(tokenizer, "new york \x01 \x11a a\xad a\x00b ## \U000e0020") == [
            *("new", "york", "a", "a", "ab", "[UNK]", "[UNK]")
        ]


def test_vocabulary_of_special_tokens_only():
    assert tokens(BertTokenizer(TOKENS[:4]), "a!") == ["[UNK]", "[UNK]"]


@pytest.mark.parametrize("reference", ["google", "huggingface"])
def test_token_longer_than_the_op_can_hold(reference):
    """Of 256 bytes; the limit of 100 characters makes one of 400 bytes impossible under HuggingFace's reference too."""
    token = "😀" * 65
    with pytest.raises(ValueError, match=r"hold no token of more than 256 bytes.*Token 21 is"):
        BertTokenizer([*TOKENS, token], reference=reference)
    assert tokens(BertTokenizer([*TOKENS, "😀" * 64], reference=reference), "😀" * 64) == ["😀" * 64]


@pytest.mark.usefixtures("traces_nothing")
def test_marks_whose_order_is_not_restored(minilm_vocabulary, google_tokenizer):
    """The one limit: spacing marks that Unicode's canonical order would swap keep the order of the text.

    Decomposition sorts neighbouring marks by their class; a table of single characters cannot. Marks of category Mn
    are dropped anyway, and bert-base's vocabularies hold none of the others, so that the word is [UNK] either way. A
    vocabulary has to hold two of these characters, of different classes, for a difference to show.
    """
    marks = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c)) and unicodedata.category(chr(c)) != "Mn"]
    assert not {character for token in minilm_vocabulary for character in token} & set(marks)
    swapped = ["x\u302e\u1b44", "x\U0001d16d\U0001d165"]
    vocabulary = [*TOKENS, "x", *(f"##{mark}" for mark in marks)]
    expected = google_tokenizer(vocabulary)
    found = BertTokenizer(vocabulary).tokenize(swapped).to_list()
    assert [sorted(row) for row in found] == [sorted(expected.ids(text)) for text in swapped]
    assert all(row != expected.ids(text) for row, text in zip(found, swapped, strict=True))
    assert BertTokenizer(minilm_vocabulary).tokenize(swapped).to_list() == [[100], [100]]
