"""SentencePiece in graph against a search through all segmentations."""

import itertools
import random

import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.engines import sentence_pieces
from keras_bert_layers.preprocessing.engines.sentence_pieces import NEVER, BestPath, piece_names

PIECES = ["<unk>", "▁", "▁a", "a", "b", "ab", "ba", "aab", "é", "éa"]
SCORES = [0.0, -2.25, -2.5, -1.0, -1.5, -2.5, -2.25, -3.5, -4.0, -4.75]
UNKNOWN, OTHER = 0, len(PIECES)
# What an unknown character costs, below the smallest score.
PENALTY = min(SCORES) - BestPath.UNKNOWN_PENALTY


def best_by_search(word):
    """The pieces with the largest sum; of equal sums, the one whose last piece is longest, and so on to the front."""
    found = []
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        borders = [0, *(place for place, is_cut in enumerate(cuts, start=1) if is_cut), len(word)]
        texts = [word[a:b] for a, b in itertools.pairwise(borders)]
        if all(text in PIECES or len(text) == 1 for text in texts):
            score = sum(SCORES[PIECES.index(text)] if text in PIECES else PENALTY for text in texts)
            found.append((score, [len(text) for text in reversed(texts)], texts))
    return max(found)[2]


def joined(texts):
    """Ids and texts, where neighbouring unknown characters are one token."""
    ids = [PIECES.index(text) if text in PIECES else UNKNOWN for text in texts]
    runs = itertools.groupby(zip(ids, texts, strict=True), lambda part: part[0] if part[0] == UNKNOWN else object())
    for _, run in runs:
        same_ids, parts = zip(*run, strict=True)
        yield same_ids[0], "".join(parts)


@pytest.fixture(scope="module")
def best_path():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(PIECES, tf.range(len(PIECES))), default_value=UNKNOWN
    )
    scores = np.array([*SCORES, 0.0])
    scores[UNKNOWN] = PENALTY
    return BestPath(table.lookup, tf.constant(scores), max(map(len, PIECES)), UNKNOWN, OTHER)


def test_best_paths(best_path):
    draw = random.Random(11)
    words = ["▁" + "".join(draw.choices("aabé☃", k=draw.randrange(1, 9))) for _ in range(200)]
    tokens = best_path.encode(tf.constant(words))
    for index, word in enumerate(words):
        part = slice(tokens.row_splits[index], tokens.row_splits[index + 1])
        data = word.encode()
        found = [
            (int(token), data[start:end].decode())
            for token, start, end in zip(tokens.ids[part], tokens.starts[part], tokens.ends[part], strict=True)
        ]
        assert found == list(joined(best_by_search(word))), word


def best_in_float64(word, scores):
    """The lengths of the pieces as `tokenizers` finds them: sums of float64, the longest piece of equals."""
    best = [(0.0, 0)]
    for end in range(1, len(word) + 1):
        paths = []
        for start in range(max(0, end - max(map(len, PIECES))), end):
            text = word[start:end]
            if text in PIECES[1:] or len(text) == 1:
                index = PIECES.index(text) if text in PIECES else UNKNOWN
                paths.append((best[start][0] + scores[index], end - start))
        best.append(max(paths))
    return [length for _, length in best[1:]]


@pytest.mark.parametrize(("places", "candidates"), [(16, 2**20), (3, 64), (1, 1)], ids=str)
def test_words_of_any_length(places, candidates, best_path, monkeypatch):
    """Longer than the places of a step, and more than its words."""
    monkeypatch.setattr(sentence_pieces, "_PLACES", places)
    monkeypatch.setattr(sentence_pieces, "_CANDIDATES", candidates)
    draw = random.Random(5)
    scores = np.array([draw.uniform(-9, -1) for _ in range(len(PIECES) + 1)])
    scores[UNKNOWN] = scores.min() - BestPath.UNKNOWN_PENALTY
    path = BestPath(best_path._find, tf.constant(scores), max(map(len, PIECES)), UNKNOWN, OTHER)
    texts = ["▁" + "".join(draw.choices("aabé☃", k=draw.choice([0, 1, 5, 40]))) for _ in range(30)]
    characters = tf.strings.unicode_split(texts, "UTF-8")
    places = tf.ragged.range(tf.cast(characters.row_lengths(), tf.int32))
    _, lengths = path._last_pieces(characters, characters.value_rowids(), places.values)
    assert lengths.numpy().tolist() == [length for text in texts for length in best_in_float64(text, scores)]


def test_names_of_pieces_that_no_word_can_hold():
    assert piece_names(["a", "", "b\0", "<s>", "▁c"], [-1.0, -1.0, -2.0, None, -3.0]) == [
        "a",
        NEVER.format(1),
        NEVER.format(2),
        NEVER.format(3),
        "▁c",
    ]
