"""Tables of character replacements: the host reads what was written."""

import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import host
from keras_bert_layers.preprocessing.engines.character_table import (
    NUL_FIELD,
    POOL_FIELD,
    TRIE_FIELD,
    character_table,
    ill_formed_sequences,
    place_of_field,
    vector_of_field,
)
from keras_bert_layers.preprocessing.tables import load

Table = pytest.importorskip("flatbuffers.table").Table
REPLACEMENTS = {"a": "bcd", "é": "", "中": " ▁", "\t": " ", "😀": "x" * 63, "b": "bcd", "\u0301": "é"}


@pytest.mark.parametrize("replacements", [{}, {"a": ""}, REPLACEMENTS], ids=len)
def test_replaces_characters_and_drops_ill_formed_bytes(replacements):
    texts = ["", "aé中\tx", "ab\u0301中中b", "\0a", "ĀÁ😁😀", "e\u0302"]
    noise = [b"\xff" + text.encode() + b"\xe4\xb8" for text in texts]
    found = host.CharacterReplacer(character_table(replacements)).replace(tf.constant([*texts, *noise])).numpy()
    expected = ["".join(replacements.get(c, c) for c in text).encode() for text in texts]
    assert found.tolist() == [*expected, *expected]


@pytest.mark.parametrize(
    "model", [load("google", True, True).model, character_table(REPLACEMENTS)], ids=["read", "written"]
)
def test_fields_of_a_flatbuffer(model):
    """The library finds the same in what we write, and we in what it wrote."""
    table = Table(model, int.from_bytes(model[:4], "little"))
    for field, dtype in ((TRIE_FIELD, "<u4"), (POOL_FIELD, "u1")):
        place = table.Offset(4 + 2 * field)
        begin = table.Vector(place)
        expected = np.frombuffer(model, dtype, table.VectorLen(place), begin)
        np.testing.assert_array_equal(vector_of_field(model, field, dtype), expected)
        assert begin % np.dtype(dtype).itemsize == 0
    of_nul = table.Offset(4 + 2 * NUL_FIELD)
    assert place_of_field(model, NUL_FIELD) == (table.Pos + of_nul if of_nul else 0)
    assert place_of_field(model, 99) == 0


def test_ill_formed_sequences():
    """All bytes that Python skips as one unit, and no character."""
    sequences = list(ill_formed_sequences())
    assert len(sequences) == len(set(sequences))
    assert all(sequence.decode("utf-8", "ignore") == "" for sequence in sequences)
    assert all(sequence.decode("utf-8", "replace") == "\N{REPLACEMENT CHARACTER}" for sequence in sequences)
    characters = [chr(code).encode() for code in range(0x80, 0x110000, 7) if not 0xD800 <= code < 0xE000]
    assert {text[:cut] for text in characters for cut in range(1, len(text))} <= set(sequences)
