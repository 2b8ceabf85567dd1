"""Answers to questions, cut out of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding.spans import NONE, WindowSpans, best_spans, choose_answers, merge_windows
from keras_bert_layers.export import Signature
from keras_bert_layers.layers import SpanHead
from keras_bert_layers.metrics import best_no_answer_threshold
from keras_bert_layers.preprocessing import BertPreprocessor, SpanPreprocessor
from keras_bert_layers.preprocessing.span_preprocessor import NO_OFFSET
from keras_bert_layers.tasks._length_batches import IDS
from keras_bert_layers.tasks._span_data import END, START
from keras_bert_layers.tasks._span_task import SpanTask
from keras_bert_layers.tasks._span_windows import in_parts
from keras_bert_layers.tasks._task import TEXT


@register
class BertQuestionAnswerer(SpanTask):
    """Extractive question answering: a question and a context in, a part of the context out.

    Every token of the context gets two logits, one for starting the answer and one for ending it; [CLS] stands for "no
    answer". A context that is too long is read through windows that overlap, in training and in answering.

    Texts are a tuple `(questions, contexts)`. Answers to train on, `y`, are a tuple `(starts, texts)` as in SQuAD, the
    starts counted in characters of the context; a row may also hold lists, of which the first answer counts, so that
    `(data.answer_starts, data.answers)` of `data.read_squad` can be given as it is; or one dictionary a row with
    `"answer_start"` and `"text"`. A row without an answer has `[]` or `""`.

    `fit` and `evaluate` see windows: `batch_size` is windows a step, loss and metrics are means over windows, and
    a window that does not hold the whole answer belongs to [CLS]. With `shuffle=False` the windows come in the order of
    the rows. A `tf.data.Dataset` yields `((questions, contexts), (starts, texts))` in batches; a step is then all
    windows of a batch. `answer` gives answers.

    A question that leaves no room for its context is an error here. An exported model answers the other rows of the
    batch, and that one with `answer` `""` and -1 for every number: `no_answer_probability` is -1 nowhere else.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `SpanPreprocessor`; with one, `fit`, `evaluate` and `answer` take raw text. A `BertPreprocessor`
            becomes one by `SpanPreprocessor.from_preprocessor`.
        max_answer_length: the longest answer, in tokens.
        n_best: how many answers compete for a probability; the signature `n_best` gives them all.
        no_answer_threshold: how much better than the best answer "no answer" must score, as a difference of logits, to
            be given; None always answers. `tune_threshold` finds one, for questions that may have no answer.
        name: the model's name.

    Returns:
        From a call on ids: `{"start_logits", "end_logits"}`, float32 `(batch, sequence)`, -1e9 at all places but [CLS]
        and the context's. From `predict` on texts: the same, one row a window, in the order of
        `preprocessor(texts)["rows"]`.

    Raises:
        TypeError: a backbone or a preprocessor that is none; answers in another form.
        ValueError: an argument out of range; an answer that does not stand where it should, a question that is too
            long (the row is named).

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
        self._check_parts(backbone, preprocessor)
        checks.positive_integer(owner, "max_answer_length", max_answer_length)
        checks.positive_integer(owner, "n_best", n_best)
        _check_threshold(no_answer_threshold)
        head = SpanHead(
            initializer_range=backbone.config.initializer_range, dtype=backbone.dtype_policy, name="span_head"
        )
        inputs = backbone.input
        hidden = backbone(inputs)["sequence_output"]
        start_logits, end_logits = head(hidden, answer_mask=_answer_mask(inputs))
        super().__init__(backbone, preprocessor, outputs={START: start_logits, END: end_logits}, name=name)
        self.max_answer_length = int(max_answer_length)
        self.n_best = int(n_best)
        self._no_answer_threshold = _check_threshold(no_answer_threshold)

    @property
    def no_answer_threshold(self) -> float | None:
        """Where the score of no answer less that of the best answer is greater, the answer is `""`; None: never."""
        return self._no_answer_threshold

    @no_answer_threshold.setter
    def no_answer_threshold(self, threshold: float | None) -> None:
        self._no_answer_threshold = _check_threshold(threshold)
        # The threshold is a constant in the traced graph of the answers.
        self._serve_functions = {key: graph for key, graph in self._serve_functions.items() if key[0] != "_serve"}

    def default_loss(self) -> Any:
        """Cross entropy of the start and of the end, over [CLS] and the context; `compile` takes their mean."""
        return {side: keras.losses.SparseCategoricalCrossentropy(from_logits=True) for side in (START, END)}

    def default_metrics(self) -> Any:
        """The share of windows with the right start, and with the right end."""
        return {side: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for side in (START, END)}

    def compile(self, optimizer: Any = "auto", loss: Any = "auto", *, loss_weights: Any = None, **kwargs: Any) -> None:
        """Sets how to train, as every task's `compile`; with the default loss, start and end weigh one half each."""
        if isinstance(loss, str) and loss == "auto" and loss_weights is None:
            loss_weights = {START: 0.5, END: 0.5}
        super().compile(optimizer, loss, loss_weights=loss_weights, **kwargs)

    def best_answers(self, x: tuple[Any, Any], batch_size: int = 32) -> dict[str, np.ndarray]:
        """The `n_best` best answers to each question, as the exported model's signature `n_best` gives them.

        Args:
            x: a tuple `(questions, contexts)`.
            batch_size: rows a step; windows go through the model 32 at a time, those of about equal length together,
                so a large number is quicker where lengths differ.

        Returns:
            `"answer"`, `"score"`, `"start"`, `"end"`, `(rows, n_best)`, the best first, padded with `b""` and -1;
            `"no_answer_probability"`, `"no_answer_score"`, `(rows,)`. See `decoding.decode_spans`. The threshold plays
            no part in them: it is `"no_answer_score"` that it is compared with.
        """
        return self._ask(self._serve_best, x, batch_size)

    def tune_threshold(
        self, x: tuple[Any, Any], gold_answers: Sequence[Sequence[str]], *, metric: str = "f1", batch_size: int = 32
    ) -> float:
        """Finds the `no_answer_threshold` that is best on questions whose answers are known, and keeps it.

        It is saved with the task and part of an exported model. Use other questions than those of the training, and
        others than those on which you report the result.

        Args:
            x: a tuple `(questions, contexts)`; some of the questions should have no answer.
            gold_answers: for each question all answers that count; `[]` where there is none.
            metric: what to make large, `"f1"` or `"exact_match"`.
            batch_size: rows a step.

        Returns:
            The threshold, halfway between the scores of the questions on its two sides, so that none of them stands on
            the edge, where float32 sums in another order would decide.

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

    def text_inputs(self) -> dict[str, Any]:
        """`question` and `context`."""
        return {"question": TEXT, "context": TEXT}

    def signatures(self) -> list[Signature]:
        """Those of all tasks, and `n_best`."""
        signatures = super().signatures()
        if self.preprocessor is not None:
            signatures.append(Signature("n_best", self._serve_n_best, self.text_inputs()))
        return signatures

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `answer`, `score`, `start`, `end` and `no_answer_probability`."""
        return choose_answers(self._serve_n_best(*texts), self.no_answer_threshold)

    def _serve_n_best(self, *texts: Any) -> dict[str, Any]:
        return traced_once(self._serve_best, *texts)

    def _serve_best(self, *texts: Any) -> dict[str, Any]:
        """Strings to the `n_best` best answers; -1 for all numbers of a row whose question is too long."""
        windows, fits = traced_once(self.preprocessor.windows_that_fit, texts)
        rows = windows.pop("rows")
        of_best = (self.n_best,)
        sizes = ((tf.float32, of_best), (tf.int32, of_best), (tf.int32, of_best), (tf.float32, ()))
        width = self._width(self.preprocessor.padding)
        spans = WindowSpans(*in_parts(self._best_spans, windows, width=width, sizes=sizes))
        best = merge_windows(spans, rows, texts[1])
        # An error would be one for the whole batch, which a server may have put together of several clients' requests.
        return {**best, "no_answer_probability": tf.where(fits, best["no_answer_probability"], NONE)}

    def _best_spans(self, windows: dict[str, Any]) -> WindowSpans:
        logits = self._run_model({name: windows[name] for name in IDS})
        return best_spans(
            logits[START],
            logits[END],
            windows["starts"],
            windows["ends"],
            num_best=self.n_best,
            max_answer_length=self.max_answer_length,
        )

    def _serve_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        return self._run_model(dict(zip(IDS, (token_ids, segment_ids, padding_mask), strict=True)))

    def _serve_tokens(self, *texts: Any) -> dict[str, Any]:
        """The windows of each row, `(batch, windows, sequence)`, all padding where a row has fewer than another.

        A row whose question is too long has none.
        """
        windows, _ = traced_once(self.preprocessor.windows_that_fit, texts)
        rows = windows.pop("rows")
        padding = {"token_ids": self.preprocessor.tokenizer.pad_id, "starts": NO_OFFSET, "ends": NO_OFFSET}
        num_rows = tf.size(texts[0])
        return {
            name: tf.RaggedTensor.from_value_rowids(tensor, rows, nrows=num_rows).to_tensor(padding.get(name, 0))
            for name, tensor in windows.items()
        }

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        config = super().get_config()
        config.update(
            max_answer_length=self.max_answer_length,
            n_best=self.n_best,
            no_answer_threshold=self.no_answer_threshold,
        )
        return config


def _answer_mask(inputs: dict[str, Any]) -> Any:
    """1 on [CLS] and on the context's tokens, int32 `(batch, sequence)`; the last real token is [SEP]."""
    next_is_real = ops.pad(inputs["padding_mask"][:, 1:], [[0, 0], [0, 1]])
    first = ops.ones_like(inputs["segment_ids"][:, :1])
    return ops.concatenate([first, (inputs["segment_ids"] * next_is_real)[:, 1:]], axis=1)


def _check_threshold(threshold: Any) -> float | None:
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not math.isfinite(threshold):
        rule = "be a finite number or None"
        raise TypeError(checks.message("BertQuestionAnswerer", "no_answer_threshold", rule, threshold))
    return float(threshold)
