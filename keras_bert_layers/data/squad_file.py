"""Reads questions, contexts and answers from SQuAD files."""

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.text_file import RowCollector, RowError, check_utf8, open_text

COLUMNS = ("ids", "titles", "questions", "contexts", "answers", "answer_starts", "impossible")


def read_squad(path: str | PathLike[str], *, on_error: str = "raise") -> Columns:
    """Reads every question of a file in the format of SQuAD 1.1 or 2.0.

    Args:
        path: a JSON file, UTF-8, plain or gzip, with or without a byte order mark.
        on_error: what to do with a question that lacks a required value, has an answer that is not in the context at
            the given position, has no answer and is not marked `is_impossible`, or repeats the id of an earlier one.
            `"raise"` an error, or `"skip"`: leave the question out, count it, and warn once.

    Returns:
        One row per question, in the order of the file, in the columns

        - `ids`: strings, all different; an id that is an integer in the file becomes a string;
        - `titles`: the articles' titles, `""` where the file has none;
        - `questions`, `contexts`: strings as in the file;
        - `answers`: lists of strings, people's answers, with repetitions; `[]` if impossible;
        - `answer_starts`: lists of integers, one for each answer; in **characters** of the context, as in the file;
        - `impossible`: whether the context does not hold the answer.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not JSON or not in this format, a question cannot be used (with `"raise"`), or there is
            no question.

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
    for position, title, context, question in _questions(_articles(path), collector):
        question_id: Any = question.get("id") if isinstance(question, dict) else None
        question_id = str(question_id) if isinstance(question_id, int) else question_id
        try:
            _check(title, context, question_id, question)
            if question_id in known:
                raise RowError("an earlier question has the same id. Give it another.")
        except RowError as error:
            collector.leave_out(f"{position} (article {title!r}, question {question_id!r})", error)
            continue
        known.add(question_id)
        answers = question["answers"]
        texts = [answer["text"] for answer in answers]
        starts = [answer["answer_start"] for answer in answers]
        impossible = question.get("is_impossible", False)
        collector.keep(question_id, title, question["question"], context, texts, starts, impossible)
    return collector.columns("no question to read.")


def _articles(path: Path) -> list[Any]:
    """The list under `data` of the file."""
    with open_text(path) as file:
        text = file.read()
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            check_utf8(line)
        except RowError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        cure = "Files with one object per line are JSON lines, which `pandas.read_json(path, lines=True)` reads."
        raise ValueError(f"{path}: not JSON: {error}. {cure}") from error
    articles = content.get("data") if isinstance(content, dict) else None
    if not isinstance(articles, list):
        raise ValueError(f'{path}: not in the format of SQuAD, an object with a list of articles under "data".')
    return articles


def _questions(articles: list[Any], collector: RowCollector) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yields position, title, context and question, all unchecked."""
    for number, article in enumerate(articles):
        position = f"data[{number}]"
        title = article.get("title", "") if isinstance(article, dict) else ""
        for paragraph_position, paragraph in _members(position, article, "paragraphs", collector):
            context = paragraph.get("context") if isinstance(paragraph, dict) else None
            for question_position, question in _members(paragraph_position, paragraph, "qas", collector):
                yield question_position, title, context, question


def _members(position: str, holder: Any, key: str, collector: RowCollector) -> Iterator[tuple[str, Any]]:
    """Yields position and value of a list's members; a missing list is left out as one row."""
    members = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(members, list):
        collector.leave_out(position, RowError(f'not an object with a list under "{key}".'))
        return
    for number, member in enumerate(members):
        yield f"{position}.{key}[{number}]", member


def _check(title: Any, context: Any, question_id: Any, question: Any) -> None:
    """Raises a RowError for a question that cannot be used."""
    if not isinstance(question, dict):
        raise RowError("not an object.")
    texts = {"title": title, "context": context, "id": question_id, "question": question.get("question")}
    for name, text in texts.items():
        if not isinstance(text, str) or (name != "title" and not text.strip()):
            raise RowError(f'"{name}" must be a text that is not empty. Received: {text!r}.')
        try:
            check_utf8(text)
        except RowError as error:
            raise RowError(f'"{name}": {error}') from error
    answers, impossible = question.get("answers"), question.get("is_impossible", False)
    if not isinstance(answers, list) or not isinstance(impossible, bool):
        raise RowError('"answers" must be a list, and "is_impossible" true or false.')
    if impossible and answers:
        raise RowError('it has answers and is marked "is_impossible". Remove one of the two.')
    if not impossible and not answers:
        raise RowError('it has no answer. Add one, or "is_impossible": true.')
    for answer in answers:
        _check_answer(context, answer)


def _check_answer(context: str, answer: Any) -> None:
    text, start = (answer.get("text"), answer.get("answer_start")) if isinstance(answer, dict) else (None, None)
    if not isinstance(text, str) or not text.strip() or isinstance(start, bool) or not isinstance(start, int):
        raise RowError(
            f'an answer must have a "text" that is not empty and an integer "answer_start". Received: {answer!r}.'
        )
    found = context[start : start + len(text)] if start >= 0 else ""
    if found != text:
        first = context.find(text)
        hint = f"It first occurs at {first}" if first >= 0 else "The context does not contain it"
        raise RowError(f"the answer {text!r} is not at character {start} of the context; {found!r} is there. {hint}.")
