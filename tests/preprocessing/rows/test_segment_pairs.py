import random

import numpy as np
import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import SentencePairs
from keras_bert_layers.preprocessing.rows.segment_pairs import kept_lengths

# A share of n draws strays from its probability by more than five standard deviations once in two million cases.
DEVIATIONS = 5
NUM_WORDS = 997


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(NUM_WORDS))])


@pytest.fixture(scope="module")
def documents():
    """Each document holds its words once, in order, so that a token shows where it stands."""
    generator = random.Random(2)
    documents, word = [], 0
    while word < NUM_WORDS - 60:
        document = []
        for _ in range(generator.randint(1, 9)):
            size = generator.randint(1, 6)
            document.append(" ".join(f"w{number}" for number in range(word, word + size)))
            word += size
        documents.append(document)
    return documents


@pytest.fixture(scope="module")
def document_of(documents):
    words = [(int(word[1:]), number) for number, d in enumerate(documents) for s in d for word in s.split()]
    return dict(words)


@pytest.fixture(scope="module")
def sentence_of(documents):
    sentences = [sentence for document in documents for sentence in document]
    return {int(word[1:]): number for number, sentence in enumerate(sentences) for word in sentence.split()}


@pytest.fixture(scope="module")
def pairs(documents, tokenizer):
    return SentencePairs(documents, tokenizer, max_length=17)


@pytest.fixture(scope="module")
def drawn(pairs):
    return np.concatenate([pairs.draw(seed) for seed in range(40)])


@pytest.fixture(scope="module")
def rows(pairs, drawn):
    """First and second segment as numbers of words, and whether the second is random."""
    first, second = (segment.to_list() for segment in pairs.segments(drawn))
    words = [[token - 4 for token in segment] for segment in first], [[t - 4 for t in segment] for segment in second]
    return list(zip(*words, drawn[:, 4], strict=True))


def test_rows_fit_and_no_segment_is_empty(rows):
    sizes = np.array([[len(first), len(second)] for first, second, _ in rows])
    assert sizes.min() == 1
    assert sizes.sum(axis=1).max() == 17 - 3


def test_segments_are_runs_of_one_document(rows, document_of):
    for first, second, _ in rows:
        for segment in (first, second):
            assert segment == list(range(segment[0], segment[0] + len(segment)))
            assert len({document_of[word] for word in segment}) == 1


def test_second_segment_follows_or_is_from_another_document(rows, document_of, sentence_of):
    for first, second, is_random in rows:
        assert (document_of[first[0]] != document_of[second[0]]) == is_random
        if not is_random:  # a border between two sentences, or tokens cut on either side of it
            assert sentence_of[first[-1]] < sentence_of[second[0]] or first[-1] < second[0]


def test_half_of_the_chunks_of_two_sentences_get_a_random_segment(tokenizer):
    """Every sentence fills half a row and no document is odd, so that no chunk is a single sentence."""
    documents = [[f"w{number} w{number}"] * 200 for number in range(5)]
    pairs = SentencePairs(documents, tokenizer, max_length=7, short_rate=0)
    labels = np.concatenate([pairs.draw(seed)[:, 4] for seed in range(20)])
    # The last sentence of a document may stand alone.
    assert abs(labels.mean() - 0.5) < DEVIATIONS * 0.5 / np.sqrt(len(labels)) + 5 * 20 / len(labels)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_random_next_rate(rate, documents, tokenizer):
    drawn = SentencePairs(documents, tokenizer, random_next_rate=rate, short_rate=0).draw(1)
    alone = sum(len(document) == 1 for document in documents)
    assert drawn[:, 4].sum() == (alone if rate == 0 else len(drawn))


def test_random_document_is_any_other(rows, document_of, documents):
    counts = np.zeros(len(documents))
    for _, second, is_random in rows:
        counts[document_of[second[0]]] += is_random
    num_draws, probability = counts.sum(), 1 / len(documents)
    assert np.abs(counts - num_draws * probability).max() < DEVIATIONS * np.sqrt(num_draws * probability) + 40


def test_every_sentence_is_in_a_first_segment_or_its_second(pairs, rows, document_of, tokenizer, documents):
    """What a random segment takes the place of goes back: without truncation nothing is lost."""
    pairs = SentencePairs(documents, tokenizer, max_length=200)
    drawn = pairs.draw(3)
    first, second = (segment.to_list() for segment in pairs.segments(drawn))
    seen = [t for a, b, r in zip(first, second, drawn[:, 4], strict=True) for t in (a if r else a + b)]
    assert sorted(seen) == sorted(word + 4 for word in document_of)


