import numpy as np
import pytest

from keras_bert_layers._internal.tag_scheme import NO_TAG, check_tag_names, tag_scheme

BIO = ["I-a", "B-a", "O", "B-b", "I-b"]
BIOES = ["O", *(f"{letter}-{label}" for label in "ab" for letter in "BIES")]
IOB1 = ["O", "I-a", "B-a", "I-b", "B-b"]
IO = ["O", "a", "b"]


def scheme_of(names, scheme=None):
    return tag_scheme("Owner", names, scheme)


def test_arrays_of_bioes():
    found = scheme_of(["O", "B-a", "I-a", "E-a", "S-a", "S-b", "[PAD]"])
    assert found.name == "bioes"
    assert found.labels == ["a", "b"]
    assert found.label_ids.tolist() == [-1, 0, 0, 0, 0, 1, -1]
    assert found.begins.astype(int).tolist() == [0, 1, 0, 0, 1, 1, 0]
    assert found.ends.astype(int).tolist() == [0, 0, 0, 1, 1, 1, 0]
    assert found.outside == 0


def test_outside_is_missing():
    assert scheme_of(["NOUN", "VERB"]).outside == NO_TAG


@pytest.mark.parametrize(
    ("names", "scheme", "first", "inside", "last", "only", "second"),
    [
        (BIO, None, "B-a", "I-a", "I-a", "B-a", "B-a"),
        (BIOES, None, "B-a", "I-a", "E-a", "S-a", "S-a"),
        (["O", "B-a", "I-a", "L-a", "U-a"], None, "B-a", "I-a", "L-a", "U-a", "U-a"),
        (IOB1, "iob1", "I-a", "I-a", "I-a", "I-a", "B-a"),
        (IO, None, "a", "a", "a", "a", "a"),
        (["NOUN", "VERB"], None, "NOUN", "NOUN", "NOUN", "NOUN", "NOUN"),
        (["O", "I-a", "E-a"], None, "I-a", "I-a", "E-a", "E-a", "E-a"),
        (["O", "B-a"], None, "B-a", None, None, "B-a", "B-a"),
        (["O", "B-a", "I-a", "E-a"], "bioes", "B-a", "I-a", "E-a", "B-a", "B-a"),
    ],
)
def test_tags_of_spans(names, scheme, first, inside, last, only, second):
    """`second` is a span of one word right after another of its label."""
    table = scheme_of(names, scheme).of_spans[0]
    found = [table[place] for place in ((1, 0, 0), (0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1))]
    assert [None if tag == NO_TAG else names[tag] for tag in found] == [first, inside, last, only, second]


@pytest.mark.parametrize(
    ("names", "scheme", "tag", "parts"),
    [
        (BIO, None, "B-a", "B-a I-a I-a"),
        (BIO, None, "I-a", "I-a I-a I-a"),
        (BIO, None, "O", "O O O"),
        (BIOES, None, "S-a", "B-a I-a E-a"),
        (BIOES, None, "B-a", "B-a I-a I-a"),
        (BIOES, None, "E-b", "I-b I-b E-b"),
        (BIOES, None, "I-b", "I-b I-b I-b"),
        (IOB1, "iob1", "B-a", "B-a I-a I-a"),
        (IOB1, "iob1", "I-a", "I-a I-a I-a"),
        (IO, None, "b", "b b b"),
        (["NOUN", "VERB"], None, "VERB", "VERB VERB VERB"),
        (["O", "[PAD]", "B-a", "I-a"], None, "[PAD]", "[PAD] [PAD] [PAD]"),
    ],
)
def test_tags_of_parts_of_a_word(names, scheme, tag, parts):
    found = scheme_of(names, scheme)
    table = found.of_parts[names.index(tag)]
    tags = [int(table[place]) for place in ((1, 0), (0, 0), (0, 1))]
    assert [names[index] for index in tags] == parts.split()
    assert table[1, 1] == names.index(tag)
    # And back: the word's own tag from its first and its last part.
    assert names[found.of_whole[tags[0], tags[2]]] == tag


def test_parts_that_disagree_leave_the_first():
    table = scheme_of(BIOES).of_whole
    for first, last in [("B-a", "O"), ("B-a", "E-b"), ("S-a", "E-a"), ("O", "E-a"), ("B-a", "S-a")]:
        assert BIOES[table[BIOES.index(first), BIOES.index(last)]] == first


def allowed(names, scheme=None):
    table = scheme_of(names, scheme).may_follow
    return {
        before: {name for name, fits in zip(names, row, strict=True) if fits}
        for before, row in zip([*names, None], table, strict=True)
    }


def test_what_may_follow_in_bio():
    anywhere = {"O", "B-a", "B-b"}
    a, b = {*anywhere, "I-a"}, {*anywhere, "I-b"}
    assert allowed(BIO) == {None: anywhere, "O": anywhere, "B-a": a, "I-a": a, "B-b": b, "I-b": b}
    assert scheme_of(BIO).may_end.all()


def test_what_may_follow_in_iob1():
    """A "B-" only between two entities of a label."""
    anywhere = {"O", "I-a", "I-b"}
    a, b = {*anywhere, "B-a"}, {*anywhere, "B-b"}
    assert allowed(IOB1, "iob1") == {None: anywhere, "O": anywhere, "B-a": a, "I-a": a, "B-b": b, "I-b": b}
    assert scheme_of(IOB1, "iob1").may_end.all()


def test_what_may_follow_in_bioes():
    anywhere = {"O", "B-a", "S-a", "B-b", "S-b"}
    expected = dict.fromkeys((None, "O", "E-a", "S-a", "E-b", "S-b"), anywhere)
    expected |= {f"{letter}-{label}": {f"I-{label}", f"E-{label}"} for letter in "BI" for label in "ab"}
    assert allowed(BIOES) == expected
    assert [name for name, fits in zip(BIOES, scheme_of(BIOES).may_end, strict=True) if not fits] == [
        *("B-a", "I-a", "B-b", "I-b")
    ]


@pytest.mark.parametrize("names", [IO, ["NOUN", "VERB"], ["O", "I-a", "I-b"]])
def test_anything_may_follow(names):
    assert scheme_of(names).may_follow.all()
    assert scheme_of(names).may_end.all()


def test_names_may_be_any_sequence():
    assert check_tag_names("Owner", tuple(BIO)) == check_tag_names("Owner", np.array(BIO)) == BIO


def test_only_an_outside():
    found = scheme_of(["O"])
    assert found.labels == []
    assert (found.of_spans == NO_TAG).all()


@pytest.mark.parametrize("names", ["O", b"O", None, {"O", "B-a"}, ["O", 1]])
def test_what_is_no_list_of_strings(names):
    with pytest.raises(TypeError, match="`Owner`: `tag_names` must be a list of strings. Received: tag_names="):
        check_tag_names("Owner", names)


@pytest.mark.parametrize("names", [[], ["O", "B-a", "B-a"]])
def test_no_names_and_repeats(names):
    with pytest.raises(ValueError, match="`Owner`: `tag_names` must hold at least one name, each once. Received"):
        check_tag_names("Owner", names)
