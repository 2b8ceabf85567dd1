import numpy as np
import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import SpanPreprocessor
from keras_bert_layers.tasks.feeding.epochs import RowOrder
from keras_bert_layers.tasks.inputs import answer_spans

OWNER = "BertQuestionAnswerer"
CONTEXT = "Ünhappy film — 日本 😀 good night , a bad bad film"


@pytest.fixture(scope="module")
def preprocessor(vocabulary):
    return SpanPreprocessor(BertTokenizer(vocabulary), max_length=9, stride=2)


@pytest.mark.parametrize(
    "y",
    [
        ([3, -1, 0], ["film", "", "a"]),
        (np.array([3, 7, 0]), np.array(["film", "", "a"])),
        (tf.constant([3, 7, 0]), tf.constant(["film", "", "a"])),
        ([[3, 9], [], [0]], [["film", "night"], [], ["a"]]),
        ([3, None, 0], ["film", None, "a"]),
        [{"answer_start": 3, "text": "film"}, None, {"answer_start": 0, "text": "a"}],
        [
            {"answer_start": [3, 5], "text": ["film", "x"]},
            {"answer_start": [], "text": []},
            {"answer_start": [0], "text": ["a"]},
        ],
        [
            [{"answer_start": 3, "text": "film"}, {"answer_start": 9, "text": "a"}],
            [],
            [{"answer_start": 0, "text": "a"}],
        ],
    ],
)
def test_answers_in_every_form(y):
    starts, texts = answer_spans.answer_columns(OWNER, y)
    assert starts.dtype == np.int64
    assert starts.tolist() == [3, -1, 0]
    assert [text.decode() if isinstance(text, bytes) else text for text in texts] == ["film", "", "a"]
    again = answer_spans.answer_columns(OWNER, (starts, texts))
    assert (again[0].tolist(), again[1].tolist()) == (starts.tolist(), texts.tolist())


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (([0, 1.5], ["a", "film"]), r"an integer, and a text. Received: 1.5 and 'film' in row 1"),
        (([0, True], ["a", "film"]), "Received: True and 'film' in row 1"),
        (([0, 1], ["a", 7]), "Received: 1 and 7 in row 1"),
        ([{"answer_start": 0, "text": "a"}, {"start": 1}], "Received: None and {'start': 1} in row 1"),
        ([None, 3], "Received: None and 3 in row 1"),
    ],
)
def test_answers_in_no_form(y, message):
    with pytest.raises(TypeError, match=message):
        answer_spans.answer_columns(OWNER, y)


@pytest.mark.parametrize("y", [([0], ["a", "b"]), ([0], ["a"], ["b"])])
def test_answers_in_other_columns(y):
    with pytest.raises(ValueError, match=r"`y` must be a tuple of two equally long columns, \(answer starts, answer"):
        answer_spans.answer_columns(OWNER, y)


@pytest.mark.parametrize("text", ["Ü", "Ünhappy", "日本", "😀", "good night", "film", CONTEXT])
def test_characters_become_bytes(text):
    start = CONTEXT.index(text)
    spans = answer_spans.check_byte_spans(OWNER, [CONTEXT], ([start], [text]))
    assert (spans.dtype, spans.shape) == (np.int32, (1, 2))
    assert CONTEXT.encode()[slice(*spans[0])].decode() == text


def test_no_answer_is_nowhere():
    assert answer_spans.check_byte_spans(OWNER, ["a film", ""], ([5, -1], ["", ""])).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("start", "text", "cure"),
    [
        (1, "film", "Its first occurrence is at 8"),
        (-1, "film", "Its first occurrence is at 8"),
        (900, "cat", "The context does not contain it"),
    ],
)
def test_an_answer_that_is_not_there(start, text, cure):
    with pytest.raises(ValueError, match=f"Received: '{text}' at {start} in row 1, where the context has .*. {cure}"):
        answer_spans.check_byte_spans(OWNER, ["a film", CONTEXT], ([2, start], ["film", text]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="the context must contain each answer at its start"):
        answer_spans.check_byte_spans_in_graph(
            OWNER, tf.constant([CONTEXT]), (tf.constant([start]), tf.constant([text]))
        )


def test_other_numbers_of_rows():
    with pytest.raises(ValueError, match="one row for each question. Received: 2 questions and 1 rows of y"):
        answer_spans.check_byte_spans(OWNER, ["a", "b"], ([0], ["a"]))


def test_answers_of_a_dataset_in_another_form():
    with pytest.raises(ValueError, match=r"`y` must be a tuple of two, \(answer starts, answer texts\)"):
        answer_spans.check_byte_spans_in_graph(OWNER, tf.constant(["a"]), tf.constant([0]))


def expected_labels(windows, window, whole, span):
    """First and last place of an answer in a window that holds all of its tokens, else 0 and 0."""
    tokens = list(zip(windows["starts"][window].tolist(), windows["ends"][window].tolist(), strict=True))
    wanted = [token for token in whole if token[1] > span[0] and token[0] < span[1]]
    if not wanted or not set(wanted) <= set(tokens):
        return 0, 0
    return tokens.index(wanted[0]), tokens.index(wanted[-1])


def test_labels_of_windows(preprocessor):
    """Every answer of one, three or five characters of a text, in every window of it."""
    spans = [(a, b) for a in range(len(CONTEXT)) for b in range(a + 1, min(a + 6, len(CONTEXT) + 1), 2)]
    answers = ([a for a, _ in spans], [CONTEXT[a:b] for a, b in spans])
    in_bytes = answer_spans.check_byte_spans(OWNER, [CONTEXT] * len(spans), answers)
    outputs = preprocessor((["good ?"] * len(spans), [CONTEXT] * len(spans)))
    labels = answer_spans.window_labels(outputs, tf.constant(in_bytes))
    windows = {name: tensor.numpy() for name, tensor in outputs.items()}
    _, starts, ends = preprocessor.tokenizer.tokenize_with_offsets(CONTEXT)
    whole = list(zip(starts.numpy().tolist(), ends.numpy().tolist(), strict=True))
    found = list(zip(*(labels[side].numpy().tolist() for side in ("start_logits", "end_logits")), strict=True))
    assert found == [
        expected_labels(windows, window, whole, in_bytes[row]) for window, row in enumerate(windows["rows"])
    ]
    assert 0 < sum(label == (0, 0) for label in found) < len(found)


@pytest.mark.parametrize("sizes", [[3, 1, 4, 2, 2], [1] * 12])
@pytest.mark.parametrize("order", [RowOrder.AS_GIVEN, RowOrder.SHUFFLED])
def test_steps_have_one_size(sizes, order, make_epochs):
    places = np.split(np.arange(12), np.cumsum(sizes)[:-1])
    batches = tf.data.Dataset.from_generator(lambda: places, output_signature=tf.TensorSpec([None], tf.int64))
    steps = list(answer_spans.as_steps(batches, 5, make_epochs(order=order)).as_numpy_iterator())
    assert [len(step) for step in steps] == [5, 5, 2]
    seen = np.concatenate(steps).tolist()
    assert (seen if order is RowOrder.AS_GIVEN else sorted(seen)) == list(range(12))
