"""`WordSenses`: cosines in NumPy, the position of the word, and errors."""

import numpy as np
import pytest

from keras_bert_layers import BertBackbone
from keras_bert_layers.visualization import WordSenses

pytestmark = pytest.mark.usefixtures("traces_nothing")
TOLERANCE = 1e-5  # two ways through the same layers in float32


def cosine(one, other):
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def test_from_model(backbone, preprocessor):
    sentences = ["Unhappily a bad", "bad unhappily. bad", "night BAD", "Bad good bad"]
    speaking = BertBackbone(backbone.config, return_hidden_states=True)
    speaking.set_weights(backbone.get_weights())
    tokens = preprocessor.tokenizer
    vectors = []
    for sentence in sentences:
        ids = preprocessor([sentence])
        first = [tokens.id_to_token(int(token)) for token in np.asarray(ids["token_ids"])[0]].index("bad")
        vectors.append([np.asarray(state)[0, first] for state in speaking(ids)["hidden_states"]])
    picture = WordSenses.from_model(backbone, "bad", sentences, senses="xyxy", preprocessor=preprocessor)
    expected = [[[cosine(a[layer], b[layer]) for b in vectors] for a in vectors] for layer in range(3)]
    assert picture.cosines == pytest.approx(np.array(expected), abs=TOLERANCE)
    assert picture.title == "“bad” in 4 sentences"


def test_a_word_of_pieces_is_their_mean(backbone, preprocessor):
    speaking = BertBackbone(backbone.config, return_hidden_states=True)
    speaking.set_weights(backbone.get_weights())
    sentences = ["unhappily", "a unhappily"]
    vectors = []
    for first, sentence in enumerate(sentences, start=1):
        states = speaking(preprocessor([sentence]))["hidden_states"]
        vectors.append([np.asarray(state)[0, first:-1].mean(axis=0) for state in states])
    picture = WordSenses.from_model(backbone, "unhappily", sentences, preprocessor=preprocessor)
    expected = [cosine(one, other) for one, other in zip(*vectors, strict=True)]
    assert picture.curves["all pairs"] == pytest.approx(expected, abs=TOLERANCE)


def test_curves_within_senses_and_between():
    vectors = np.random.default_rng(3).normal(size=(5, 4, 7))
    senses = [1, 2, 1, 2, 1]
    picture = WordSenses("x", list("abcde"), vectors, senses=senses)
    for layer in range(4):
        found = {True: [], False: []}
        for one in range(5):
            for other in range(one):
                same = senses[one] == senses[other]
                found[same].append(cosine(vectors[one, layer], vectors[other, layer]))
        assert picture.curves["same sense"][layer] == pytest.approx(np.mean(found[True]))
        assert picture.curves["other sense"][layer] == pytest.approx(np.mean(found[False]))
    assert list(WordSenses("x", list("ab"), vectors[:2], senses="xx").curves) == ["same sense"]
    assert list(WordSenses("x", list("ab"), vectors[:2]).curves) == ["all pairs"]


def test_page():
    vectors = np.random.default_rng(3).normal(size=(3, 7, 5))
    page = WordSenses("x", ["the <x>", "an x", "x"], vectors, senses=["s", "t", "t"]).html()
    assert "the &lt;x&gt;" in page
    assert [layer for layer in range(7) if f"Layer {layer}: the cosine" in page] == [0, 3, 6]
    assert 'aria-label="mean cosine: same sense from' in page
    assert "nan" not in WordSenses("x", ["x", "x"], np.ones((2, 1, 3))).html()
    assert "sense</th>" not in WordSenses("x", ["x", "x"], np.zeros((2, 2, 3))).html()


def test_errors(backbone, preprocessor):
    with pytest.raises(ValueError, match="`WordSenses`: `sentences` must have 'bad' as a word.*'a film'"):
        WordSenses.from_model(backbone, "bad", ["bad film", "a film"], preprocessor=preprocessor)
    for vectors in (np.ones((1, 2, 3)), np.ones((2, 3)), np.ones((3, 2, 3))):
        with pytest.raises(ValueError, match=r"`vectors.shape` must be \(sentences, layers, hidden_dim\)"):
            WordSenses("x", ["a"] if len(vectors) == 1 else ["a", "b"], vectors)
    with pytest.raises(ValueError, match="`senses` must hold one sense for each of 2 sentences"):
        WordSenses("x", ["a", "b"], np.ones((2, 2, 3)), senses=["s"])
    with pytest.raises(TypeError, match="`model` must be a BertBackbone"):
        WordSenses.from_model("bert", "bad", ["bad"])
    with pytest.raises(TypeError, match="`WordSenses`: `word` must be a str"):
        WordSenses.from_model(backbone, 5, ["bad"], preprocessor=preprocessor)
