"""Tables of character replacements: the host reads what was written."""

import pytest
import tensorflow as tf

from keras_bert_layers.preprocessing.engines import host
from keras_bert_layers.preprocessing.engines.character_table import character_table, ill_formed_sequences

REPLACEMENTS = {"a": "bcd", "é": "", "中": " ▁", "\t": " ", "😀": "x" * 63, "b": "bcd", "\u0301": "é"}


@pytest.mark.parametrize("replacements", [{}, {"a": ""}, REPLACEMENTS], ids=len)
def test_replaces_characters_and_drops_ill_formed_bytes(replacements):
    texts = ["", "aé中\tx", "ab\u0301中中b", "\0a", "ĀÁ😁😀", "e\u0302"]
    noise = [b"\xff" + text.encode() + b"\xe4\xb8" for text in texts]
    found = host.CharacterReplacer(character_table(replacements)).replace(tf.constant([*texts, *noise])).numpy()
    expected = ["".join(replacements.get(c, c) for c in text).encode() for text in texts]
    assert found.tolist() == [*expected, *expected]


def test_ill_formed_sequences():
    """All bytes that Python skips as one unit, and no character."""
    sequences = list(ill_formed_sequences())
    assert len(sequences) == len(set(sequences))
    assert all(sequence.decode("utf-8", "ignore") == "" for sequence in sequences)
    assert all(sequence.decode("utf-8", "replace") == "\N{REPLACEMENT CHARACTER}" for sequence in sequences)
    characters = [chr(code).encode() for code in range(0x80, 0x110000, 7) if not 0xD800 <= code < 0xE000]
    assert {text[:cut] for text in characters for cut in range(1, len(text))} <= set(sequences)
