"""Extractive question answering: answers cut out of a context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import IDS
from keras_bert_layers.decoding.spans import NEVER, NONE, WindowSpans, best_spans, choose_answers, merge_windows
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.layers import SpanHead
from keras_bert_layers.layers.span_head import MASKED_LOGIT
from keras_bert_layers.metrics import best_no_answer_threshold
from keras_bert_layers.preprocessing import BertPreprocessor, SpanPreprocessor
from keras_bert_layers.preprocessing.preprocessors.seen_text import seen_spans
from keras_bert_layers.tasks.graphs.heads import check_parts, head_options, head_states
from keras_bert_layers.tasks.graphs.settings import Setting
from keras_bert_layers.tasks.inputs import QuestionInputs
from keras_bert_layers.tasks.inputs.answer_spans import END, START
from keras_bert_layers.tasks.prediction.windows import in_parts
from keras_bert_layers.tasks.serving import answers
from keras_bert_layers.tasks.serving.attributed_rows import span_rows
from keras_bert_layers.tasks.serving.attribution import attribute
from keras_bert_layers.tasks.task import Task


def _check_threshold(owner: str, name: str, threshold: float | Sequence[float]) -> float | None:
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not math.isfinite(threshold):
        raise TypeError(checks.message(owner, name, "be a finite number or None", threshold))
    return float(threshold)


@register
class BertQuestionAnswerer(Task):
    """Extractive question answering: a question and a context in, a part of the context out.

    Every token of the context gets two logits, one for the start and one for the end of the answer; [CLS] represents
    "no answer". A context that is too long is read through overlapping windows, in training and in prediction.

    Texts are a tuple `(questions, contexts)`. The answers to train on, `y`, are a tuple `(starts, texts)` as in SQuAD,
    with starts counted in characters of the context. A row may also be a list, of which the first answer counts, so
    `(data.answer_starts, data.answers)` from `data.read_squad` works unchanged; or `y` has one dictionary per row with
    `"answer_start"` and `"text"`. A row without an answer has `[]` or `""`.

    `fit` and `evaluate` work on windows: `batch_size` is windows per step, loss and metrics are means over windows, and
    the target of a window that does not hold the whole answer is [CLS]. With `shuffle=False` the windows keep the order
    of the rows. A `tf.data.Dataset` yields batches of `((questions, contexts), (starts, texts))`; a step is then all
    windows of a batch. `answer` returns answers.

    A question that leaves no room for its context is an error here. An exported model still answers the other rows of
    the batch; for that one it returns `""` as `answer` and -1 for every number. `no_answer_probability` is -1 in no
    other case.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `SpanPreprocessor`; with one, `fit`, `evaluate` and `answer` take raw text. A `BertPreprocessor`
            becomes one by `SpanPreprocessor.from_preprocessor`.
        max_answer_length: the longest answer, in tokens.
        n_best: how many answers compete for a probability; the signature `n_best` returns all of them.
        no_answer_threshold: "no answer" is returned if its score exceeds that of the best answer by more than this, as
            a difference of logits; None always answers. `tune_threshold` finds one, for questions that may have no
            answer.
        name: the model's name.

    Returns:
        A call on ids returns `{"start_logits", "end_logits"}`, float32 `(batch, sequence)`, -1e9 at all positions
        but [CLS] and those of the context. `predict` on texts returns the same, one row a window, in the order of
        `preprocessor(texts)["rows"]`, as wide as the longest window; `predict_stream` yields for each question the
        logits of its own windows.

    Raises:
        TypeError: a backbone or a preprocessor of another type; answers in another form.
        ValueError: an argument out of range; an answer that its context does not have at its start, a question that is
            too long (the message names the row).

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "a", "man", "sang", "."])
        >>> preprocessor = kbl.preprocessing.SpanPreprocessor(tokenizer, max_length=16, stride=4)
        >>> answerer = kbl.BertQuestionAnswerer(kbl.BertBackbone(config), preprocessor)
        >>> history = answerer.fit((["Who sang"], ["A man sang."]), ([0], ["A man"]), verbose=0)
        >>> sorted(answerer.answer((["Who sang"], ["A man sang."])))
        ['answer', 'end', 'no_answer_probability', 'score', 'start']

    References:
        Devlin et al. 2018, arXiv:1810.04805, sections 4.2 and 4.3; google-research/bert `run_squad.py`.
    """

    pipeline: QuestionInputs
    reads_pooled_output = False
    default_loss_weights = {START: 0.5, END: 0.5}  # noqa: RUF012 - never changed

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: SpanPreprocessor | BertPreprocessor | None = None,
        *,
        max_answer_length: int = 30,
        n_best: int = 20,
        no_answer_threshold: float | None = None,
        name: str | None = None,
    ):
        owner = "BertQuestionAnswerer"
        if isinstance(preprocessor, BertPreprocessor):
            preprocessor = SpanPreprocessor.from_preprocessor(preprocessor)
        check_parts(owner, backbone, preprocessor, preprocessor_class=SpanPreprocessor)
        head = SpanHead(**head_options(backbone, "span_head"))
        inputs = backbone.input
        hidden = head_states(backbone, _encoder_inputs(backbone, preprocessor))
        start_logits, end_logits = head(hidden, answer_mask=_answer_mask(inputs))
        pipeline = QuestionInputs(owner, preprocessor, fill_value=MASKED_LOGIT)
        super().__init__(backbone, pipeline, outputs={START: start_logits, END: end_logits}, name=name)
        self.max_answer_length = max_answer_length
        self.n_best = n_best
        self.no_answer_threshold = no_answer_threshold
        self.compile()

    max_answer_length = Setting(checks.positive_integer, doc="The longest answer, in tokens.")
    n_best = Setting(checks.positive_integer, doc="How many answers compete for a probability.")
    no_answer_threshold = Setting(
        _check_threshold,
        doc="No answer is given if its score exceeds that of the best answer by more than this; None: always answer.",
    )

    def attribute(
        self,
        texts: Strings,
        target: object = None,
        *,
        baseline: str = "pad",
        tolerance: float = 1e-3,
        max_steps: int = 256,
        verbose: str | int = 0,
    ) -> Any:
        """Scores the tokens of texts by how much each raised the best span.

        `tasks.serving.attribution.attribute` documents the arguments, errors and what it returns.
        """
        options: dict[str, Any] = {"baseline": baseline, "tolerance": tolerance, "max_steps": max_steps}
        return attribute(self, span_rows, texts, target, verbose=verbose, **options)

    def default_loss(self) -> Any:
        """Cross entropy of the start and of the end, over [CLS] and the context; the default loss is their mean."""
        return {side: keras.losses.SparseCategoricalCrossentropy(from_logits=True) for side in (START, END)}

    def default_metrics(self) -> Any:
        """The share of windows with the right start, and with the right end."""
        return {side: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for side in (START, END)}

    def best_answers(self, x: tuple[Any, Any], batch_size: int = 32) -> dict[str, Any]:
        """The `n_best` best answers to each question, as the exported model's signature `n_best` returns them.

        Args:
            x: a tuple `(questions, contexts)`; or `(question, context)`, whose answers have no axis of rows.
            batch_size: rows per step. Windows of similar length go through the model together, a few at a time, so a
                large batch is faster where lengths differ.

        Returns:
            `"answer"`, `"score"`, `"start"`, `"end"`, `(rows, n_best)`, the best first, padded with `""` and -1;
            `"no_answer_probability"`, `"no_answer_score"`, `(rows,)`. See `decoding.decode_spans`. The threshold does
            not change them: it is compared with `"no_answer_score"`.
        """
        return answers.ask(self, self._serve_best, x, batch_size)

    def tune_threshold(
        self, x: tuple[Any, Any], gold_answers: Sequence[Sequence[str]], *, metric: str = "f1", batch_size: int = 32
    ) -> float:
        """Finds the best `no_answer_threshold` on questions with known answers, and sets it.

        It is saved with the task and part of an exported model. Use other questions than those you trained on and
        those you report results on.

        Args:
            x: a tuple `(questions, contexts)`; some of the questions should have no answer.
            gold_answers: for each question all correct answers; `[]` if there is none.
            metric: the metric to maximise, `"f1"` or `"exact_match"`.
            batch_size: rows per step.

        Returns:
            The threshold, halfway between the scores of the nearest questions on its two sides, so that rounding of
            float32 sums cannot move a question across it.

        Raises:
            TypeError, ValueError: as for `metrics.best_no_answer_threshold`.
        """
        best = self.best_answers(x, batch_size)
        threshold, _ = best_no_answer_threshold(
            best["answer"][:, 0].tolist(), best["no_answer_score"], gold_answers, metric=metric
        )
        above = best["no_answer_score"][best["no_answer_score"] > threshold]
        if above.size:
            threshold = (threshold + float(above.min())) / 2
        self.no_answer_threshold = threshold
        return threshold

    def signatures(self) -> list[Signature]:
        """The signatures of all tasks, and `n_best`."""
        signatures = super().signatures()
        if self.preprocessor is not None:
            signatures.append(Signature("n_best", self._serve_n_best, self.text_inputs()))
        return signatures

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to `answer`, `score`, `start`, `end` and `no_answer_probability`."""
        return choose_answers(self._serve_n_best(*texts), self.no_answer_threshold)

    def onnx_functions(self) -> onnx.Functions:
        """The signatures `serving_default` and `n_best`."""
        return {"serving_default": self._onnx_answers, "n_best": self._onnx_best}

    def _onnx_answers(self, model: onnx.OnnxModel, *texts: onnx.Tensor) -> dict[str, onnx.Answer]:
        best = {name: answer.tensor for name, answer in self._onnx_best(model, *texts).items()}
        chosen = onnx.chosen_answers(best, self.no_answer_threshold)
        return {name: onnx.Answer(value, (None,)) for name, value in chosen.items()}

    def _onnx_best(self, model: onnx.OnnxModel, question: onnx.Tensor, context: onnx.Tensor) -> dict[str, onnx.Answer]:
        tokenizer = model.tokenizer(self.preprocessor.tokenizer)
        questions, contexts = tokenizer.tokens(question), onnx.in_sight(tokenizer.tokens(context, with_offsets=True))
        fits = questions.counts <= self.preprocessor.max_question_length
        # What does not fit gets a window without a question and without a context.
        counts = tuple(fits.where(tokens.counts, 0) for tokens in (contexts, questions))
        room = self.preprocessor.max_length - 2 - self.preprocessor.tokenizer.num_pair_separators - counts[1]
        windows = onnx.windows_over(
            contexts, room, self.preprocessor.stride, tokenizer.tokenizer, questions=questions, counts=counts
        )
        config: Any = self.backbone.config
        rows = windows.rows._replace(segments=None) if config.num_segments == 1 else windows.rows
        logits = onnx.dense(model.head_states(rows), self.get_layer("span_head").dense)
        options = {"num_best": self.n_best, "max_answer_length": self.max_answer_length}
        best = onnx.best_spans(logits, windows, contexts, **options)
        best["no_answer_probability"] = fits.where(best["no_answer_probability"], NONE)
        shapes = {name: (None,) if name.startswith("no_answer") else (None, self.n_best) for name in best}
        return {name: onnx.Answer(value, shapes[name]) for name, value in best.items()}

    def onnx_outputs(self, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
        """`start_logits` and `end_logits` for rows of ids in an ONNX file, of all tokens."""
        logits = onnx.dense(model.head_states(rows), self.get_layer("span_head").dense)
        sides = ("start_logits", "end_logits")
        return {name: onnx.Answer(logits.take(index, 2), (None, None)) for index, name in enumerate(sides)}

    def _serve_n_best(self, *texts: Tensor) -> dict[str, Any]:
        return traced_once(self._serve_best, *texts)

    def _serve_best(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to the `n_best` best answers; -1 for all numbers in a row whose question is too long."""
        windows, fits = traced_once(self.preprocessor.windows_that_fit, texts)
        rows = windows.pop("rows")
        of_best = (self.n_best,)
        sizes = ((tf.float32, of_best), (tf.int32, of_best), (tf.int32, of_best), (tf.float32, ()))
        spans = WindowSpans(*in_parts(self._best_spans, windows, width=self.pipeline.width, sizes=sizes))
        best = merge_windows(self._in_sight(spans, rows, texts[1]), rows, texts[1])
        # An error would fail the whole batch, which may hold requests of several clients.
        return {**best, "no_answer_probability": tf.where(fits, best["no_answer_probability"], NONE)}

    def _in_sight(self, spans: WindowSpans, rows: tf.Tensor, contexts: tf.Tensor) -> WindowSpans:
        """Spans without whitespace at their ends, and with whole characters; none of whitespace alone."""
        shape, of_span = tf.shape(spans.starts), tf.repeat(rows, tf.shape(spans.starts)[1])
        flat = (tf.reshape(side, [-1]) for side in (spans.starts, spans.ends))
        *sides, is_seen = (
            tf.reshape(part, shape) for part in seen_spans(self.preprocessor.tokenizer, contexts, of_span, *flat)
        )
        starts, ends = (tf.where(is_seen, side, NONE) for side in sides)
        return spans._replace(scores=tf.where(is_seen, spans.scores, 2 * NEVER), starts=starts, ends=ends)

    def _best_spans(self, windows: dict[str, Any]) -> WindowSpans:
        logits = self.run({name: windows[name] for name in IDS})
        return best_spans(
            logits[START],
            logits[END],
            windows["starts"],
            windows["ends"],
            num_best=self.n_best,
            max_answer_length=self.max_answer_length,
        )


def _encoder_inputs(backbone: BertBackbone, preprocessor: SpanPreprocessor | None) -> dict[str, Any]:
    """The inputs; with segment 0 only for an encoder with one segment, or a tokenizer that gives no other to pairs."""
    inputs: dict[str, Any] = backbone.input
    tokenizer = getattr(preprocessor, "tokenizer", None)
    if backbone.config.num_segments != 1 and getattr(tokenizer, "second_segment", 1) != 0:
        return inputs
    return {**inputs, "segment_ids": ops.zeros_like(inputs["segment_ids"])}


def _answer_mask(inputs: dict[str, Any]) -> Any:
    """1 on [CLS] and on the context's tokens, int32 `(batch, sequence)`; the last real token is [SEP]."""
    next_is_real = ops.pad(inputs["padding_mask"][:, 1:], [[0, 0], [0, 1]])
    first = ops.ones_like(inputs["segment_ids"][:, :1])
    return ops.concatenate([first, (inputs["segment_ids"] * next_is_real)[:, 1:]], axis=1)
