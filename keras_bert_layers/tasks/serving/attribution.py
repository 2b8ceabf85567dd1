"""`Attribution`: integrated gradients, a score for each token that says how much it raised or lowered a logit.

Axes: R rows, S sequence, H hidden, F encoded features of columns beside a text, P points of a path, N = P * R rows at
points, K logits that a target is the sum of; T texts, which are rows, or one text whose windows are rows.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.custom_gradients import freed_with
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Ids, Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import COLUMNS, IDS
from keras_bert_layers.export import Signature
from keras_bert_layers.export.text_task import TextTask, refuse_columns
from keras_bert_layers.layers import BertEmbedding
from keras_bert_layers.preprocessing.preprocessors.long_texts import Windows
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.tasks.feeding.columns import as_rows, check_takes_text, is_single_row, num_rows
from keras_bert_layers.tasks.feeding.streams import texts_of_table
from keras_bert_layers.tasks.prediction.length_batches import with_progress
from keras_bert_layers.tasks.serving.attributed_rows import Rows, RowsOf, by_words, class_names, readable

#: How many points the first quadrature has.
FIRST_STEPS = 32
# Of all rows and points that are computed at once: gradients take some 60 kB for a token and a layer of BERT-base.
TOKENS_AT_ONCE = 2048


@dataclass(frozen=True)
class Attribution:
    """The scores of the tokens of a text for one logit; `attribute` of four tasks computes them.

    A score is the integrated gradient of the logit over the output of the embedding layer, on the straight path from a
    baseline: the same row with [PAD] (or [MASK]) in place of the text's tokens. Above 0, the token raised the logit.
    The scores add up to the difference of the logit between the text and the baseline. Where a text is read through
    windows, a token's score is the sum over those that show it, as they count in the task's pooling. Beside columns,
    the path also goes from the encoding of a row without values to that of the row, and each column has a score.
    `visualization.AttributionPicture` draws them.

    Args:
        target: what the logit stands for: a class, an answer, or a tag and its word.
        tokens: the tokens that the model read, special ones included, as `Tokenizer.readable_tokens` gives them; those
            of several windows once each.
        scores: float32 `(tokens,)`; 0 for special tokens, which the baseline has too.
        words: the words of the text as the model reads them (in lower case, for example), without special tokens.
        word_scores: float64 `(words,)`, the sums over the tokens of each word.
        starts: int32 `(tokens,)`, the byte of its text at which people see a token start; -1 for special tokens,
            prompts and questions, and for a token that another window of a token classifier shows with more context.
        ends: int32 `(tokens,)`, the byte after its last; -1 as above.
        difference: the logit of the text minus that of the baseline.
        error: how far the sum of the scores is from `difference`.
        steps: the number of points on the path at which gradients were computed.
        columns: the columns beside the text, and the crosses of columns, by Keras's names; none for a text alone.
        column_scores: float64 `(columns,)`, the sums over the encoded features of each; 0 for a missing value, and for
            a category that training did not have.

    References:
        Sundararajan et al. 2017, arXiv:1703.01365, sections 3 and 5; the error is that of their axiom of completeness.
    """

    target: str
    tokens: list[str]
    scores: np.ndarray
    words: list[str]
    word_scores: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    difference: float
    error: float
    steps: int
    columns: list[str] = field(default_factory=list)
    column_scores: np.ndarray = field(default_factory=lambda: np.zeros(0))


def attribute(
    task: keras.Model,
    rows_of: RowsOf,
    texts: Strings,
    target: object = None,
    *,
    baseline: str = "pad",
    tolerance: float = 1e-3,
    max_steps: int = 256,
    verbose: str | int = 0,
) -> Any:
    """Scores the tokens of texts by how much each raised the logit of an answer, with integrated gradients.

    The answer is, in a

    - `BertClassifier` and `BertCrossEncoder`: a class, or the number or score;
    - `BertQuestionAnswerer`: the best span, its start logit plus its end logit in the window in which it is best. The
      span is explained also where "no answer" is more probable;
    - `BertTokenClassifier`: a tag of a word, the logit of its first piece in the window in which it has most context.
      With a `crf` it is the word's own score (emission), without those of the tags beside it.

    Args:
        task: the task; its method `attribute` calls this function.
        rows_of: what the task explains: one of the functions of `attributed_rows`.
        texts: as in `answer`: a list, array or column of strings, or a tuple of two; a table; or a single row.
        target: what to explain, or a list with one for each text: a class, by its name or index; or a tuple of the
            index of a word, counted by the tokenizer, and the name of a tag. None is the highest logit of a classifier,
            the best span of a question answerer, which takes nothing else, or the tag other than "O" that is most
            probable for a word of the text.
        baseline: what stands in place of the text's tokens at the start of the path: `"pad"`, [PAD], or `"mask"`,
            [MASK]. Positions and segments stay.
        tolerance: the error that is accepted, as a share of the difference, or of 1 if that is smaller. Texts that
            exceed it are computed again with twice the points, 32 at first.
        max_steps: the most points. A text that is still above the tolerance, as may be in half precision, is named in
            a warning.
        verbose: as in `predict`.

    Returns:
        One `tasks.Attribution` for each text; for a single row, its own.

    Raises:
        TypeError, ValueError: what `answer` refuses; an unknown target or baseline; a text without words for a tag; no
            [MASK] in the vocabulary; the task has no preprocessor.
        RuntimeError: Keras runs on another backend than TensorFlow.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "##ness", "film"])
        >>> classifier = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> found = classifier.attribute("goodness film", target=1)
        >>> found.tokens, found.words
        (['[CLS]', 'good', '##ness', 'film', '[SEP]'], ['goodness', 'film'])
        >>> bool(abs(found.scores.sum() - found.difference) <= found.error + 1e-6)
        True
    """
    owner = type(task).__name__
    check_takes_text(task)
    checks.one_of(owner, "baseline", baseline, ["pad", "mask"])
    checks.positive_number(owner, "tolerance", tolerance)
    checks.positive_integer(owner, "max_steps", max_steps)
    if keras.backend.backend() != "tensorflow":
        cure = "Save the task, and load it with KERAS_BACKEND=tensorflow."
        raise RuntimeError(f"`{owner}`: `attribute` needs the backend tensorflow. {cure}")
    tokenizer = task.preprocessor.tokenizer
    fill = tokenizer.pad_id if baseline == "pad" else tokenizer.mask_id
    texts = texts_of_table(task.pipeline, texts)
    is_one = is_single_row(texts)
    columns = task.pipeline.columns(as_rows(texts) if is_one else texts)
    wanted = list(target) if isinstance(target, list | np.ndarray) else [target] * num_rows(columns)
    checks.length(owner, "target", wanted, num_rows(columns), rule="hold one for each text", unit="targets")
    explained = _explained(task, rows_of(task, columns, wanted), fill, tolerance, max_steps)
    made = list(with_progress(explained, len(wanted), verbose)) if wanted else []
    missed = [row for row, found in enumerate(made) if found.error > _largest_error(found.difference, tolerance)]
    if missed:
        received = f"rows {missed[:10]}{' and more' if len(missed) > 10 else ''} with a larger error"
        rule = f"the scores of every row must reach tolerance={tolerance:g} with max_steps={max_steps}"
        warnings.warn(checks.row_message(owner, rule, received, "Raise `max_steps`."), UserWarning, stacklevel=2)
    return made[0] if is_one else made


def _largest_error(difference: float, tolerance: float) -> float:
    return tolerance * max(1.0, abs(difference))


def special_ids(tokenizer: Tokenizer) -> list[int]:
    """The ids that a baseline keeps."""
    return [tokenizer.start_id, tokenizer.separator_id, tokenizer.pad_id]


def _explained(task: keras.Model, rows: Rows, fill: int, tolerance: float, max_steps: int) -> Iterator[Attribution]:
    """The attribution of each row, with twice the points as long as the error is too large."""
    tokenizer, spec = task.preprocessor.tokenizer, tf.TensorSpec([None, None], tf.int32)
    features = getattr(task.pipeline, "features", None)
    beside = {} if features is None else {COLUMNS: tf.TensorSpec([None, None], tf.float32)}
    signature = ({**dict.fromkeys(IDS, spec), **beside}, spec, spec, tf.TensorSpec([None, 3], tf.float32))
    task.predictor.warn_of_new_head()
    run = task.predictor.traced_once(types.MethodType(integral, task), signature)
    for given_row, target, name in rows:
        row = given_row if "places" in given_row else _without_padding(given_row)
        starts, ends, ids, places = row["starts"], row["ends"], row["tokens"], np.atleast_2d(row["places"])
        is_text = ~np.isin(ids, special_ids(tokenizer))
        inputs = {key: np.atleast_2d(row[key]) for key in IDS} | {key: given_row[key][None] for key in beside}
        given, steps = inputs["token_ids"], min(FIRST_STEPS, max_steps)
        others = np.where(np.isin(given, special_ids(tokenizer)), given, fill), np.array([target], np.int32)
        while True:
            found, (difference,) = (found.numpy() for found in run(inputs, *others, path(steps)))
            found, encoded = np.split(found, [given.shape[1]], axis=1)
            scores = np.zeros(len(ids), np.float32)
            np.add.at(scores, places[places >= 0], found[places >= 0])
            error = abs(float(scores.sum(dtype=np.float64) + encoded.sum(dtype=np.float64)) - float(difference))
            if steps == max_steps or error <= _largest_error(difference, tolerance):
                break
            steps = min(2 * steps, max_steps)
        tokens = readable(tokenizer, ids)
        words, sums = by_words(tokenizer, ids, is_text, row["begins_word"] > 0, scores)
        columns = ([], np.zeros(0)) if features is None else features.by_column(encoded[0])
        yield Attribution(name, tokens, scores, words, sums, starts, ends, float(difference), error, steps, *columns)


def _without_padding(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A row of tokens, as one of a long text with a single window."""
    length = row["padding_mask"].sum()
    row = {key: np.asarray(values[:length], np.int32) for key, values in row.items() if key != COLUMNS}
    return {**row, "tokens": row["token_ids"], "places": np.arange(len(row["token_ids"]))}


