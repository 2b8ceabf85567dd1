"""`read_differently` on directories that were written apart from its rules, from what other programs do."""

import re

import pytest

from keras_bert_layers import checkpoints


def test_each_difference_has_a_sentence_or_a_refusal(crafted, tmp_path):
    # One entry for each of two programs.
    check_differences(crafted, tmp_path, twice=("dense_by_its_new_class_name", "pooling_in_the_new_key"))


def test_each_difference_of_those_written_apart(crafted_apart, tmp_path):
    check_differences(crafted_apart, tmp_path)


def check_differences(crafted, tmp_path, twice=()):
    expected = {case.name: [case.name] * (1 + (case.name in twice)) for case in crafted.DIFFERENT}
    expected |= {case.name: [] for case in crafted.DIFFERENT if case.silent}
    found = {}
    for case in crafted.DIFFERENT:
        directory, pattern = tmp_path / case.name, re.compile(case.word, re.IGNORECASE)
        case.write(directory)
        if case.silent != "every" and case.silent:
            with pytest.raises(checkpoints.CheckpointError, match=pattern):
                getattr(checkpoints, case.silent)(directory)
        entries = [] if case.silent == "read_differently" else checkpoints.read_differently(directory)
        found[case.name] = [
            case.name
            if pattern.search(" ".join(entry.values())) and any(name in entry["program"] for name in case.programs)
            else entry
            for entry in entries
        ]
    assert found == expected


@pytest.mark.parametrize(("name", "counts"), [("crafted", (25, 15)), ("crafted_apart", (25, 11))])
def test_directories_that_all_read_the_same_have_no_entry(request, tmp_path, name, counts):
    crafted = request.getfixturevalue(name)
    for case in crafted.SAME:
        case.write(tmp_path / case.name)
    found = {case.name: checkpoints.read_differently(tmp_path / case.name) for case in crafted.SAME}
    assert found == {case.name: [] for case in crafted.SAME}
    assert (len(crafted.DIFFERENT), len(crafted.SAME)) == counts
