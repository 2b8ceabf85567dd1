"""Answers as lines of JSON."""

import json

import numpy as np

from keras_bert_layers.cli.answer_lines import answer_lines
from keras_bert_layers.cli.text_rows import TextRow


def test_entities_do_not_depend_on_the_rows_beside():
    found = {
        "entity_text": np.array([[b"a", b"b"], [b"", b""]], object),
        "entity_start": np.array([[0, 5], [-1, -1]], np.int32),
        "entity_score": np.array([[0.1, np.nan], [-1, -1]], np.float32),
    }
    lines = list(answer_lines(found, [TextRow("", ("x",)), TextRow("", ("y",))], {"text": 1}))
    assert [json.loads(line) for line in lines] == [
        {"entity_score": [0.1, None], "entity_start": [0, 5], "entity_text": ["a", "b"]},
        {"entity_score": [], "entity_start": [], "entity_text": []},
    ]


def test_only_lines_of_which_something_was_cut_report_it():
    found = {"bytes_cut": np.array([0, 7], np.int32), "score": np.array([0.5, 0.25], np.float32)}
    lines = list(answer_lines(found, [TextRow("", ("x",)), TextRow("", ("y",))], {"text": 1}))
    assert [json.loads(line) for line in lines] == [{"score": 0.5}, {"bytes_cut": 7, "score": 0.25}]
