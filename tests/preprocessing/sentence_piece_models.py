"""Small SentencePiece models, and the tokenizers that transformers makes of them."""

import io
import random
from pathlib import Path

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2

PAGES = Path(__file__).parents[2] / "docs" / "explanation"
MARKS = [chr(c) for c in (*range(0x300, 0x330), 0x338, 0x200D, 0xFE0F, 0x20E3, 0x64B, 0x5B0, 0x903, 0x93E, 0x1F3FB)]
HARD = [
    *"aeiouAzｚＡﾞ½²™©ﬁ€é\u212b\u00a8\u1e9b\u0600\u0958가\u0e33\x01\x7f\u200b\ufeff\u00ad\r\n\t ▁<>s/☃ß𝐀😀",
    *("\u3000", "\u2028", "\x85", "\0", "<s>", "</s>", "<mask>", " <mask>", "<pad>", "<unk>", "＜unk＞", "＜mask＞"),
    *("hello", " the", " world", "aaaaa", "====="),
]


# ALBERT's settings of the trainer.
ALBERT = {
    **{"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"},
    "user_defined_symbols": ["(", ")", '"', "-", ".", "–", "£", "€"],
}
# DeBERTa's special tokens, as arguments of `sentencepiece`; its tokenizer adds [MASK].
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
DEBERTA |= {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u200a\u2028\u202f\u3000\x1c\u180e"
HARD_FOR_DEBERTA = [
    *SPACES,
    *SPACES,
    "[MASK]",
    "[CLS]",
    "▁",
    "▁",
    "\u0301",
    "\u1100\u1161\u11a8",
    "각",
    "\u0344",
    "<0x41>",
]


def train(kind, normalization, vocabulary_size=900, **options):
    """A `ModelProto` that `sentencepiece` trained on the pages of the documentation."""
    model = io.BytesIO()
    lines = [line for path in sorted(PAGES.glob("*.md")) for line in path.read_text(encoding="utf-8").splitlines()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=vocabulary_size,
        model_type=kind,
        normalization_rule_name=normalization,
        minloglevel=2,
        **options,
    )
    return sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())


def pieces_of(proto, family="xlm-roberta"):
    """The vocabulary with scores that transformers makes of a model, by the family's ids."""
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    if family == "xlm-roberta":
        first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
        return [*first, *pieces[3:], ("<mask>", 0.0)]
    first = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0)]
    return [*first, *pieces[1:], ("<mask>", 0.0)]


def library(pieces, character_map=b"", stripping=("<mask>",), *, unknown_id=3, special=()):
    """The tokenizer of the library `tokenizers` as transformers 5 puts it together for XLM-RoBERTa."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=unknown_id, byte_fallback=False))
    if character_map:
        tokenizer.normalizer = tokenizers.normalizers.Precompiled(character_map)
    split, marker = tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, marker])
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(token, lstrip=token in stripping, normalized=False)
            for token in special or ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
        ]
    )
    return tokenizer


def library_of_deberta(pieces):
    """The same for DeBERTa."""
    normalizers, pre_tokenizers = tokenizers.normalizers, tokenizers.pre_tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=3, byte_fallback=False))
    spaces = normalizers.Replace(tokenizers.Regex(r"\s{2,}|[\n\r\t]"), " ")
    parts = [spaces, normalizers.NFC(), normalizers.Strip(left=False, right=True)]
    tokenizer.normalizer = normalizers.Sequence(parts)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    return tokenizer


def hard_texts(number, seed, hard=HARD):
    """Texts of marks, ligatures, special tokens, whitespace and runs of equal characters."""
    draw = random.Random(seed)
    return [
        "".join(draw.choice(MARKS) if draw.random() < 0.3 else draw.choice(hard) for _ in range(draw.randrange(1, 14)))
        for _ in range(number)
    ]
