import random

import numpy as np
import pytest
from document_rows import CLS, FIRST, SEP, WIDTHS, document_of, make_documents, texts_of

from keras_bert_layers import BertTokenizer
from keras_bert_layers.data import read_documents
from keras_bert_layers.preprocessing import PackedTexts, TokenDocuments


class TestPackedTexts:
    @pytest.mark.parametrize("max_length", [3, *WIDTHS, 1000])
    def test_no_token_is_lost_and_texts_are_runs_of_one_document(self, documents, tokenizer, max_length):
        rows = texts_of(PackedTexts().rows(documents, tokenizer, max_length=max_length, seed=0))
        texts = [text for row in rows for text in row]
        assert all(text[0] == CLS and text[-1] == SEP for text in texts)
        texts = [text[1:-1] for text in texts]
        assert sorted(token for text in texts for token in text) == documents.ids.tolist()
        room = max_length - 2
        for text in texts:
            assert text == list(range(text[0], text[0] + len(text)))
            (number,) = set(document_of(documents, np.array(text)))
            # Cut at full rows from the document's start.
            assert (text[0] - FIRST - documents.token_bounds[number]) % room == 0
        firsts = [row[0][1] for row in rows]
        assert firsts == sorted(firsts)
        assert all([text[1] for text in row] == sorted(text[1] for text in row) for row in rows)

    @pytest.mark.parametrize("capacity", [17, 64])
    def test_best_fit_decreasing(self, tokenizer, capacity):
        """The number of rows, and the room in each, are those of a search through all rows."""
        generator = random.Random(4)
        sizes = [generator.randint(1, capacity - 2) for _ in range(200)]
        rooms = []
        for size in sorted((size + 2 for size in sizes), reverse=True):
            fitting = [index for index, room in enumerate(rooms) if room >= size]
            if fitting:
                rooms[min(fitting, key=rooms.__getitem__)] -= size
            else:
                rooms.append(capacity - size)
        packed = PackedTexts().rows(make_documents([[size] for size in sizes]), tokenizer, max_length=capacity, seed=0)
        assert sorted(capacity - np.diff(packed.bounds)) == sorted(rooms)

    @pytest.mark.parametrize("max_length", [128, 512])
    def test_padding_of_real_articles_is_below_two_percent(self, shared_data, max_length):
        corpus = shared_data / "corpus" / "wikipedia-2006-articles.txt.gz"
        vocabulary = (shared_data / "vocab" / "bert-base-uncased.txt").read_text(encoding="utf-8").splitlines()
        tokenizer = BertTokenizer(vocabulary)
        documents = TokenDocuments.from_text(read_documents(corpus)[0][:400], tokenizer)
        rows = PackedTexts().rows(documents, tokenizer, max_length=max_length, seed=0)
        assert rows.bounds[-1] / (len(rows) * max_length) > 0.98
