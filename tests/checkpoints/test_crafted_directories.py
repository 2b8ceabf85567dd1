"""`read_differently` on directories that were written apart from its rules, from what other programs do."""

import re

import pytest

from keras_bert_layers import checkpoints


def test_each_difference_has_a_sentence_or_a_refusal(crafted, tmp_path):
    found, expected = {}, {case.name: [] if case.silent else [case.name] for case in crafted.DIFFERENT}
    expected["dense_by_its_new_class_name"] *= 2  # one entry for each of two programs
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


def test_directories_that_all_read_the_same_have_no_entry(crafted, tmp_path):
    for case in crafted.SAME:
        case.write(tmp_path / case.name)
    found = {case.name: checkpoints.read_differently(tmp_path / case.name) for case in crafted.SAME}
    assert found == {case.name: [] for case in crafted.SAME}
    assert (len(crafted.DIFFERENT), len(crafted.SAME)) == (25, 15)
