import numpy as np
import pytest

from keras_bert_layers.tag_scheme import NO_TAG, bio_tag_names, check_tag_names, parse_tags, tag_scheme

BIO = ["I-a", "B-a", "O", "B-b", "I-b"]
BIOES = ["O", *(f"{letter}-{label}" for label in "ab" for letter in "BIES")]
IOB1 = ["O", "I-a", "B-a", "I-b", "B-b"]
IO = ["O", "a", "b"]


# Names, the scheme that is inferred from them, and what each means: a kind and a label.
CASES = {
    "bio": ("O B-per I-per B-creative-work I-creative-work", "bio", "O Bper Iper Bcreative-work Icreative-work"),
    "other order": ("I-a O B-a", "bio", "Ia O Ba"),
    "one label without I": ("O B-a B-b I-b", "bio", "O Ba Bb Ib"),
    "no B for a label": ("O I-a B-b I-b", "iob1", "O Ia Bb Ib"),
    "IO": ("O I-a I-b", "io", "O Ia Ib"),
    "plain": ("O PER LOC", "io", "O IPER ILOC"),
    "plain with a dash": ("O creative-work", "io", "O Icreative-work"),
    "BIOES": ("O B-a I-a E-a S-a", "bioes", "O Ba Ia Ea Sa"),
    "BIOES, a label of single words": ("O B-a I-a E-a S-a S-b", "bioes", "O Ba Ia Ea Sa Sb"),
    "BMES": ("B-a M-a E-a S-a O", "bioes", "Ba Ia Ea Sa O"),
    "IOE": ("O I-a E-a", "bioes", "O Ia Ea"),
    "BILOU": ("O B-a I-a L-a U-a", "bilou", "O Ba Ia Ea Sa"),
    "suffixes": ("O PER-B PER-I ORG-B ORG-I", "bio", "O BPER IPER BORG IORG"),
    "suffixes of BIOES": ("a_B a_I a_E a_S O", "bioes", "Ba Ia Ea Sa O"),
    "underscores": ("O B_PER I_PER", "bio", "O BPER IPER"),
    "lower case": ("o b-per i-per", "bio", "O Bper Iper"),
    "a small o alone": ("o per loc", "io", "O Iper Iloc"),
    "letters": ("B I O", "bio", "Bentity Ientity O"),
    "segmentation": ("B M E S", "bioes", "Bentity Ientity Eentity Sentity"),
    "special tokens": ("[PAD] O B-a I-a X [CLS] [SEP]", "bio", "O O Ba Ia O O O"),
    "a label PAD": ("PAD O B-a I-a", "bio", "O O Ba Ia"),
    "X among labels": ("O X Y", "io", "O IX IY"),
    "a plain label too": ("O B-a I-a MISC", "bio", "O Ba Ia IMISC"),
    "no O": ("B-a I-a", "bio", "Ba Ia"),
    "label_n": ("LABEL_0 LABEL_1 LABEL_2", "labels", "WLABEL_0 WLABEL_1 WLABEL_2"),
    "part of speech": ("NOUN VERB X PUNCT", "labels", "WNOUN WVERB WX WPUNCT"),
    "part of speech, letters": ("a b d e i m n o s u", "labels", "Wa Wb Wd We Wi Wm Wn Wo Ws Wu"),
    "labels like tags": ("O E-mail phone street", "io", "O IE-mail Iphone Istreet"),
    "vitamins": ("VITAMIN-B IRON ZINC", "labels", "WVITAMIN-B WIRON WZINC"),
}


@pytest.mark.parametrize("case", CASES)
def test_scheme_is_found(case):
    names, scheme, meanings = CASES[case]
    found, tags = parse_tags("Owner", names.split(), None)
    assert (found, " ".join(kind + label if kind else "O" for kind, label in tags)) == (scheme, meanings)


@pytest.mark.parametrize(
    ("names", "scheme", "meanings"),
    [
        ("O B-a I-a", "iob1", "O Ba Ia"),
        ("O B-a I-a", "io", "O Ia Ia"),
        ("O B-a I-a", "labels", "WO WB-a WI-a"),
        ("NOUN VERB", "io", "INOUN IVERB"),
        ("O I-95 U-boat", "bilou", "O I95 Sboat"),
        ("O B-a I-a S-bahn", "bio", "O Ba Ia IS-bahn"),
    ],
)
def test_scheme_is_given(names, scheme, meanings):
    found, tags = parse_tags("Owner", names.split(), scheme)
    assert (found, " ".join(kind + label if kind else "O" for kind, label in tags)) == (scheme, meanings)


def test_unknown_scheme():
    with pytest.raises(ValueError, match="`Owner`: `scheme` must be one of .*'bio', 'iob1', .* Received: scheme='iob'"):
        parse_tags("Owner", ["O"], "iob")


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
    table = scheme_of(names, scheme).span_tags[0]
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
    table = found.part_tags[names.index(tag)]
    tags = [int(table[place]) for place in ((1, 0), (0, 0), (0, 1))]
    assert [names[index] for index in tags] == parts.split()
    assert table[1, 1] == names.index(tag)
    # And back: the word's own tag from its first and its last part.
    assert names[found.whole_tags[tags[0], tags[2]]] == tag


def test_parts_that_disagree_leave_the_first():
    table = scheme_of(BIOES).whole_tags
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
    """A "B-" only between two entities of the same label."""
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


def test_bio_names_of_labels():
    names = bio_tag_names(["a", "b"])
    assert names == ["O", "B-a", "I-a", "B-b", "I-b"]
    assert scheme_of(names).name == "bio"


def test_names_may_be_any_sequence():
    assert check_tag_names("Owner", tuple(BIO)) == check_tag_names("Owner", np.array(BIO)) == BIO


def test_only_an_outside():
    found = scheme_of(["O"])
    assert found.labels == []
    assert (found.span_tags == NO_TAG).all()


@pytest.mark.parametrize("names", ["O", b"O", None, {"O", "B-a"}, ["O", 1]])
def test_what_is_not_a_list_of_strings(names):
    with pytest.raises(TypeError, match="`Owner`: `tag_names` must be a list of strings. Received: tag_names="):
        check_tag_names("Owner", names)


@pytest.mark.parametrize("names", [[], ["O", "B-a", "B-a"]])
def test_no_names_and_repeats(names):
    with pytest.raises(ValueError, match="`Owner`: `tag_names` must hold at least one name, each once. Received"):
        check_tag_names("Owner", names)
