"""Checked columns of words and tags; the tags of the model's words, against a check of one word at a time."""

import numpy as np
import pytest

from keras_bert_layers import BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import WordAligner
from keras_bert_layers.tag_scheme import tag_scheme
from keras_bert_layers.tasks.inputs.tags import (
    as_spans,
    as_tags,
    as_words,
    begins_given_word,
    ends_given_word,
    holds_words,
    tags_of_spans,
    tags_of_words,
)

NAMES = ["B-p", "O", "I-p", "B-q"]  # no I-q
SCHEME = tag_scheme("Owner", NAMES)
BIOES = ["O", "B-p", "I-p", "E-p", "S-p"]
IOB1 = ["O", "I-p", "B-p"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"new york ##ark ' s don t @ user in .".split()]


@pytest.fixture(scope="module")
def aligner():
    return WordAligner(BertPreprocessor(BertTokenizer(VOCABULARY), max_length=6))


def named(tags, names=NAMES):
    return [[names[tag] if tag >= 0 else {-100: "-"}[tag] for tag in row] for row in tags.numpy().tolist()]


def test_tags_of_words(aligner):
    words = [["in", "Newark's", "@user", "."], [], ["don't", "don't"]]
    tags = [["O", "B-p", "I-p", "O"], [], ["B-q", "O"]]
    word_ids = aligner.align(tf.ragged.constant(words)).word_ids
    expected = [
        ["O", "B-p", "I-p", "I-p", "I-p", "I-p", "O"],
        ["-"] * 7,
        ["B-q", "-", "-", "O", "O", "O", "-"],
    ]
    ids = [[NAMES.index(tag) for tag in row] for row in tags]
    for given in (tf.ragged.constant(tags), tf.ragged.constant(ids), tf.ragged.constant(ids, tf.int64)):
        assert named(tags_of_words("Owner", given, word_ids, NAMES, SCHEME)) == expected
    assert begins_given_word(word_ids).numpy().astype(int).tolist() == [
        [1, 1, 0, 0, 1, 0, 1],
        [0] * 7,
        [1, 0, 0, 1, 0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("names", "scheme", "tags", "expected"),
    [
        (BIOES, None, "S-p B-p E-p O", "B-p I-p E-p B-p I-p I-p I-p E-p O"),
        (IOB1, "iob1", "I-p B-p I-p O", "I-p I-p I-p B-p I-p I-p I-p I-p O"),
        (["NOUN", "VERB", "X"], None, "NOUN VERB X X", "NOUN NOUN NOUN VERB VERB VERB X X X"),
        (["p", "O"], None, "p p O O", "p p p p p p O O O"),
    ],
)
def test_tags_of_words_of_other_schemes(aligner, names, scheme, tags, expected):
    word_ids = aligner.align(tf.ragged.constant([["Newark's", "don't", "'s", "."]])).word_ids
    found = tags_of_words(
        "Owner", tf.ragged.constant([tags.split()]), word_ids, names, tag_scheme("Owner", names, scheme)
    )
    assert named(found, names) == [expected.split()]
    assert ends_given_word(word_ids).numpy().astype(int).tolist() == [[0, 0, 1, 0, 0, 1, 0, 1, 1]]


@pytest.mark.parametrize(
    ("names", "scheme", "expected"),
    [
        (BIOES, None, "O S-p S-p B-p E-p B-p I-p E-p"),
        (IOB1, "iob1", "O I-p B-p B-p I-p B-p I-p I-p"),
        (["O", "p"], None, "O p p p p p p p"),
        (["p", "q"], None, "- p p p p p p p"),
    ],
)
def test_tags_of_spans_of_other_schemes(aligner, names, scheme, expected):
    texts = tf.constant(["in new new new york don't"])
    spans = spans_of([[(3, 6, "p"), (7, 10, "p"), (11, 19, "p"), (20, 25, "p")]])
    found = tags_of_spans("Owner", texts, spans, aligner.align(texts), tag_scheme("Owner", names, scheme))
    assert named(found, names) == [expected.split()]


def test_words_may_go_without_a_tag(aligner):
    word_ids = aligner.align(tf.ragged.constant([["in", "don't"]])).word_ids
    assert named(tags_of_words("Owner", tf.ragged.constant([[1, -100]]), word_ids, NAMES, SCHEME)) == [["O", *"---"]]


def test_wrong_tags_in_graph(aligner):
    word_ids = aligner.align(tf.ragged.constant([["in", "don't"]])).word_ids
    for tags, text in [
        (tf.ragged.constant([[1]]), "`Owner`: there must be one tag for each word"),
        (tf.ragged.constant([[1, 4]]), "`Owner`: every tag must be one of .*, or an index into this list"),
        (tf.ragged.constant([["O", "I-q"]]), "`Owner`: every tag must be one of"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tags_of_words("Owner", tags, word_ids, NAMES, SCHEME)


def spans_of(rows):
    return tuple(
        tf.ragged.constant([[span[part] for span in row] for row in rows], dtype, ragged_rank=1)
        for part, dtype in enumerate((tf.int32, tf.int32, tf.string))
    )


def test_tags_of_spans(aligner):
    texts = ["Ünew 😀 in new york.", "new york new york", "don't", "", "in new"]
    rows = [
        [(5, 6, "q"), (10, 18, "p")],
        [(0, 3, "p"), (4, 8, "p"), (9, 17, "p")],
        [(1, 2, "p")],  # a part of a word is the word
        [],
        [],
    ]
    words = aligner.align(texts)
    found = tags_of_spans("Owner", tf.constant(texts), spans_of(rows), words, SCHEME)
    assert named(found) == [
        ["O", "B-q", "O", "B-p", "I-p", "O"],
        ["B-p", "B-p", "B-p", "I-p", "-", "-"],
        ["B-p", "O", "O", "-", "-", "-"],
        ["-"] * 6,
        ["O", "O", "-", "-", "-", "-"],
    ]


def test_random_spans(aligner):
    """Characters of one to four bytes; spans that begin and end anywhere."""
    generator = np.random.default_rng(2)
    texts, rows = [], []
    for _ in range(40):
        text = "".join(generator.choice(list("new  in.é😀'中"), 30))
        edges = np.sort(generator.choice(31, 2 * generator.integers(0, 5), replace=False)).tolist()
        texts.append(text)
        rows.append([(start, end, "p") for start, end in zip(edges[0::2], edges[1::2], strict=True)])
    words = aligner.align(texts)
    found = named(tags_of_spans("Owner", tf.constant(texts), spans_of(rows), words, SCHEME))
    for text, spans, tags, starts, ends in zip(
        texts, rows, found, words.starts.numpy(), words.ends.numpy(), strict=True
    ):
        before = None
        for tag, start, end in zip(tags, starts, ends, strict=True):
            inside = [
                number
                for number, (first, last, _) in enumerate(spans)
                if start < len(text[:last].encode()) and end > len(text[:first].encode())
            ][:1]
            expected = "O" if not inside else "I-p" if inside == before else "B-p"
            assert tag == ("-" if start < 0 else expected)
            before = inside


@pytest.mark.parametrize("spans", [[(4, 8), (0, 3)], [(0, 3), (2, 6)], [(3, 3)], [(-1, 3)]], ids=str)
def test_wrong_spans_in_graph(aligner, spans):
    rows = [[(*span, "p") for span in spans]]
    texts = tf.constant(["new york"])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`Owner`: the spans of a text must not be empty, and come in"
    ):
        tags_of_spans("Owner", texts, spans_of(rows), aligner.align(texts), SCHEME)


def test_a_span_beyond_its_text_ends_with_it(aligner):
    texts = tf.constant(["", "new york", "in new york"])
    spans = spans_of([[(0, 9, "p")], [(4, 99, "p")], [(3, 6, "p"), (7, 12, "p")]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not be empty"):
        tags_of_spans("Owner", texts, spans, aligner.align(texts), SCHEME)
    spans = tuple(part[1:] for part in spans)
    found = named(tags_of_spans("Owner", texts[1:], spans, aligner.align(texts[1:]), SCHEME))
    assert found == [["O", "B-p", "-"], ["O", "B-p", "B-p"]]


def test_many_spans_of_a_long_text(aligner):
    """A copy of the text for each span would be 4 GB."""
    count = 20_000
    spans = [[(10 * place, 10 * place + 3, "p") for place in range(count)]]
    texts = tf.constant(["new york  " * count])
    words = aligner.align(texts)
    (found,) = named(tags_of_spans("Owner", texts, spans_of(spans), words, SCHEME))
    assert found == ["B-p", "O"] * count


def test_unknown_label_in_graph(aligner):
    texts = tf.constant(["new york"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`Owner`: every label must be one of \['p', 'q'\]"):
        tags_of_spans("Owner", texts, spans_of([[(0, 3, "r")]]), aligner.align(texts), SCHEME)


GIVEN_NAMES = ["O", "B-p", "I-p"]
WORDS = [["new", "york"], [], ["in"]]
TAGS = [["B-p", "I-p"], [], ["O"]]


def as_pandas(values):
    return pytest.importorskip("pandas").Series(values)


def as_objects(values):
    column = np.empty(len(values), object)
    column[:] = [np.array(value) for value in values]
    return column


KINDS = [list, as_objects, as_pandas, lambda rows: [tuple(row) for row in rows]]


@pytest.mark.parametrize("kind", KINDS, ids=["lists", "arrays", "pandas", "tuples"])
def test_kinds_of_words_and_tags(kind):
    assert holds_words(kind(WORDS))
    words = as_words("Owner", kind(WORDS))
    assert words.to_list() == [[b"new", b"york"], [], [b"in"]]
    for tags in (TAGS, [[1, 2], [], [0]]):
        assert as_tags("Owner", kind(tags), words, GIVEN_NAMES).to_list() == [[1, 2], [], [0]]
    assert as_tags("Owner", [[b"B-p", np.int64(2)], [], ["O"]], words, GIVEN_NAMES).to_list() == [
        [1, 2],
        [],
        [0],
    ]
    assert as_tags("Owner", [[1, -100], [], ["O"]], words, GIVEN_NAMES).to_list() == [[1, -100], [], [0]]


def test_ragged_tensors_stay_as_they_are():
    words, tags = tf.ragged.constant(WORDS), tf.ragged.constant(TAGS)
    assert holds_words(words)
    assert as_words("Owner", words) is words
    assert as_tags("Owner", tags, words, GIVEN_NAMES) is tags


@pytest.mark.parametrize("x", [["a", "b"], np.array(["a"]), tf.constant(["a"]), [], "ab", [b"a"], as_pandas(["a"])])
def test_texts_are_not_words(x):
    assert not holds_words(x)


def test_datasets_of_words():
    words = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(WORDS)).batch(2)
    assert holds_words(words)
    assert holds_words(words.map(lambda row: (row, row)))
    assert not holds_words(tf.data.Dataset.from_tensors(["a"]))


def test_spans_are_put_in_order():
    spans = as_spans("Owner", [[(4, 8, "p"), [0, np.int64(3), "p"]], []], ["new york", "in"], ["p"])
    assert [part.to_list() for part in spans] == [[[0, 4], []], [[3, 8], []], [[b"p", b"p"], []]]
    assert as_spans("Owner", spans, ["new york", "in"], ["p"]) is spans


def test_spans_count_characters_of_bytes_too():
    starts, ends, _ = as_spans("Owner", [[(1, 5, "p")]], ["éYork".encode()], ["p"])
    assert (starts.to_list(), ends.to_list()) == ([[1]], [[5]])


@pytest.mark.parametrize(
    ("spans", "error", "text"),
    [
        ([[], 5], TypeError, r"spans must be a list of \(start, end, label\) for each text. Received: 5 in row 1"),
        ([[], [(0, 2)]], TypeError, r"every span must be .* two integers and a string. Received: \(0, 2\) in row 1"),
        ([[], [(0.0, 2, "p")]], TypeError, r"every span must be .* Received: \(0.0, 2, 'p'\) in row 1"),
        ([[], [(0, 2, "r")]], ValueError, r"every label must be one of \['p'\]. Received: \(0, 2, 'r'\) in row 1"),
        (
            [[], [(0, 3, "p")]],
            ValueError,
            r"every span must lie in its text of 2 characters and not be empty. .* row 1",
        ),
        ([[(3, 3, "p")], []], ValueError, "every span must lie in its text of 8 characters and not be empty. .* row 0"),
        ([[(3, 4, "p")], []], ValueError, "every span must hold more than whitespace. .* row 0"),
        ([[(3, 8, "p"), (0, 4, "p")], []], ValueError, r"spans must not overlap. Received: \[\(0, 4, 'p'\), \(3, 8"),
        ([["O"], ["O"]], TypeError, r"every span must .* For one tag per word, `x` must be lists of words: `text.spl"),
        (
            ["O", "O"],
            TypeError,
            "spans must be a list of .* For one tag per word, `x` must be lists of words: `text.sp",
        ),
        ([[]], ValueError, "`y` must have one row for each row of x. Received: 1 and 2"),
        ("ab", TypeError, "`y` must be a list with one row for each row of x"),
    ],
)
def test_wrong_spans(spans, error, text):
    with pytest.raises(error, match=f"`Owner`: {text}"):
        as_spans("Owner", spans, ["new york", "in"], ["p"])


@pytest.mark.parametrize(
    ("tags", "error", "text"),
    [
        ([["O", "O"], [], "O"], TypeError, "tags must be a list for each row of words. Received: 'O' in row 2. Write"),
        (
            [["O", "O"], ["O"], ["O"]],
            ValueError,
            "there must be one tag for each word. Received: 0 words and 1 tags in row 1",
        ),
        ([["O", "B-q"], [], ["O"]], ValueError, r"every tag must be one of .* Received: 'B-q' at word 1 of row 0"),
        ([["O", 3], [], ["O"]], ValueError, "every tag must be one of .* Received: 3 at word 1 of row 0"),
        ([["O", None], [], ["O"]], ValueError, "every tag must be one of .* Received: None at word 1 of row 0"),
        ([["O", True], [], ["O"]], ValueError, "every tag must be one of .* Received: True at word 1 of row 0"),
        ([["O", "O"], []], ValueError, "`y` must have one row for each row of x. Received: 2 and 3"),
    ],
)
def test_wrong_tags(tags, error, text):
    with pytest.raises(error, match=f"`Owner`: {text}"):
        as_tags("Owner", tags, as_words("Owner", WORDS), GIVEN_NAMES)


def test_half_of_a_character():
    with pytest.raises(ValueError, match="texts must be valid Unicode. Received: .* at character 3 of row 1"):
        as_words("Owner", [["a"], ["b", "c\ud83d"]])


@pytest.mark.parametrize("row", ["york", ["york", None], ["york", 5], None])
def test_wrong_words(row):
    with pytest.raises(TypeError, match="`Owner`: words must be a list of strings. Received: .* in row 1"):
        as_words("Owner", [["new"], row])
