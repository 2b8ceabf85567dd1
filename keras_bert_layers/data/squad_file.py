"""Questions, the texts they are asked of, and their answers, from files in SQuAD's format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import not_utf8, open_text
from keras_bert_layers.data.columns import Columns

COLUMNS = ("ids", "titles", "questions", "contexts", "answers", "answer_starts", "impossible")


def read_squad(path: str | PathLike[str], *, on_error: str = "raise") -> Columns:
    """Reads every question of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: a JSON file, UTF-8, plain or gzip, a byte order mark allowed.
        on_error: what to do with a question that lacks something, has an answer that does not stand in the context
            where it says, has no answer though it is not marked `is_impossible`, or has the id of an earlier one.
            `"raise"`, or `"skip"`: leave it out, count it, and warn once.

    Returns:
        One row a question, in the order of the file, in the columns

        - `ids`: strings, all different; numbers in the file are written out;
        - `titles`: of the articles, `""` where the file has none;
        - `questions`, `contexts`: strings as in the file;
        - `answers`: lists of strings, what people answered, equal ones repeated; `[]` if impossible;
        - `answer_starts`: lists of integers, as many as answers; in **characters** of the context, as the file has it;
        - `impossible`: whether the context does not hold the answer.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: not JSON, or not in this format; a question that cannot be used, under `"raise"`; no question.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "squad.json"
        >>> asked = {"id": "q1", "question": "Who sleeps?", "answers": [{"text": "A cat", "answer_start": 0}]}
        >>> articles = [{"title": "Cats", "paragraphs": [{"context": "A cat sleeps.", "qas": [asked]}]}]
        >>> _ = path.write_text(json.dumps({"version": "1.1", "data": articles}))
        >>> data = read_squad(path)
        >>> data.questions, data.answers, data.impossible
        (['Who sleeps?'], [['A cat']], [False])

    References:
        Rajpurkar et al. 2016, arXiv:1606.05250; Rajpurkar et al. 2018, arXiv:1806.03822.
    """
    path = Path(path)
    collector = RowCollector("read_squad", path, COLUMNS, on_error=on_error)
    known: set[str] = set()
    for place, title, context, question in _questions(_articles(path), collector):
        question_id: Any = question.get("id") if isinstance(question, dict) else None
        question_id = str(question_id) if isinstance(question_id, int) else question_id
        problem = _problem(title, context, question_id, question)
        if not problem and question_id in known:
            problem = "an earlier question has the same id. Give it another."
        if problem:
            collector.leave_out(f"{place} (article {title!r}, question {question_id!r})", problem)
            continue
        known.add(question_id)
        answers = question["answers"]
        texts = [answer["text"] for answer in answers]
        starts = [answer["answer_start"] for answer in answers]
        impossible = question.get("is_impossible", False)
        collector.keep(question_id, title, question["question"], context, texts, starts, impossible)
    return collector.columns("no question to read.")


def _articles(path: Path) -> list[Any]:
    """What the file holds under `data`."""
    with open_text(path) as file:
        text = file.read()
    if problem := not_utf8(text):
        line = next(number for number, line in enumerate(text.split("\n"), start=1) if not_utf8(line))
        raise ValueError(f"{path}, line {line}: {problem}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}. For one object a line there is `read_jsonl`.") from error
    articles = content.get("data") if isinstance(content, dict) else None
    if not isinstance(articles, list):
        raise ValueError(f'{path}: not in the format of SQuAD, an object with a list of articles under "data".')
    return articles


def _questions(articles: list[Any], collector: RowCollector) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yields place, title, context and question, none of them checked yet."""
    for number, article in enumerate(articles):
        place = f"data[{number}]"
        title = article.get("title", "") if isinstance(article, dict) else ""
        for paragraph_place, paragraph in _members(place, article, "paragraphs", collector):
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            for question_place, question in _members(paragraph_place, paragraph, "qas", collector):
                yield question_place, title, context, question


def _members(place: str, holder: Any, key: str, collector: RowCollector) -> Iterator[tuple[str, Any]]:
    """Yields place and value of what a list holds; a list that is not there is left out as one row."""
    members = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(members, list):
        collector.leave_out(place, f'not an object with a list under "{key}".')
        return
    for number, member in enumerate(members):
        yield f"{place}.{key}[{number}]", member


def _problem(title: Any, context: Any, question_id: Any, question: Any) -> str:
    """Why a question cannot be used, or `""`."""
    if not isinstance(question, dict):
        return "not an object."
    texts = {"title": title, "context": context, "id": question_id, "question": question.get("question")}
    problems = (_text_problem(name, text) for name, text in texts.items())
    return next(filter(None, problems), "") or _answers_problem(context, question)


def _text_problem(name: str, text: Any) -> str:
    if not isinstance(text, str) or (name != "title" and not text.strip()):
        return f'"{name}" must be a text that is not empty. Received: {text!r}.'
    halved = not_utf8(text)
    return f'"{name}": {halved}' if halved else ""


def _answers_problem(context: str, question: dict[str, Any]) -> str:
    answers, impossible = question.get("answers"), question.get("is_impossible", False)
    if not isinstance(answers, list) or not isinstance(impossible, bool):
        return '"answers" must be a list, and "is_impossible" true or false.'
    if impossible and answers:
        return 'it has answers and is marked "is_impossible". Remove one of the two.'
    if not impossible and not answers:
        return 'it has no answer. Add one, or "is_impossible": true.'
    return next(filter(None, (_answer_problem(context, answer) for answer in answers)), "")


def _answer_problem(context: str, answer: Any) -> str:
    text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
    if not isinstance(text, str) or not text.strip() or isinstance(start, bool) or not isinstance(start, int):
        return f'an answer must have a "text" that is not empty and an integer "answer_start". Received: {answer!r}.'
    found = context[start : start + len(text)] if start >= 0 else ""
    if found == text:
        return ""
    where = context.find(text)
    hint = f"It first stands at {where}" if where >= 0 else "It stands nowhere there"
    return f"the answer {text!r} is not at character {start} of the context, where {found!r} stands. {hint}."
