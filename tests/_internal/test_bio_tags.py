import pytest

from keras_bert_layers._internal import bio_tags

NAMES = ["I-a", "B-a", "O", "B-b", "I-b"]


def test_what_may_follow():
    allowed = {previous: {tag for tag in NAMES if bio_tags.may_follow(previous, tag)} for previous in (None, *NAMES)}
    anywhere = {"O", "B-a", "B-b"}
    assert allowed == {
        None: anywhere,
        "O": anywhere,
        "B-a": {*anywhere, "I-a"},
        "I-a": {*anywhere, "I-a"},
        "B-b": {*anywhere, "I-b"},
        "I-b": {*anywhere, "I-b"},
    }


def test_labels():
    assert [bio_tags.label_of(tag) for tag in ("B-creative-work", "I-a", "O", "B-", "Base", "")] == [
        *("creative-work", "a", "", "", "", "")
    ]


def test_good_names_pass():
    assert bio_tags.check_tag_names("Owner", tuple(NAMES)) == NAMES
    assert bio_tags.check_tag_names("Owner", ["B-a", "O"]) == ["B-a", "O"]


@pytest.mark.parametrize("names", ["O", b"O", None, {"O", "B-a"}, ["O", 1]])
def test_what_is_no_list_of_strings(names):
    with pytest.raises(TypeError, match="`Owner`: `tag_names` must be a list of strings. Received: tag_names="):
        bio_tags.check_tag_names("Owner", names)


@pytest.mark.parametrize("names", [[], ["O"], ["B-a", "I-a"], ["O", "B-a", "B-a"]])
def test_lists_without_an_outside_or_with_repeats(names):
    with pytest.raises(ValueError, match='`Owner`: `tag_names` must hold "O" and at least one other name, each once'):
        bio_tags.check_tag_names("Owner", names)


@pytest.mark.parametrize("name", ["a", "B-", "b-a", "S-a", ""])
def test_names_of_another_form(name):
    with pytest.raises(
        ValueError, match=f"""must hold "O" and names such as .* Received: tag_names='{name}'. Convert"""
    ):
        bio_tags.check_tag_names("Owner", ["O", name])


def test_an_entity_that_cannot_begin():
    with pytest.raises(ValueError, match='must hold a "B-" for each "I-".*Add \'B-b\'; every entity starts with one'):
        bio_tags.check_tag_names("Owner", ["O", "B-a", "I-b"])
