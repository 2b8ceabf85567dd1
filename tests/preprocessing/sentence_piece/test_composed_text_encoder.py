"""`SentencePieceTokenizer(normalizer="nfc")` beside the library's tokenizer of DeBERTa, with offsets."""

import random

import pytest
from library_tokens import assert_same

from keras_bert_layers.preprocessing import SentencePieceTokenizer

pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")
models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")


@pytest.fixture(scope="module")
def pair():
    """A tokenizer, and the library's."""
    proto = models.train("unigram", "nmt_nfkc", **models.DEBERTA)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    names = {"start": "[CLS]", "separator": "[SEP]", "pad": "[PAD]", "unknown": "[UNK]", "mask": "[MASK]"}
    tokenizer = SentencePieceTokenizer(
        [*(piece for piece, _ in pieces), "[MASK]"],
        [*(score for _, score in pieces), None],
        normalizer="nfc",
        num_pair_separators=1,
        **{f"{role}_token": token for role, token in names.items()},
    )
    return tokenizer, models.library_of_deberta(pieces)


def test_hard_texts(pair):
    few = ["", " ", "\u3000", "▁", "a\r\nb", "a  b", " a ", "a ▁b", "[MASK] [MASK]", "e\u0301\u0323 x"]
    assert_same(*pair, [*few, *models.hard_texts(2000, 7, [*models.HARD, *models.HARD_FOR_DEBERTA])])


@pytest.mark.slow
def test_real_texts(pair, real_texts):
    assert_same(*pair, [text for text in real_texts(step=41) if len(text) < 3000])


@pytest.mark.exhaustive
@pytest.mark.parametrize("context", ["{c}", "ab{c}cd", "ab {c} cd", "{c}{c}", "a{c}\u0301b"])
def test_every_scalar_value(context, pair):
    scalars = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert_same(*pair, [context.replace("{c}", c) for c in scalars])


def test_ill_formed_bytes_are_skipped(pair):
    tokenizer, library = pair
    pieces = [b"\xff", b"\xed\xa0\x80", b"\xe2\x82", b"e", "e\u0301".encode(), b"ab", b" ", b"\x00", b"\n"]
    generator = random.Random(19)
    texts = [b"".join(generator.choices(pieces, k=generator.randrange(10))) for _ in range(500)]
    expected = library.encode_batch([text.decode("utf-8", "ignore") for text in texts], add_special_tokens=False)
    for found in (tokenizer.tokenize(texts), tokenizer.tokenize_with_offsets(texts)[0]):
        assert found.to_list() == [encoding.ids for encoding in expected]


def test_a_character_map_beside_it():
    with pytest.raises(ValueError, match="`character_map` must be empty beside 'nfc'"):
        SentencePieceTokenizer(["a"], [0.0], normalizer="nfc", character_map="AAAA")
