import numpy as np
import pytest

from keras_bert_layers.decoding import decode_entities

TAG_NAMES = ["I-a", "O", "B-a", "B-long-name", "I-long-name"]
# Means of a few float32 numbers.
FLOAT32 = 1e-6


def entities_of(text, tags, scores, *, starts, ends):
    """One word after the other."""
    found, before = [], ""
    for tag, score, start, end in zip(tags, scores, starts, ends, strict=True):
        name = TAG_NAMES[tag] if start >= 0 else "O"
        label = name[2:]
        if label and (name[0] == "B" or label != before):
            found.append([label, start, end, [score]])
        elif label:
            found[-1][2] = end
            found[-1][3].append(score)
        before = label
    return [(label, text[start:end], start, end, np.mean(scores)) for label, start, end, scores in found]


def test_random_tags():
    generator = np.random.default_rng(6)
    texts = [generator.integers(0, 256, 60).astype(np.uint8).tobytes() for _ in range(50)]
    edges = np.sort(np.stack([generator.choice(61, 22, replace=False) for _ in texts]), axis=1)
    starts, ends = edges[:, 0::2].copy(), edges[:, 1::2].copy()
    for row, num_words in enumerate(generator.integers(0, 12, len(texts))):
        starts[row, num_words:] = ends[row, num_words:] = -1
    tags, scores = generator.integers(0, 5, starts.shape), generator.random(starts.shape)
    answer = decode_entities(texts, tags, scores=scores, starts=starts, ends=ends, tag_names=TAG_NAMES)
    answer = {name: value.numpy() for name, value in answer.items()}
    rows = zip(texts, tags, scores, starts, ends, strict=True)
    expected = [entities_of(text, t, s, starts=a, ends=b) for text, t, s, a, b in rows]
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


def test_errors():
    with pytest.raises(ValueError, match='`decode_entities`: `tag_names` must hold "O"'):
        decode_entities(["a"], [[0]], scores=[[1.0]], starts=[[0]], ends=[[1]], tag_names=["B-a", "I-a"])
