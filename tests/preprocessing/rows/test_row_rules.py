"""Rules for rows: what all have in common, and the pairs of `NextSentence` and `SentenceOrder`."""

import json
import re

import numpy as np
import pytest
from document_rows import PAD, UNK, WIDTHS, document_of, make_documents, pairs_of, sentence_of

from keras_bert_layers.preprocessing import (
    DocumentSentences,
    FullSentences,
    NextSentence,
    PackedTexts,
    SentenceOrder,
    SentencePairs,
    SentencePieceTokenizer,
    TokenDocuments,
)
from keras_bert_layers.preprocessing.rows.row_rules import rule_from_dict, rule_to_dict

# The share of n draws is within three standard deviations of its law. Seeds are fixed.
DEVIATIONS = 3
PAIRS = [NextSentence(), SentenceOrder()]
SINGLE = [FullSentences(), DocumentSentences(), PackedTexts()]
RULES = PAIRS + SINGLE


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("max_length", WIDTHS)
class TestEveryRule:
    def test_form(self, rule, max_length, documents, tokenizer):
        rows = rule.rows(documents, tokenizer, max_length=max_length, seed=5)
        assert np.diff(rows.bounds).max() <= max_length
        assert np.diff(rows.bounds).min() >= 3
        assert rows.bounds[0] == 0
        assert rows.bounds[-1] == len(rows.token_ids) == len(rows.segment_ids) == len(rows.text_numbers)
        dtypes = [rows.token_ids.dtype, rows.segment_ids.dtype, rows.text_numbers.dtype, rows.bounds.dtype]
        assert dtypes == [np.int32, np.int8, np.int32, np.int64]
        assert (rows.text_numbers.max() > 1) == rule.is_packed
        assert (rows.labels is not None) == rule.has_labels
        if rule.has_labels:
            assert rows.labels.shape == (len(rows),)
            assert set(rows.labels.tolist()) == {0, 1}
        assert not np.isin(rows.token_ids, (PAD, UNK)).any()

    def test_same_seed_same_rows(self, rule, max_length, documents, tokenizer):
        first, second, third = (
            rule.rows(documents, tokenizer, max_length=max_length, seed=seed) for seed in (2**63 - 1, 2**63 - 1, 4)
        )
        for field in ("token_ids", "segment_ids", "text_numbers", "bounds", "labels"):
            np.testing.assert_array_equal(getattr(first, field), getattr(second, field))
        assert rule.has_labels == (first.token_ids.tolist() != third.token_ids.tolist())

    def test_no_documents(self, rule, max_length, tokenizer):
        nothing = TokenDocuments.from_text([[""]], tokenizer)
        rows = rule.rows(nothing, tokenizer, max_length=max_length, seed=0)
        assert len(rows) == 0
        assert len(rows.token_ids) == 0


class TestNextSentence:
    def test_rows_are_the_pairs_of_sentence_pairs(self, tokenizer):
        text = [["w1 w2", "w3", "w4 w5 w6"], ["w7"], ["w8 w9", "w1", "w2"]] * 5
        pairs = SentencePairs(text, tokenizer, max_length=9)
        expected = pairs.draw(7)
        first, second = pairs.segments(expected)
        rows = NextSentence().rows(TokenDocuments.from_text(text, tokenizer), tokenizer, max_length=9, seed=7)
        assert list(pairs_of(rows)) == list(zip(first.to_list(), second.to_list(), strict=True))
        assert rows.labels.tolist() == expected[:, 4].tolist()
        assert rows.segment_ids[: rows.bounds[1]].tolist() == [0] * (2 + len(first[0])) + [1] * (1 + len(second[0]))

    @pytest.mark.parametrize("max_length", WIDTHS)
    def test_random_seconds_are_from_other_documents(self, documents, tokenizer, max_length):
        for seed in range(5):
            rows = NextSentence().rows(documents, tokenizer, max_length=max_length, seed=seed)
            for (first, second), label in zip(pairs_of(rows), rows.labels, strict=True):
                numbers = [set(document_of(documents, np.array(part))) for part in (first, second)]
                assert [len(number) for number in numbers] == [1, 1]
                assert (numbers[0] != numbers[1]) == label

    def test_half_and_half(self, tokenizer):
        """Two sentences fill a row. The last sentence of a document may stand alone; it has a random second text."""
        documents = make_documents([[5] * 400, [5] * 400])
        found = []
        for seed in range(20):
            rows = NextSentence(short_rate=0).rows(documents, tokenizer, max_length=13, seed=seed)
            firsts = [first[0] for first, _ in pairs_of(rows)]
            is_last = np.isin(sentence_of(documents, np.array(firsts)), (399, 799))
            assert rows.labels[is_last].all()
            found.append(rows.labels[~is_last])
        labels = np.concatenate(found)
        assert len(labels) > 8000
        assert abs(labels.mean() - 0.5) < DEVIATIONS * 0.5 / np.sqrt(len(labels))

    def test_first_texts_and_seconds_that_follow_hold_all_text(self, documents, tokenizer):
        rows = NextSentence().rows(documents, tokenizer, max_length=700, seed=2)
        seen = [t for (a, b), label in zip(pairs_of(rows), rows.labels, strict=True) for t in (a if label else a + b)]
        assert sorted(seen) == documents.ids.tolist()


