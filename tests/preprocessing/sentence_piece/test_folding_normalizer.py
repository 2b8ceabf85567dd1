"""ALBERT's normalization in a `SentencePieceTokenizer`, against the library `tokenizers`."""

import base64
import random

import pytest
from hard_texts import hard_texts
from library_tokens import assert_same

from keras_bert_layers.preprocessing import SentencePieceTokenizer

tokenizers = pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")
models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")

NORMALIZERS = ["quotes_nfkd_lowercase", "quotes", "quotes_lowercase", "quotes_nfkd"]
QUOTES = [
    *("``", "''", "'", "`", '"', "é", "É", "\u0301", "e", "İ", "ﬁ", "가", "각", "\u200d", "\x01", " ", "▁", "½", "¨"),
    *("\u0600", "\r\n", "\u0898", "\U0001f3fb", "[MASK]", "(", "U.S."),
]  # fmt: skip


@pytest.fixture(scope="module")
def proto():
    return models.train("unigram", "nmt_nfkc", **models.ALBERT)


@pytest.fixture(
    scope="module", params=[NORMALIZERS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NORMALIZERS[1:])]
)
def pair(request, proto):
    """A tokenizer, and the library's with the steps of transformers' `AlbertTokenizer`."""
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    special = [piece.piece for piece in proto.pieces if piece.type in (3, 4)] + ["<unk>"]
    character_map = proto.normalizer_spec.precompiled_charsmap
    vocabulary, scores = map(list, zip(*pieces, strict=True))
    tokenizer = SentencePieceTokenizer(
        vocabulary,
        scores,
        character_map=base64.b64encode(character_map).decode(),
        special_tokens=special,
        start_token="[CLS]",
        separator_token="[SEP]",
        mask_token="[MASK]",
        normalizer=request.param,
        num_pair_separators=1,
    )
    library = models.library(pieces, unknown_id=1, special=special)
    kinds = tokenizers.normalizers
    steps = [kinds.Replace("``", '"'), kinds.Replace("''", '"')]
    steps += [kinds.NFKD(), kinds.StripAccents()] if "nfkd" in request.param else []
    steps += [kinds.Lowercase()] if "lowercase" in request.param else []
    library.normalizer = kinds.Sequence([*steps, kinds.Precompiled(character_map)])
    return tokenizer, library


def test_texts(pair):
    draw = random.Random(3)
    quotes = ["".join(draw.choice(QUOTES) for _ in range(draw.randrange(1, 10))) for _ in range(400)]
    assert_same(*pair, ["", *quotes, *models.hard_texts(300, seed=7), *hard_texts(5, 300)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("context", ["{c}", "ab{c}cd", "ab {c}''cd", "{c}{c}", "a{c}\u0301b"])
def test_every_scalar_value(context, pair):
    scalars = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert_same(*pair, [context.replace("{c}", c) for c in scalars])


@pytest.mark.slow
def test_real_texts(pair, real_texts):
    assert_same(*pair, [text for text in real_texts(step=41) if len(text) < 3000])


def test_ill_formed_bytes_are_skipped(pair):
    tokenizer, _ = pair
    found = tokenizer.tokenize([b"\xffa``\xe2\x82b''\xed\xa0\x80", b"\xe9``b"]).to_list()
    assert found == tokenizer.tokenize(["a``b''", "``b"]).to_list()
