"""Class names, and which kind of labels a problem type has."""

import re

import numpy as np
import pytest

from keras_bert_layers.tasks.labels import MultiLabel, Regression, SingleLabel, make_labels
from keras_bert_layers.tasks.labels.classes import Classes

NAMES = ["good", "bad", "night"]


def make(problem_type, num_classes=None, class_names=None, threshold=None):
    return make_labels(problem_type, num_classes, class_names=class_names, threshold=threshold)


@pytest.mark.parametrize(
    ("problem_type", "kind"),
    [
        ("single_label_classification", SingleLabel),
        ("multi_label_classification", MultiLabel),
        ("regression", Regression),
    ],
)
def test_each_problem_type_has_its_labels(problem_type, kind):
    assert type(make(problem_type, 3)) is kind


def test_names_give_the_number_of_classes():
    classes = Classes(None, NAMES)
    assert (classes.num_classes, classes.class_names, classes.answers) == (3, NAMES, NAMES)
    assert classes.class_names is not NAMES
    assert classes.known_names() == NAMES


def test_classes_without_names_answer_their_indices():
    classes = Classes(3, None)
    assert (classes.num_classes, classes.class_names, classes.answers) == (3, None, ["0", "1", "2"])


def test_names_may_be_given_later():
    classes = Classes(3, None)
    classes.class_names = tuple(NAMES)
    assert classes.class_names == NAMES
    with pytest.raises(ValueError, match="`class_names` must hold 3 different names"):
        classes.class_names = ["one"]


def test_answers_as_a_user_gives_labels():
    assert Classes(None, NAMES).as_given("bad") == "bad"
    indices = Classes(3, None).as_given(np.array(["2", "0"], object))
    assert (indices.dtype, indices.tolist()) == (np.int64, [2, 0])
    assert Classes(3, None).as_given("1") == 1


class TestErrors:
    def test_neither_number_nor_names(self):
        with pytest.raises(TypeError, match="`num_classes` must be an integer. Received: num_classes=None"):
            Classes(None, None)

    def test_one_class(self):
        with pytest.raises(ValueError, match="`num_classes` must be at least 2. Received: num_classes=1"):
            Classes(1, None)

    @pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "a"]])
    def test_number_of_names(self, names):
        with pytest.raises(ValueError, match="`class_names` must hold 3 different names"):
            Classes(3, names)

    @pytest.mark.parametrize("names", [["a", ""], ["a", 1]])
    def test_names_that_are_not_strings(self, names):
        with pytest.raises(TypeError, match="`class_names` must be strings, none empty"):
            Classes(2, names)

    @pytest.mark.parametrize(
        ("names", "cure"),
        [
            ("bad", "Write `[name, other_name]`"),
            ({"a", "b"}, "A set has no order: `sorted(names)`"),
            ({"a": 0, "b": 1}, "Write"),
        ],
    )
    @pytest.mark.parametrize("problem_type", ["single_label_classification", "multi_label_classification"])
    @pytest.mark.parametrize("num_classes", [None, 3])
    def test_names_without_an_order(self, names, cure, problem_type, num_classes):
        with pytest.raises(TypeError, match=f"`class_names` must be a list of strings. Received: .*{re.escape(cure)}"):
            make(problem_type, num_classes, names)

    def test_names_as_labels_where_none_are_known(self):
        with pytest.raises(ValueError, match="labels must be integers where no class names are known"):
            Classes(2, None).known_names()

    def test_problem_type(self):
        with pytest.raises(ValueError, match="`problem_type` must be one of .*Received: problem_type='ranking'"):
            make("ranking", 3)

    @pytest.mark.parametrize("problem_type", ["single_label_classification", "regression"])
    def test_threshold_of_one_label(self, problem_type):
        with pytest.raises(ValueError, match="`threshold` must be None unless .*multi_label_classification"):
            make(problem_type, 3, threshold=0.5)
