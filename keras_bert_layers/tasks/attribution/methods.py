"""The method `attribute` of the tasks: of a class or score, of an answer, and of the tag of a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.preprocessors.windows import NO_OFFSET, lay_windows
from keras_bert_layers.tasks.attribution.attribution import Attribution, Rows, attributions
from keras_bert_layers.tasks.inputs.columns import num_rows, on_host
from keras_bert_layers.tasks.prediction.length_batches import IDS
from keras_bert_layers.tasks.serving.answers import as_rows, check_takes_text, is_single_row

TOLERANCE, MAX_STEPS = 1e-3, 256
OUTSIDE = "O"


def attribute_texts(
    task: Any,
    texts: Any,
    target: Any = None,
    *,
    baseline: str = "pad",
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> Any:
    """Scores the tokens of texts by how much each raises the logit of a class, with integrated gradients.

    Args:
        task: the task; this function is a method of it.
        texts: a list, array or column of strings, or a tuple of two for pairs; or a single row, a string or a tuple of
            two.
        target: the class, by its name or index, or a list with one for each text. None is the class with the highest
            logit. A regression of several numbers needs one; a cross encoder has one logit, and takes none.
        baseline: what stands in place of the text's tokens at the start of the path: `"pad"`, [PAD], or `"mask"`,
            [MASK]. Positions and segments stay.
        tolerance: the error that is accepted, as a share of the difference, or of 1 if that is smaller. Texts that
            exceed it are computed again with twice the points, 32 at first.
        max_steps: the most points on the path. A text that is still above the tolerance is named in a warning.

    Returns:
        One `tasks.Attribution` for each text; for a single row, its own.

    Raises:
        TypeError, ValueError: what `predict` refuses; an unknown class; another baseline; no [MASK] in the vocabulary;
            the task has no preprocessor.
    """

    def read(columns: Any) -> Rows:
        task.pipeline.look_for_cuts(columns)
        inputs = on_host(lambda rows: task.preprocessor.with_offsets(rows, prompt=task.pipeline.prompt), columns)
        names = class_names(task)
        indices = {key: index for index, name in enumerate(names) for key in (index, name)}
        wanted = _one_each(task, target, num_rows(columns))
        if target is None:
            check_has_highest(task)
            highest = task.predict(columns, verbose=0).argmax(axis=-1) if len(names) > 1 else [0] * len(wanted)
            wanted = [int(index) for index in highest]
        chosen = [indices[checks.one_of(type(task).__name__, "target", one, [*names, *range(len(names))])] for one in wanted]
        return Rows(inputs, np.array(chosen)[:, None], [names[index] for index in chosen])

    return _attributed(task, texts, read, baseline=baseline, tolerance=tolerance, max_steps=max_steps)


def attribute_answers(
    task: Any, texts: Any, *, baseline: str = "pad", tolerance: float = TOLERANCE, max_steps: int = MAX_STEPS
) -> Any:
    """Scores the tokens of questions and contexts by how much each raises the logits of the answer.

    The target is the start logit plus the end logit of the best span, in the window in which it is best; the span is
    explained also where "no answer" is more probable. Tokens are those of this window.

    Args:
        task: the task; this function is a method of it.
        texts: a tuple `(questions, contexts)`; or `(question, context)`.
        baseline: as in `BertClassifier.attribute`; the question is replaced too.
        tolerance: as in `BertClassifier.attribute`.
        max_steps: as in `BertClassifier.attribute`.

    Returns:
        One `tasks.Attribution` for each question, with the answer as `target`; for a single row, its own. Offsets are
        those of the context.

    Raises:
        TypeError, ValueError: what `predict` refuses; another baseline; the task has no preprocessor.
    """

    def read(columns: Any) -> Rows:
        windows = {name: np.asarray(values) for name, values in on_host(task.preprocessor, columns).items()}
        chosen, targets, names = [], [], []
        for row, logits in enumerate(task.predict_stream(columns)):
            of_row = np.flatnonzero(windows["rows"] == row)
            width = logits["start_logits"].shape[1]
            is_context = windows["starts"][of_row, :width] != NO_OFFSET
            start, end = (np.where(is_context, logits[side], -np.inf) for side in ("start_logits", "end_logits"))
            length = np.arange(width) - np.arange(width)[:, None]  # tokens between the start (rows) and the end
            is_span = (length >= 0) & (length < task.max_answer_length)
            spans = np.where(is_span, start[:, :, None] + end[:, None], -np.inf)
            window, first, last = np.unravel_index(spans.argmax(), spans.shape)  # of an empty context, [CLS]
            chosen.append(of_row[window])
            targets.append([last, first])
            place = slice(max(windows["starts"][chosen[-1], first], 0), max(windows["ends"][chosen[-1], last], 0))
            names.append(_encoded(columns[1][row])[place].decode(errors="replace"))
        return Rows({name: windows[name][chosen] for name in (*IDS, "starts", "ends")}, targets, names)

    return _attributed(task, texts, read, baseline=baseline, tolerance=tolerance, max_steps=max_steps)


def attribute_tags(
    task: Any,
    texts: Any,
    target: Any = None,
    *,
    baseline: str = "pad",
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> Any:
    """Scores the tokens of texts by how much each raises the logit of the tag of one word.

    The logit is that of the word's first piece, in the window in which the word has most context, under every
    `aggregation`. With a `crf` it is the word's own score (emission), without those of the tags beside it.

    Args:
        task: the task; this function is a method of it.
        texts: a list, array or column of strings, or a single string.
        target: which word: its index among the words of the tokenizer, as in `predict`, or a tuple of it and the name
            of a tag; or a list with one for each text. Without a tag, it is the predicted one. None is the word whose
            tag is most probable, among those with another tag than "O" if there are any.
        baseline: as in `BertClassifier.attribute`; the word itself is replaced too.
        tolerance: as in `BertClassifier.attribute`.
        max_steps: as in `BertClassifier.attribute`.

    Returns:
        One `tasks.Attribution` for each text, with the tag and the word as `target`; for a single text, its own.

    Raises:
        TypeError, ValueError: what `answer` refuses; a text without words, a word or a tag that does not exist; another
            baseline; the task has no preprocessor.
    """

    def read(columns: Any) -> Rows:
        (columns,) = task.pipeline.answer_columns(columns)
        aligner, tokenizer = task.pipeline.aligner(), task.preprocessor.tokenizer
        words = on_host(aligner.align, columns)
        _, *offsets = on_host(tokenizer.tokenize_with_offsets, columns)
        room = task.preprocessor.max_length - 2
        sizes = tf.cast(offsets[0].row_lengths(), tf.int32)
        windows = lay_windows(sizes, tf.fill(tf.shape(sizes), room), aligner.stride)
        places, word_starts, word_ends = (part.numpy() for part in (words.places, words.starts, words.ends))
        tags, probabilities = map(ops.convert_to_numpy, task._decode(task.predict(columns, verbose=0), places >= 0))
        inputs = {name: values.numpy() for name, values in words.inputs.items()}
        width = inputs["token_ids"].shape[1]
        chosen, targets, names = [], [], []
        found = {side: np.full((len(columns), width), NO_OFFSET) for side in ("starts", "ends")}
        for row, wanted in enumerate(_one_each(task, target, len(columns))):
            count = int((places[row] >= 0).sum())
            word, tag = _word_and_tag(task, wanted, tags[row, :count], probabilities[row, :count], row)
            window, position = divmod(int(places[row, word]), width)
            chosen.append(window)
            targets.append([position * len(task.tag_names) + tag])
            text = _encoded(columns[row])[word_starts[row, word] : word_ends[row, word]].decode(errors="replace")
            names.append(f"{task.tag_names[tag]} of {text!r}")
            begin, length = int(windows.begins[window]), int(windows.lengths[window])
            for side, values in zip(("starts", "ends"), offsets, strict=True):
                found[side][row, 1 : length + 1] = values[row, begin : begin + length]
        return Rows({**{name: values[chosen] for name, values in inputs.items()}, **found}, targets, names)

    return _attributed(task, texts, read, baseline=baseline, tolerance=tolerance, max_steps=max_steps)


def _attributed(task: Any, texts: Any, read: Callable[[Any], Rows], **options: Any) -> list[Attribution] | Attribution:
    """The attributions of the rows that `read` makes of columns of texts; of a single row, its own."""
    check_takes_text(task)
    is_one = is_single_row(texts)
    columns = task.pipeline.columns(as_rows(texts) if is_one else task.pipeline.from_table(texts)[0])
    found = attributions(task, read(columns), **options) if num_rows(columns) else []
    return found[0] if is_one else found


def class_names(task: Any) -> list[str]:
    """A name for each logit of a classifier or a cross encoder."""
    return task._labels.answers if task.output.shape[-1] > 1 else ["score"]


def check_has_highest(task: Any) -> None:
    """Refuses a regression of several numbers, of which none is predicted before the others; ValueError."""
    if getattr(task, "problem_type", "") == "regression" and len(class_names(task)) > 1:
        rule = f"be one of {class_names(task)} in a regression of several numbers"
        raise ValueError(checks.message(type(task).__name__, "target", rule, None))


def _one_each(task: Any, target: Any, count: int) -> list[Any]:
    if not isinstance(target, list):
        return [target] * count
    checks.length(type(task).__name__, "target", target, count, rule="hold one for each text", unit="targets")
    return target


def _word_and_tag(task: Any, wanted: Any, tags: np.ndarray, probabilities: np.ndarray, row: int) -> tuple[int, int]:
    """The index of a word and of its tag."""
    owner, cure = type(task).__name__, f"Row {row} has {len(tags)} words."
    if not len(tags):
        raise ValueError(checks.message(owner, "texts", "have words", "", cure))
    if wanted is None:
        is_entity = np.array([task.tag_names[tag] != OUTSIDE for tag in tags])
        wanted = int(np.where(is_entity | ~is_entity.any(), probabilities, -1).argmax())
    word, tag = wanted if isinstance(wanted, tuple) else (wanted, None)
    checks.one_of(owner, "target", word, range(len(tags)), cure)
    if tag is None:
        return word, int(tags[word])
    return word, task.tag_names.index(checks.one_of(owner, "target", tag, task.tag_names))


def _encoded(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()
