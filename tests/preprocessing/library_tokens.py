"""Tokens beside those of the library `tokenizers`."""

import numpy as np


def assert_same(tokenizer, library, texts):
    """Equal ids, with and without offsets, and equal offsets; the library's count characters."""
    for first in range(0, len(texts), 1000):
        batch = texts[first : first + 1000]
        found = [part.to_list() for part in tokenizer.tokenize_with_offsets(batch)]
        expected = library.encode_batch(batch, add_special_tokens=False)
        rows = zip(batch, expected, tokenizer.tokenize(batch).to_list(), *found, strict=True)
        for text, encoding, plain_ids, ids, starts, ends in rows:
            assert plain_ids == ids == encoding.ids, text
            places = np.cumsum([0, *(len(character.encode()) for character in text)])
            assert list(zip(starts, ends, strict=True)) == [(places[a], places[b]) for a, b in encoding.offsets], text
