import json
import re

import pytest

from keras_bert_layers.data import read_squad

# A character of two UTF-16 units before the answer: offsets count characters.
CONTEXT = "😀 A cat sleeps on the roof. A cat!"


def question(**changes):
    row = {"id": "q1", "question": "Who sleeps?", "answers": [{"text": "A cat", "answer_start": 2}], **changes}
    return {key: value for key, value in row.items() if value is not None}


def squad(*questions, **changes):
    paragraph = {"context": CONTEXT, "qas": list(questions), **changes}
    return json.dumps({"version": "v2.0", "data": [{"title": "Cats", "paragraphs": [paragraph]}]})


def test_columns(write):
    twice = [{"text": "A cat", "answer_start": 28}, {"text": "cat", "answer_start": 4, "more": 1}]
    none = question(id="q3", answers=[], is_impossible=True, plausible_answers=[{"text": "roof", "answer_start": 22}])
    path = write("\ufeff" + squad(question(), question(id=7, answers=twice, is_impossible=False), none), "squad.json")
    columns = read_squad(path)
    assert columns.names == ("ids", "titles", "questions", "contexts", "answers", "answer_starts", "impossible")
    assert columns.ids == ["q1", "7", "q3"]
    assert columns.titles == ["Cats"] * 3
    assert columns.questions == ["Who sleeps?"] * 3
    assert columns.contexts == [CONTEXT] * 3
    assert columns.answers == [["A cat"], ["A cat", "cat"], []]
    assert columns.answer_starts == [[2], [28, 4], []]
    assert columns.impossible == [False, False, True]


def test_gzip_without_titles_and_several_paragraphs(write):
    content = json.loads(squad(question()))
    del content["data"][0]["title"]
    content["data"][0]["paragraphs"].append({"context": "A cat, too.", "qas": []})
    content["data"].append({"title": "Dogs", "paragraphs": [{"context": "- A cat?", "qas": [question(id="q2")]}]})
    columns = read_squad(write(json.dumps(content), compress=True))
    assert columns.titles == ["", "Dogs"]
    assert columns.contexts == [CONTEXT, "- A cat?"]


POSITION = "data[0].paragraphs[0].qas[1] (article 'Cats', question 'q2'): "
TEXT_AND_START = 'an answer must have a "text" that is not empty and an integer "answer_start". Received: '
BAD = [
    (
        {"answers": [{"text": "A cat", "answer_start": 2}, {"text": "roof", "answer_start": 23}]},
        "the answer 'roof' is not at character 23 of the context; 'oof.' is there. It first occurs at 22.",
    ),
    (
        {"answers": [{"text": "A dog", "answer_start": 2}]},
        "the answer 'A dog' is not at character 2 of the context; 'A cat' is there. The context does not contain it.",
    ),
    (
        {"answers": [{"text": "!", "answer_start": -1}]},
        "the answer '!' is not at character -1 of the context; '' is there",
    ),
    ({"answers": [{"text": " ", "answer_start": 1}]}, TEXT_AND_START + "{'text': ' ', 'answer_start': 1}."),
    ({"answers": [{"text": "A cat", "answer_start": "2"}]}, TEXT_AND_START),
    ({"answers": [{"text": "A cat", "answer_start": True}]}, TEXT_AND_START),
    ({"answers": ["A cat"]}, TEXT_AND_START + "'A cat'."),
    ({"answers": None}, '"answers" must be a list, and "is_impossible" true or false.'),
    ({"is_impossible": "no"}, '"answers" must be a list, and "is_impossible" true or false.'),
    ({"answers": []}, 'it has no answer. Add one, or "is_impossible": true.'),
    ({"is_impossible": True}, 'it has answers and is marked "is_impossible". Remove one of the two.'),
    ({"question": " "}, "\"question\" must be a text that is not empty. Received: ' '."),
    ({"question": "\ud83d?"}, r'"question": \ud83d is half of a character.'),
    ({"id": "q1"}, "an earlier question has the same id. Give it another."),
    ({"id": None}, '"id" must be a text that is not empty. Received: None.'),
]


@pytest.mark.parametrize(("changes", "problem"), BAD)
def test_bad_question(write, changes, problem):
    path = write(squad(question(), question(**{"id": "q2", **changes}), question(id="q3")), "squad.json")
    position = POSITION.replace("'q2'", repr(changes.get("id", "q2")))
    with pytest.raises(ValueError, match=re.escape(f"{path}, {position}{problem}")):
        read_squad(path)
    with pytest.warns(UserWarning, match="`read_squad`: left out 1 rows"):
        columns = read_squad(path, on_error="skip")
    assert columns.ids == ["q1", "q3"]
    assert columns.skipped[0].startswith(f"{path}, {position}{problem}")


def test_bad_context_leaves_out_each_of_its_questions(write):
    content = json.loads(squad(question(), question(id="q2"), context=None))
    content["data"].append(
        {"title": "Dogs", "paragraphs": [{"context": "- A cat", "qas": [question(id="q3"), "q4"]}, 5]}
    )
    content["data"].append("Birds")
    path = write(json.dumps(content), "squad.json")
    with pytest.warns(UserWarning, match="left out 5 rows"):
        columns = read_squad(path, on_error="skip")
    assert columns.ids == ["q3"]
    ends = [message.removeprefix(f"{path}, ") for message in columns.skipped]
    assert '"context" must be a text that is not empty. Received: None.' in ends[0]
    assert ends[2] == "data[1].paragraphs[0].qas[1] (article 'Dogs', question None): not an object."
    assert ends[3:] == [
        'data[1].paragraphs[1]: not an object with a list under "qas".',
        'data[2]: not an object with a list under "paragraphs".',
    ]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"data": [', "not JSON: Expecting value: line 1 column 11 (char 10). Files with one object per line"),
        ('{"id": 1}\n{"id": 2}', "not JSON: Extra data: line 2 column 1 (char 10). Files with one object per line"),
        ("[" * 100_000, "not JSON: "),
        ('["data"]', 'not in the format of SQuAD, an object with a list of articles under "data".'),
        ('{"data": {}}', 'not in the format of SQuAD, an object with a list of articles under "data".'),
        ('{"data": []}', "no question to read."),
        (b'{"data":\n"\xff"}', "line 2: byte 0xff is not UTF-8"),
    ],
)
def test_bad_file(write, content, problem, on_error):
    path = write(content, "squad.json")
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
        read_squad(path, on_error=on_error)
    assert str(path) in str(error.value)


def test_on_error(write):
    with pytest.raises(ValueError, match="`read_squad`: `on_error` must be one of"):
        read_squad(write(squad(question())), on_error=None)


@pytest.mark.parametrize(
    ("name", "num_rows", "num_impossible"),
    [("v1.1-dev", 10_570, 0), ("v2.0-dev", 11_873, 5_945), ("xquad-en", 1_190, 0)],
)
def test_real_files(shared_data, name, num_rows, num_impossible):
    columns = read_squad(shared_data / "squad" / f"{name}.json.gz")
    assert columns.num_rows == num_rows
    assert sum(columns.impossible) == num_impossible
    assert columns.num_skipped == 0
    assert len(set(columns.titles)) == {"v1.1-dev": 48, "v2.0-dev": 35, "xquad-en": 48}[name]
