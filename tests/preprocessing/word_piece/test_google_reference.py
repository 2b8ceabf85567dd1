"""`reference="google"` against an independent plain-Python reading of google-research/bert's tokenizer."""

import functools
import itertools
import re
import unicodedata

import pytest

from keras_bert_layers.preprocessing import BertTokenizer, tables

SWITCHES = [(lowercase, strip) for lowercase in (True, False) for strip in (True, False)]
MADE_FROM = tables.made_from()["google"]
RUNS_ON = f"unicodedata {unicodedata.unidata_version}"


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_scalar_value(lowercase, rich_vocabulary, google_tokenizer, differences):
    check_every_scalar_value(rich_vocabulary, lowercase, None, google_tokenizer, differences)


@pytest.mark.slow
@pytest.mark.parametrize(("lowercase", "strip_accents"), [(True, False), (False, True)])
def test_every_scalar_value_with_switches_apart(
    lowercase, strip_accents, rich_vocabulary, google_tokenizer, differences
):
    check_every_scalar_value(rich_vocabulary, lowercase, strip_accents, google_tokenizer, differences)


def check_every_scalar_value(vocabulary, lowercase, strip_accents, google_tokenizer, differences):
    expected = google_tokenizer(vocabulary, lowercase, strip_accents)
    tokenizer = BertTokenizer(vocabulary, lowercase, strip_accents=strip_accents)
    alike, ids_of = expected.alike(), functools.cache(expected.ids)
    different = differences(
        lambda texts: tokenizer.tokenize(texts).to_list(),
        lambda texts: [ids_of(text.translate(alike)) for text in texts],
    )
    if different and MADE_FROM != RUNS_ON:
        pytest.xfail(f"The tables are of {MADE_FROM}, this Python has {RUNS_ON}: {different} differ.")
    assert different == []


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize(("lowercase", "strip_accents"), SWITCHES)
@pytest.mark.parametrize("split_chinese", [True, False])
def test_hard_texts(lowercase, strip_accents, split_chinese, rich_vocabulary, google_tokenizer, hard_texts):
    if MADE_FROM != RUNS_ON:
        pytest.skip(f"draws characters that {MADE_FROM}, which made the tables, and {RUNS_ON} may see differently")
    texts = hard_texts(seed=17, number=1200)
    expected = google_tokenizer(rich_vocabulary, lowercase, strip_accents, split_chinese)
    tokenizer = BertTokenizer(rich_vocabulary, lowercase, strip_accents=strip_accents, split_chinese=split_chinese)
    ids, _, _ = tokenizer.tokenize_with_offsets(texts)
    found = zip(texts, tokenizer.tokenize(texts).to_list(), ids.to_list(), strict=True)
    assert [text for text, a, b in found if a != expected.ids(text) or b != a] == []


def test_ill_formed_bytes_are_skipped(rich_vocabulary, google_tokenizer):
    """As `bytes.decode("utf-8", "ignore")` does, which `tokenization.py` calls."""
    import numpy as np

    generator = np.random.default_rng(7)
    pieces = [bytes([b]) for b in range(256)] + [b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x82", b"\xf0\x9f\x98"]
    pieces += [b"\xf4\x90\x80\x80", "é".encode(), "ก".encode(), "😀".encode(), "Σ".encode(), b" ", b"ab"] * 25
    texts = [b"".join(generator.choice(np.array(pieces, object), n)) for n in generator.integers(0, 12, 3000)]
    expected = google_tokenizer(rich_vocabulary)
    ids, starts, ends = BertTokenizer(rich_vocabulary).tokenize_with_offsets(np.array(texts, object))
    assert ids.to_list() == [expected.ids(text) for text in texts]
    for text, text_starts, text_ends in zip(texts, starts.to_list(), ends.to_list(), strict=True):
        for start, end in zip(text_starts, text_ends, strict=True):
            assert text[start:end].decode("utf-8", "ignore")


def parts_with_new_words(texts):
    """Parts of texts, of a few words, with a word that no part before has: whitespace parts words for any tokenizer."""
    seen = set()
    for part in itertools.chain.from_iterable(re.findall(r"\S*(?:\s+\S+){0,4}\s*", text) for text in texts):
        words = set(part.split())
        if not words <= seen:
            seen |= words
            yield part


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_real_texts(lowercase, minilm_vocabulary, google_tokenizer, real_texts):
    """The same ids, and offsets that cut out bytes which the reference makes the same token of.

    Of all texts each word, with those beside it; of some the whole text.
    """
    texts = real_texts(step=1 if lowercase else 3)
    texts = [*texts[::29], *parts_with_new_words(texts)]
    expected = google_tokenizer(minilm_vocabulary, lowercase)
    tokenizer = BertTokenizer(minilm_vocabulary, lowercase)
    cuts = set()
    for first in range(0, len(texts), 1000):
        batch = texts[first : first + 1000]
        for text, *rows in zip(
            batch, *(part.to_list() for part in tokenizer.tokenize_with_offsets(batch)), strict=True
        ):
            assert rows[0] == expected.ids(text), text
            data = text.encode()
            cuts.update((token_id, data[start:end]) for token_id, start, end in zip(*rows, strict=True))
    for token_id, cut in cuts:
        piece = minilm_vocabulary[token_id].removeprefix("##")
        assert piece == "[UNK]" or expected.words(cut.decode()) == [piece], (cut, piece)
