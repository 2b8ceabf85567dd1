import numpy as np
import pytest

from keras_bert_layers.decoding import decode_entities

TAG_NAMES = ["I-a", "O", "B-a", "B-long-name", "I-long-name"]
# The meaning of each tag, as a kind and a label, written by hand: B begins an entity, E ends it, S does both.
SCHEMES = {
    "bio": dict(zip(TAG_NAMES, ["I a", "", "B a", "B long-name", "I long-name"], strict=True)),
    "iob1": {"O": "", "I-a": "I a", "I-b": "I b", "B-b": "B b"},
    "io": {"O": "", "a": "I a", "b-c": "I b-c"},
    "bioes": {"B-a": "B a", "I-a": "I a", "E-a": "E a", "S-a": "S a", "O": "", "S-b": "S b", "X": "", "[PAD]": ""},
    "bilou": {"o": "", "b_a": "B a", "i_a": "I a", "l_a": "E a", "u_a": "S a", "u_b": "S b"},
    "suffixes": {"a-B": "B a", "a-I": "I a", "a-E": "E a", "a-S": "S a", "O": ""},
    "letters": {"B": "B entity", "I": "I entity", "O": ""},
    "labels": {"NOUN": "S NOUN", "VERB": "S VERB", "X": "S X"},
}
# Means of a few float32 numbers.
FLOAT32 = 1e-6


def entities_of(text, tags, scores, *, starts, ends, meanings):
    """One word after the other."""
    found, before = [], ""
    for tag, score, start, end in zip(tags, scores, starts, ends, strict=True):
        kind, _, label = (meanings[tag] if start >= 0 else "").partition(" ")
        if label and (kind in "BS" or label != before):
            found.append([label, start, end, [score]])
        elif label:
            found[-1][2] = end
            found[-1][3].append(score)
        before = "" if kind in ("E", "S") else label
    return [(label, text[start:end], start, end, np.mean(scores)) for label, start, end, scores in found]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_random_tags(scheme):
    names, meanings = list(SCHEMES[scheme]), list(SCHEMES[scheme].values())
    generator = np.random.default_rng(6)
    texts = [generator.integers(0, 256, 60).astype(np.uint8).tobytes() for _ in range(50)]
    edges = np.sort(np.stack([generator.choice(61, 22, replace=False) for _ in texts]), axis=1)
    starts, ends = edges[:, 0::2].copy(), edges[:, 1::2].copy()
    for row, num_words in enumerate(generator.integers(0, 12, len(texts))):
        starts[row, num_words:] = ends[row, num_words:] = -1
    tags, scores = generator.integers(0, len(names), starts.shape), generator.random(starts.shape)
    answer = decode_entities(texts, tags, scores=scores, starts=starts, ends=ends, tag_names=names)
    answer = {name: value.numpy() for name, value in answer.items()}
    rows = zip(texts, tags, scores, starts, ends, strict=True)
    expected = [entities_of(text, t, s, starts=a, ends=b, meanings=meanings) for text, t, s, a, b in rows]
    width = max(map(len, expected))
    assert {value.shape for value in answer.values()} == {(50, width)}
    for row, entities in enumerate(expected):
        size = len(entities)
        label, text, start, end, score = map(list, zip(*entities, strict=True)) if entities else ([],) * 5
        assert answer["entity_label"][row].tolist() == [name.encode() for name in label] + [b""] * (width - size)
        assert answer["entity_text"][row].tolist() == text + [b""] * (width - size)
        assert answer["entity_start"][row].tolist() == start + [-1] * (width - size)
        assert answer["entity_end"][row].tolist() == end + [-1] * (width - size)
        np.testing.assert_allclose(answer["entity_score"][row], score + [-1] * (width - size), atol=FLOAT32)


def test_a_long_text_of_many_entities():
    """No text is copied for each of its entities; 5,000 copies would be 5 GB here."""
    text = b"word " * 200_000
    starts = np.arange(0, len(text), 200)[None]
    tags = np.full_like(starts, 2)
    answer = decode_entities(
        [text, b"ab"],
        np.repeat(tags, 2, 0),
        scores=np.ones((2, starts.size)),
        starts=np.concatenate([starts, np.where(starts == 0, 1, -1)]),
        ends=np.concatenate([starts + 9, np.where(starts == 0, 99, -1)]),
        tag_names=TAG_NAMES,
    )
    assert set(answer["entity_text"].numpy()[0].tolist()) == {b"word word"}
    assert answer["entity_text"].numpy()[1, :2].tolist() == [b"b", b""]


@pytest.mark.parametrize("num_rows", [0, 3])
def test_nothing_found(num_rows):
    empty = np.full((num_rows, 2), -1)
    tags = np.full((num_rows, 2), 2)
    answer = decode_entities([b"a"] * num_rows, tags, scores=empty, starts=empty, ends=empty, tag_names=TAG_NAMES)
    assert {value.shape for value in answer.values()} == {(num_rows, 0)}


def test_scheme_is_given():
    answer = decode_entities(
        ["new york"], [[0, 0]], scores=[[1.0, 0.5]], starts=[[0, 4]], ends=[[3, 8]], tag_names=["X", "Y"], scheme="io"
    )
    assert answer["entity_text"].numpy().tolist() == [[b"new york"]]
    assert answer["entity_score"].numpy().tolist() == [[0.75]]


def test_errors():
    with pytest.raises(ValueError, match="`decode_entities`: `tag_names` must hold at least one name, each once"):
        decode_entities(["a"], [[0]], scores=[[1.0]], starts=[[0]], ends=[[1]], tag_names=["B-a", "B-a"])