class TestSentenceOrder:
    @pytest.mark.parametrize("max_length", WIDTHS)
    def test_neighbours_in_order_or_swapped(self, documents, tokenizer, max_length):
        rows = SentenceOrder().rows(documents, tokenizer, max_length=max_length, seed=3)
        for (first, second), label in zip(pairs_of(rows), rows.labels, strict=True):
            assert (first[0] > second[0]) == label
            assert len(set(document_of(documents, np.array(first + second)))) == 1

    def test_half_and_half(self, documents, tokenizer):
        labels = np.concatenate(
            [SentenceOrder().rows(documents, tokenizer, max_length=23, seed=seed).labels for seed in range(30)]
        )
        assert len(labels) > 4000
        assert abs(labels.mean() - 0.5) < DEVIATIONS * 0.5 / np.sqrt(len(labels))

    def test_all_text_is_used_once(self, documents, tokenizer):
        rows = SentenceOrder().rows(documents, tokenizer, max_length=700, seed=2)
        pairs = list(pairs_of(rows))
        seen = [token for pair in pairs for segment in pair for token in segment]
        # A sentence of one token that is a document or the end of one cannot be split.
        alone = [token for token in documents.ids.tolist() if token not in seen]
        assert sorted(seen + alone) == documents.ids.tolist()
        sizes = np.diff(documents.sentence_bounds)
        assert all(sizes[sentence_of(documents, token)] == 1 for token in alone)
        assert len(alone) < 5
        # Nothing is cut, so that the texts touch, at a border of sentences where there is one.
        for first, second in pairs:
            last, following = (first[-1], second[0]) if first[0] < second[0] else (second[-1], first[0])
            assert following == last + 1

    def test_one_sentence_is_split(self, tokenizer):
        documents = make_documents([[9]])
        found = [
            next(pairs_of(SentenceOrder().rows(documents, tokenizer, max_length=20, seed=seed))) for seed in range(40)
        ]
        assert {tuple(sorted(a + b)) for a, b in found} == {tuple(documents.ids)}
        assert {min(len(a), len(b)) for a, b in found} == {1, 2, 3, 4}


@pytest.mark.parametrize("rule", [*RULES, NextSentence(0.25, 0.5), SentenceOrder(short_rate=0)], ids=repr)
def test_rules_as_json(rule):
    values = json.loads(json.dumps(rule_to_dict(rule)))
    assert values["class"] == type(rule).__name__
    assert rule_from_dict(values) == rule
    assert hash(rule) == hash(rule_from_dict(values))


def test_errors(tokenizer, documents):
    for rule in PAIRS:
        name = type(rule).__name__
        with pytest.raises(ValueError, match=f"`{name}`: `max_length` must be at least 5, for "):
            rule.rows(documents, tokenizer, max_length=4, seed=0)
        pieces = SentencePieceTokenizer(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁a"], [0.0] * 5 + [-1.0])
        with pytest.raises(TypeError, match=f"`{name}`: `tokenizer` must be a BertTokenizer.*`FullSentences`"):
            rule.rows(documents, pieces, max_length=9, seed=0)
    for rule in SINGLE:
        with pytest.raises(ValueError, match=f"`{type(rule).__name__}`: `max_length` must be at least 3, for "):
            rule.rows(documents, tokenizer, max_length=2, seed=0)
    with pytest.raises(ValueError, match="`NextSentence`: `random_next_rate` must be at least 0 and at most 1"):
        NextSentence(random_next_rate=1.5)
    with pytest.raises(TypeError, match="`SentenceOrder`: `short_rate` must be a number"):
        SentenceOrder(short_rate="all")
    with pytest.raises(ValueError, match=re.escape("`RowRule`: `class` must be one of ['NextSentence', ")):
        rule_from_dict({"class": "Sentences", "settings": {}})
    with pytest.raises(ValueError, match=re.escape("`SentenceOrder`: `setting` must be one of ['short_rate']. Rec")):
        rule_from_dict({"class": "SentenceOrder", "settings": {"random_next_rate": 0.5}})