def path(steps: int) -> np.ndarray:
    """The points of Gauss-Legendre quadrature on [0, 1] between the two ends, float32 `(steps + 2, 3)`.

    The columns are the points; their weights in the integral, 0 for the ends; and their weights in the difference
    between the ends, 0 for the others.
    """
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    points = np.pad(np.stack([(nodes + 1) / 2, weights / 2, 0 * nodes], axis=1), [(1, 1), (0, 0)])
    points[0, 2], points[-1, 0], points[-1, 2] = -1, 1, 1
    return points.astype(np.float32)


def integral(
    task: TextTask, inputs: dict[str, Any], baseline_ids: Tensor, targets: Tensor, path: Tensor
) -> tuple[Any, Any]:
    """Integrated gradients of rows, a few points at a time, in TensorFlow's graph.

    Args:
        task: the task.
        inputs: the model's inputs, int32 `[R, S]` each; `"columns"` float32 `[R, F]`.
        baseline_ids: int32 `[R, S]`, the token ids at the start of the path.
        targets: int32 `[T, K]`: for each output of the task, in the order of their names, the index of a logit in the
            flattened logits of the text.
        path: what `path` returns.

    Returns:
        The scores, float32 `[R, S + F]`, 0 at padding, and the differences, float32 `[T]`.
    """
    num_rows, length = tf.unstack(tf.shape(baseline_ids))
    width = length + (tf.shape(inputs[COLUMNS])[1] if COLUMNS in inputs else 0)
    num_texts = tf.shape(targets)[0]
    at_once = tf.maximum(1, TOKENS_AT_ONCE // tf.maximum(1, num_rows * length))

    def add(start: Tensor, scores: Tensor, differences: Tensor) -> tuple[Any, Any, Any]:
        points = path[start : start + at_once]  # [P, 3]
        number = tf.shape(points)[0]
        rows = tf.nest.map_structure(lambda ids: tf.tile(ids, [number, 1]), (inputs, baseline_ids, targets))
        products, logits = _at_points(task, tf.repeat(points[:, 0], num_rows), *rows)
        scores += tf.tensordot(points[:, 1], tf.reshape(products, [number, num_rows, width]), 1)
        differences += tf.tensordot(points[:, 2], tf.reshape(logits, [number, num_texts]), 1)
        return start + at_once, scores, differences

    state = (tf.constant(0), tf.zeros([num_rows, width]), tf.zeros([num_texts]))
    return tf.while_loop(lambda start, *_: start < tf.shape(path)[0], add, state, parallel_iterations=1)[1:]


def _at_points(
    task: TextTask, shares: Tensor, inputs: dict[str, Any], baseline_ids: Tensor, targets: Tensor
) -> tuple[Any, Any]:
    """Gradients times changes at points of paths, summed over H, float32 `[N, S + F]`; and the targets `[P * T]`."""
    paths: dict[str, tuple[Any, Any]] = {}
    read, mask = inputs, inputs["padding_mask"] > 0
    if isinstance(task.long_texts, Windows):
        shape = [tf.shape(targets)[0], -1, tf.shape(baseline_ids)[1]]
        read = {name: tf.reshape(ids, shape) for name, ids in inputs.items()}  # windows by text

    def between(name: str, start: Tensor, end: Tensor) -> Any:
        share = tf.reshape(shares, [-1] + [1] * (len(end.shape) - 1))
        paths[name] = start + share * (end - start), end - start
        tape.watch(paths[name][0])
        return paths[name][0]

    def embed(layer: BertEmbedding, token_ids: Tensor, segment_ids: Tensor, padding_mask: Tensor) -> Any:
        # [PAD] has a position of its own in RoBERTa. The baseline has the positions of the text.
        positions = layer.counted_positions(token_ids, None) if layer.position_offset else None
        both = (layer(ids, segment_ids, positions, padding_mask) for ids in (baseline_ids, token_ids))
        return between("text", *(tf.cast(hidden, tf.float32) for hidden in both))  # [N, S, H]

    with freed_with(task), tf.GradientTape(watch_accessed_variables=False) as tape:
        if COLUMNS in inputs:
            read = {**read, COLUMNS: between(COLUMNS, task.pipeline.features.missing(), inputs[COLUMNS])}
        outputs = tf.nest.flatten(_outputs(task, read, embed))
        rows = [tf.reshape(output, [tf.shape(targets)[0], -1]) for output in outputs]
        logits = tf.add_n([tf.gather(row, targets[:, i], batch_dims=1) for i, row in enumerate(rows)])
    gradients = tape.gradient(logits, {name: point for name, (point, _) in paths.items()})
    products = {name: gradients[name] * change for name, (_, change) in paths.items()}
    products["text"] = tf.where(mask, tf.reduce_sum(products["text"], axis=-1), 0.0)
    return tf.concat([products[name] for name in ("text", COLUMNS) if name in products], axis=1), logits


def _outputs(model: keras.Model, inputs: Ids, embed: Callable[..., Any]) -> Any:
    """The outputs of a functional model, with `embed` called in place of the embedding layer, which it gets first."""

    def operation(layer: keras.layers.Layer) -> Any:
        if isinstance(layer, BertBackbone):
            return lambda inputs, **_: _outputs(layer, inputs, embed)
        return functools.partial(embed, layer) if isinstance(layer, BertEmbedding) else layer

    return model._run_through_graph(inputs, operation_fn=operation)


def attribution_signature(task: TextTask) -> Signature:
    """The signature of what `attribute(texts, max_steps=32)` returns, in graph.

    Returns:
        A signature with the outputs `"target"`, the highest logit's class; `"token"`, `"score"`, `"start"` and `"end"`,
        `(batch, sequence)`, padded with `""`, 0, -1 and -1; and `"difference"` and `"error"`, `(batch,)`.

    Raises:
        ValueError: the task is neither a classifier nor a cross encoder; it has no preprocessor.
    """
    if not getattr(task, "attributes_classes", False):
        rule = "name 'attributions' for a BertClassifier or a BertCrossEncoder only"
        raise ValueError(checks.message(type(task).__name__, "signatures", rule, ["attributions"]))
    check_takes_text(task)
    _check_rows(task)
    return Signature("attributions", types.MethodType(_serve, task), task.text_inputs())


def _check_rows(task: TextTask) -> None:
    refuse_columns(type(task).__name__, task, "`attribute` scores columns too.")
    checks.instance(type(task).__name__, "backbone", task.backbone, BertBackbone)
    if task.long_texts is not None:
        cure = "`attribute` reads all of a long text."
        rule = "be None for the signature 'attributions', which reads one row of `max_length` tokens"
        raise ValueError(checks.message(type(task).__name__, "long_texts", rule, task.long_texts, cure))


def _serve(task: keras.Model, *texts: Any) -> dict[str, Any]:
    tokenizer = task.preprocessor.tokenizer
    row = task.preprocessor.with_offsets(texts if len(texts) > 1 else texts[0], prompt=task.pipeline.prompt)
    inputs, ids = {name: row[name] for name in IDS}, row["token_ids"]
    is_special = tf.reduce_any(ids[:, :, None] == special_ids(tokenizer), axis=-1)
    baseline_ids = tf.where(is_special, ids, tokenizer.pad_id)
    highest = tf.argmax(task.run(inputs), axis=-1, output_type=tf.int32)
    scores, differences = integral(task, inputs, baseline_ids, highest[:, None], tf.constant(path(FIRST_STEPS)))
    return {
        "target": tf.gather(class_names(task), highest),
        "token": tf.where(row["padding_mask"] > 0, tf.gather(tf.constant(tokenizer.readable_tokens()), ids), ""),
        "score": scores,
        "start": row["starts"],
        "end": row["ends"],
        "difference": differences,
        "error": tf.abs(tf.reduce_sum(scores, axis=1) - differences),
    }
