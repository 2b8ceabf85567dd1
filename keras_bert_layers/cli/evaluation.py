"""What a task reaches on rows with labels, as `train` and `evaluate` print it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from keras_bert_layers.cli.terminal import report
from keras_bert_layers.cli.training_rows import TrainingRows

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.tasks import ClassificationReport

TASKS = ("classifier", "token_classifier", "question_answerer", "sentence_encoder", "cross_encoder", "masked_lm")

PROBLEM_TYPES = {"one": "single_label_classification", "several": "multi_label_classification", "number": "regression"}


def measured(model: keras.Model, validation: TrainingRows, batch_size: int) -> dict[str, float]:
    """Loss and metrics on the validation rows; of an answerer, exact match and F1 of its answers too."""
    from keras_bert_layers import BertQuestionAnswerer
    from keras_bert_layers.metrics import squad_scores

    metrics = model.evaluate(validation.x, validation.y, batch_size, verbose=0, return_dict=True)
    if isinstance(model, BertQuestionAnswerer):
        answers = model.answer(validation.x, batch_size=batch_size)["answer"]
        metrics |= squad_scores(answers.tolist(), validation.labels[1])
    return {name: float(value) for name, value in metrics.items()}


def report_of(model: keras.Model, rows: TrainingRows) -> ClassificationReport | None:
    """A classifier's report on rows; None, with a warning if scikit-learn is not installed, for any other model."""
    if getattr(model, "problem_type", None) != PROBLEM_TYPES["one"]:
        return None
    try:
        return model.report(rows.x, rows.y)
    except ModuleNotFoundError as error:
        report("warning", f"no report of each class, and no report.html: {error} `evaluate` then shows the classes.")
        return None


def json_number(value: float) -> float | None:
    """JSON has no infinity and no NaN, so these become None."""
    return value if math.isfinite(value) else None
