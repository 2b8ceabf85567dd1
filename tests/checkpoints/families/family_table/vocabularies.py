"""Small vocabularies in the layout of real ones, and the texts that they are made from."""

from __future__ import annotations

import functools
import io
import re
import unicodedata
from typing import Any

SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
TEXTS = (
    "The quick brown fox isn't unhappy, it jumps over 13 lazy dogs!",
    "Angela Merkel met José in Zürich; they spoke Français naïvely.",
    "北京是中国的首都。東京へ行きました、カタカナ",
    "Быстрая лиса живёт в Москве и ест йогурт",
    "السلام عليكم يا مُحَمَّد، كيف الحال؟",
    "나는 학교에 간다. हिन्दी में लिखा שלום ไทย",
    " leading and trailing  ",
    "tabs\tand\nlines  and\u00a0spaces\u200b; emoji 🙂👍 caf\u0065\u0301 ﬁne Ⅳ",
    "[MASK] and <mask> are not [UNK] but [CLS]. <s> </s>",
    "",
    "sales of [NUM] and [num] million, [رابط] [unused1]",
    "supercalifragilisticexpialidocious " * 3 + "MIXED Case WORDS e-mail@example.com 3.14%",
)
PAIRS = tuple((TEXTS[index], TEXTS[index + 1]) for index in (0, 2, 4, 8))
PROTEIN = ("M K T A Y I A K Q R", "D L I P T S S K L V", "E V Q L V E S G G G", "W X Z C H N F")
DNA = ("ATGCGT TGCGTA GCGTAC", "AAAAAA CCCCCC", "GGGGGG TTTTTT ATGCGT")


def _pieces(texts: tuple[str, ...], *, uncased: bool) -> list[str]:
    """Every other word, the parts of the others, and most characters, so that some words are unknown."""
    if uncased:
        texts = tuple(
            "".join(
                letter for letter in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(letter)
            )
            for text in texts
        )
    words = sorted({word for text in texts for word in re.findall(r"\w+", text)})
    whole, split = words[::2], words[1::2]
    pieces = [*whole, *(word[:3] for word in split), *(f"##{word[3:]}" for word in split if len(word) > 3)]
    letters = sorted({letter for text in texts for letter in text if not letter.isspace()})[::-1]
    pieces += [letter for index, letter in enumerate(letters) if index % 17]
    pieces += [f"##{letter}" for index, letter in enumerate(letters) if index % 13]
    return list(dict.fromkeys(pieces))


def texts_of(vocabulary: str) -> tuple[str, ...]:
    """The texts that a vocabulary is compared on."""
    return {"protein": PROTEIN, "dna": DNA}.get(vocabulary, TEXTS)


@functools.cache
def word_pieces(name: str) -> list[str]:
    """The tokens of a `vocab.txt`, by a name such as "uncased", "cased", "scibert" or "pad_at_3"."""
    google = ["[PAD]", "[unused1]", "[unused2]", "[unused3]", *SPECIAL, "[unused99]"]
    match name:
        case "uncased":
            return google + _pieces(TEXTS, uncased=True)
        case "cased":
            return google + _pieces(TEXTS, uncased=False)
        case "five_first" | "five_first_cased":
            return ["[PAD]", *SPECIAL, *_pieces(TEXTS, uncased=name == "five_first")]
        case "scibert":
            return ["[PAD]", *(f"[unused{index}]" for index in range(4)), *SPECIAL, *_pieces(TEXTS, uncased=True)]
        case "pad_at_3":
            return ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", *_pieces(TEXTS, uncased=False)]
        case "mpnet":
            return ["<s>", "<pad>", "</s>", "[UNK]", *_pieces(TEXTS, uncased=True), "<mask>"]
        case "mask_last":
            return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *_pieces(TEXTS, uncased=False), "[MASK]"]
        case "arabert":
            words = _pieces(TEXTS, uncased=False)
            return ["[PAD]", *SPECIAL, "[رابط]", "[بريد]", "[مستخدم]", *words]
        case "with_num":
            return [*google, "[NUM]", *_pieces(TEXTS, uncased=True)]
        case "protein":
            return ["[PAD]", *SPECIAL, *"LAGVESIKRDTPNQFYMHCWXUBZO"]
        case "dna":
            return ["[PAD]", *SPECIAL, *sorted({word for text in DNA for word in text.split()})[1:], "ACGTAC"]
    raise ValueError(name)


# The special tokens of DeBERTa's models, as arguments of `sentencepiece`.
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
DEBERTA_PIECES = {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}


@functools.cache
def sentence_pieces(*, of_deberta: bool = False) -> bytes:
    """A SentencePiece model as XLM-RoBERTa's, or as DeBERTa's, trained on the texts."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for text in TEXTS if text] * 4),
        model_writer=model,
        model_type="unigram",
        vocab_size=260,
        character_coverage=0.98,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **({**DEBERTA, **DEBERTA_PIECES} if of_deberta else {}),
    )
    return model.getvalue()


def roberta_pieces(model: bytes, more: tuple[str, ...] = ()) -> tuple[list[tuple[str, float]], bytes]:
    """The pieces in the order of XLM-RoBERTa, with their scores, and the map of the normalizer."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces][3:]
    first = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    last = [(piece, 0.0) for piece in more]
    return [*first, *pieces, *last, ("<mask>", 0.0)], proto.normalizer_spec.precompiled_charsmap


@functools.cache
def albert_pieces() -> bytes:
    """A SentencePiece model as ALBERT's, trained on small letters of the texts."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text.lower() for text in TEXTS if text] * 4),
        model_writer=model,
        vocab_size=260,
        character_coverage=0.98,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
        **{"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"},
        user_defined_symbols=["(", ")", '"', "-", ".", "–", "£", "€"],
    )
    return model.getvalue()


def camembert_pieces(model: bytes) -> Any:
    """The pieces in the order of CamemBERT, and the map of the normalizer."""
    pieces, charsmap = roberta_pieces(model)
    first = [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0), ("<unk>NOTUSED", -100.0)]
    return [*first, ("<s>", 0.0), ("</s>", 0.0), *pieces[4:]], charsmap