def test_lengths_aim_at_the_row_and_in_a_tenth_of_documents_below(tokenizer):
    documents = [["w1"] * 90 for _ in range(400)]  # a chunk has exactly as many tokens as it aims at
    drawn = SentencePairs(documents, tokenizer, max_length=33).draw(5)
    sizes = drawn[:, 1] - drawn[:, 0] + drawn[:, 3] - drawn[:, 2]
    document = drawn[:, 0] // 90
    longest = np.array([sizes[document == number].max() for number in range(400)])
    is_short = longest < 30
    # One in 29 of the short ones aims at the full length, which leaves 28 / 29 of a tenth.
    probability = 0.1 * 28 / 29
    assert abs(is_short.mean() - probability) < DEVIATIONS * np.sqrt(probability / 400)
    assert longest.max() == 30
    assert longest.min() >= 2


@pytest.mark.parametrize("budget", [2, 3, 8, 9])
def test_truncation_is_the_references(budget):
    for first in range(1, 14):
        for second in range(1, 14):
            sizes = [first, second]
            while sum(sizes) > budget:
                sizes[0 if sizes[0] > sizes[1] else 1] -= 1
            assert list(kept_lengths(first, second, budget)) == sizes


def test_tokens_are_cut_at_both_ends_alike(tokenizer):
    documents = [[" ".join(["w1"] * 40)] for _ in range(300)]
    drawn = SentencePairs(documents, tokenizer, max_length=13, short_rate=0).draw(5)
    num_cut = 40 - 5
    for column in (0, 2):
        assert (drawn[:, column + 1] - drawn[:, column] == 5).all()
        num_front = drawn[:, column] % 40
        assert abs(num_front.mean() - num_cut / 2) < DEVIATIONS * np.sqrt(num_cut / 4 / 300)
        assert num_front.var() == pytest.approx(num_cut / 4, rel=DEVIATIONS * np.sqrt(2 / 300))


def test_seeds(pairs):
    np.testing.assert_array_equal(pairs.draw(3), pairs.draw(3))
    assert pairs.draw(3).tolist() != pairs.draw(4).tolist()


def test_segments_in_graph(pairs, drawn):
    dataset = tf.data.Dataset.from_tensor_slices(drawn[:7]).batch(3).map(pairs.segments)
    found = [row for first, _ in dataset for row in first.to_list()]
    assert found == pairs.segments(drawn[:7])[0].to_list()


def test_one_document_alone(tokenizer):
    drawn = SentencePairs([["w1 w2"]], tokenizer).draw(0)
    assert drawn.tolist() == [[0, 2, 0, 2, 1]]


def test_empty_sentences_and_documents_are_left_out(tokenizer):
    with_empty = SentencePairs([[], ["", "w1 w2", " "], [""], ("w3", "w4")], tokenizer).draw(6)
    np.testing.assert_array_equal(with_empty, SentencePairs([["w1 w2"], ["w3", "w4"]], tokenizer).draw(6))


def test_errors(tokenizer):
    with pytest.raises(TypeError, match="`documents` must be a list of lists of sentences.*`data.read_documents`"):
        SentencePairs("a text", tokenizer)
    with pytest.raises(TypeError, match="a document must be a list of sentences. Received: 'two' as document 1"):
        SentencePairs([["one"], "two"], tokenizer)
    with pytest.raises(TypeError, match="sentences must be strings. Received: None as sentence 1 of document 0"):
        SentencePairs([["one", None]], tokenizer)
    with pytest.raises(ValueError, match="`documents` must hold at least one token. Received: documents=2"):
        SentencePairs([[""], []], tokenizer)
    with pytest.raises(ValueError, match="`max_length` must be at least 5, for "):
        SentencePairs([["one"]], tokenizer, max_length=4)
    with pytest.raises(ValueError, match="`short_rate` must be at least 0 and at most 1"):
        SentencePairs([["one"]], tokenizer, short_rate=2)
    with pytest.raises(ValueError, match="`random_next_rate` must be at least 0 and at most 1"):
        SentencePairs([["one"]], tokenizer, random_next_rate=-0.5)
    with pytest.raises(TypeError, match="`tokenizer` must be a BertTokenizer"):
        SentencePairs([["one"]], None)
