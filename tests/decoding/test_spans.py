import numpy as np
import pytest

from keras_bert_layers.decoding import choose_answers, decode_spans

# A float32 softmax, against float64.
FLOAT32 = 1e-6


def draw(seed):
    """Logits of up to 13 windows of up to 4 contexts, whose tokens are three bytes apart, and how to decode them."""
    generator = np.random.default_rng(seed)
    num_rows, sequence = generator.integers(1, 5), generator.integers(4, 14)
    rows = np.sort(np.append(np.arange(num_rows), generator.integers(0, num_rows, generator.integers(0, 9))))
    starts = np.full((len(rows), sequence), -1, np.int32)
    ends = starts.copy()
    for window in range(len(rows)):
        first = generator.integers(2, sequence)
        length, token = generator.integers(0, sequence - first + 1), generator.integers(0, 3)
        starts[window, first : first + length] = 3 * (token + np.arange(length))
        ends[window, first : first + length] = 3 * (token + np.arange(length)) + 2
    start_logits, end_logits = generator.normal(size=(2, *starts.shape)).astype("float32")
    contexts = ["".join(generator.choice(list("abcd"), 50)) for _ in range(num_rows)]
    options = {"num_best": int(generator.integers(1, 9)), "max_answer_length": int(generator.integers(1, 6))}
    return start_logits, end_logits, {"rows": rows.astype(np.int32), "starts": starts, "ends": ends}, contexts, options


def brute_force(start_logits, end_logits, windows, row, num_best, max_answer_length):
    """The best spans of one row, their probabilities, and those of no answer, one pair of tokens at a time."""
    found, none = {}, np.inf
    for window in np.flatnonzero(windows["rows"] == row):
        starts, ends = windows["starts"][window], windows["ends"][window]
        none = min(none, start_logits[window, 0] + end_logits[window, 0])
        for first in range(len(starts)):
            for last in range(first, min(first + max_answer_length, len(starts))):
                if starts[first] >= 0 and ends[last] >= 0:
                    span = int(starts[first]), int(ends[last])
                    score = start_logits[window, first] + end_logits[window, last]
                    found[span] = max(found.get(span, -np.inf), score)
    best = sorted(found.items(), key=lambda item: -item[1])[:num_best]
    scores = np.array([score for _, score in best] + [none], "float64")
    probabilities = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    return [span for span, _ in best], probabilities, none - best[0][1] if best else 1e9


@pytest.mark.parametrize("seed", range(12))
def test_brute_force(seed):
    start_logits, end_logits, windows, contexts, options = draw(seed)
    best = {
        name: tensor.numpy()
        for name, tensor in decode_spans(start_logits, end_logits, windows, contexts, **options).items()
    }
    for row, context in enumerate(contexts):
        spans, probabilities, score = brute_force(start_logits, end_logits, windows, row, **options)
        missing = options["num_best"] - len(spans)
        assert list(zip(best["start"][row], best["end"][row], strict=True)) == spans + [(-1, -1)] * missing
        assert best["answer"][row].tolist() == [context[a:b].encode() for a, b in spans] + [b""] * missing
        np.testing.assert_allclose(best["score"][row], [*probabilities[:-1], *[-1] * missing], atol=FLOAT32)
        np.testing.assert_allclose(best["no_answer_probability"][row], probabilities[-1], atol=FLOAT32)
        np.testing.assert_allclose(best["no_answer_score"][row], score, rtol=FLOAT32)


def test_a_span_in_two_windows_counts_once_with_its_better_score():
    windows = {"rows": [0, 0], "starts": [[-1, 0, 2], [-1, 2, 4]], "ends": [[-1, 1, 3], [-1, 3, 5]]}
    best = decode_spans([[0.0, 0, 3], [0, 1, 0]], [[0.0, 0, 3], [0, 1, 0]], windows, ["a b c"], num_best=9)
    assert best["answer"].numpy()[0].tolist().count(b"b") == 1
    assert best["answer"].numpy()[0, 0] == b"b"
    assert float(best["no_answer_score"][0]) == -6


def test_answers_are_bytes_of_the_context():
    context = "é\u0301 \x00 日本".encode() + b"\xff"
    windows = {"rows": [0], "starts": [[-1, 0, 5, 7]], "ends": [[-1, 2, 6, 14]]}
    best = decode_spans(np.zeros((1, 4)), [[0.0, 0, 1, 2]], windows, [context], num_best=6)
    assert set(best["answer"].numpy()[0]) == {context[a:b] for a in (0, 5, 7) for b in (2, 6, 14) if a < b}


def test_the_threshold_is_exceeded_or_not():
    windows = {"rows": [0, 1], "starts": [[-1, 0], [-1, 0]], "ends": [[-1, 2], [-1, 2]]}
    best = decode_spans([[2.0, 0], [0, 2]], [[0.0, 0], [0, 0]], windows, ["ab", "cd"], num_best=1)
    answers = {threshold: choose_answers(best, threshold) for threshold in (None, 1.5, 2.0)}
    assert [answer["answer"].numpy().tolist() for answer in answers.values()] == [
        [b"ab", b"cd"],
        [b"", b"cd"],
        [b"ab", b"cd"],
    ]
    none = answers[1.5]
    assert none["start"].numpy().tolist() == [-1, 0]
    assert none["end"].numpy().tolist() == [-1, 2]
    assert none["score"][0] == none["no_answer_probability"][0]


@pytest.mark.parametrize("threshold", [None, 1e6])
def test_a_context_without_tokens_has_no_answer(threshold):
    best = decode_spans([[5.0, 1, 1]], [[5.0, 1, 1]], {"rows": [0], "starts": [[-1] * 3], "ends": [[-1] * 3]}, [" "])
    answer = {name: tensor.numpy().tolist() for name, tensor in choose_answers(best, threshold).items()}
    assert answer == {"answer": [b""], "score": [1.0], "start": [-1], "end": [-1], "no_answer_probability": [1.0]}


def test_no_rows():
    empty = np.zeros((0, 5), "float32")
    offsets = np.zeros((0, 5), "int32")
    best = decode_spans(
        empty, empty, {"rows": np.zeros(0, "int32"), "starts": offsets, "ends": offsets}, [], num_best=3
    )
    assert best["answer"].shape == (0, 3)
    assert choose_answers(best, 0.0)["answer"].shape == (0,)


@pytest.mark.parametrize("option", ["num_best", "max_answer_length"])
def test_errors(option):
    windows = {"rows": [0], "starts": [[-1, 0]], "ends": [[-1, 1]]}
    with pytest.raises(ValueError, match=f"`decode_spans`: `{option}` must be at least 1. Received: {option}=0"):
        decode_spans([[0.0, 0]], [[0.0, 0]], windows, ["a"], **{option: 0})
