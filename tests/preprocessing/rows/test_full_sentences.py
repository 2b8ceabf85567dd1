import itertools

import pytest
from document_rows import CLS, FIRST, SEP, make_documents, texts_of

from keras_bert_layers.preprocessing import DocumentSentences, FullSentences


def reference_rows(documents, max_length, crosses_documents):
    """Rows of whole sentences, sentence by sentence; the documents have none that is longer than a row."""
    rows, row, last = [], [], None
    for document, (start, stop) in enumerate(itertools.pairwise(documents.document_bounds)):
        for index in range(start, stop):
            sentence = documents.ids[documents.sentence_bounds[index] : documents.sentence_bounds[index + 1]].tolist()
            gap = [SEP] if row and last != document else []
            starts_anew = gap and not crosses_documents
            if row and (starts_anew or len(row) + len(gap) + len(sentence) > max_length - 2):
                rows.append([CLS, *row, SEP])
                row, gap = [], []
            row += gap + sentence
            last = document
    return [*rows, [CLS, *row, SEP]]


@pytest.mark.parametrize("rule", [FullSentences(), DocumentSentences()], ids=repr)
class TestSentences:
    @pytest.mark.parametrize("max_length", [31, 37, 64, 200, 100_000])
    def test_rows_are_filled_with_whole_sentences(self, rule, max_length, documents, tokenizer):
        rows = rule.rows(documents, tokenizer, max_length=max_length, seed=0)
        expected = reference_rows(documents, max_length, isinstance(rule, FullSentences))
        assert [rows.token_ids[a:b].tolist() for a, b in itertools.pairwise(rows.bounds)] == expected
        assert not rows.segment_ids.any()
        assert (rows.text_numbers == 1).all()

    def test_long_sentences_are_cut(self, rule, tokenizer):
        rows = rule.rows(make_documents([[3, 25, 2], [10]]), tokenizer, max_length=12, seed=0)
        assert [len(row) - 2 for (row,) in texts_of(rows)] == [3, 10, 10, 7, 10]
        assert rows.token_ids[rows.token_ids >= FIRST].tolist() == list(range(FIRST, FIRST + 40))


def test_full_sentences_cross_documents_with_a_separator(tokenizer):
    rows = FullSentences().rows(make_documents([[2, 2], [3], [4]]), tokenizer, max_length=14, seed=0)
    assert rows.token_ids.tolist() == [CLS, 4, 5, 6, 7, SEP, 8, 9, 10, SEP, CLS, 11, 12, 13, 14, SEP]
