"""`Attribution`: integrated gradients, a score for each token that says how much it raised or lowered a logit.

Axes: R rows, S sequence, H hidden, P points of a path, N = P * R rows at points, K logits that a target is the sum of.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.custom_gradients import freed_with
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import BertEmbedding
from keras_bert_layers.tasks.inputs.columns import num_rows, on_host
from keras_bert_layers.tasks.prediction.length_batches import IDS, plan
from keras_bert_layers.tasks.serving.answers import as_rows, check_takes_text, is_single_row

#: How many points the first quadrature has.
FIRST_STEPS = 32
# Of all rows and points that are computed at once: gradients take some 60 kB for a token and a layer of BERT-base.
TOKENS_AT_ONCE = 2048
_BACKENDS = ("tensorflow", "jax", "torch")
_OUTSIDE = "O"

#: The model's inputs with `"starts"` and `"ends"`, int32 `[R, S]` each; the targets, as in `integral`; their names.
Rows = tuple[dict[str, Any], Any, list[str]]


@dataclass(frozen=True)
class Attribution:
    """The scores of the tokens of a text for one logit; `attribute` of four tasks computes them.

    A score is the integrated gradient of the logit over the output of the embedding layer, on the straight path from a
    baseline: the same row with [PAD] (or [MASK]) in place of the text's tokens. Above 0, the token raised the logit. The
    scores add up to the difference of the logit between the text and the baseline. `visualization.AttributionPicture`
    draws them.

    Args:
        target: what the logit stands for: a class, an answer, or a tag and its word.
        tokens: the tokens that the model read, special ones included.
        scores: float64 `(tokens,)`; 0 for special tokens, which the baseline has too.
        words: the words of the text as the model reads them (in lower case, for example), without special tokens.
        word_scores: float64 `(words,)`, the sums over the tokens of each word.
        starts: int32 `(tokens,)`, the byte of its text at which a token starts; -1 for special tokens, prompts and
            questions, and where two windows share a token for the one in which it has less context.
        ends: int32 `(tokens,)`, the byte after its last; -1 as above.
        difference: the logit of the text minus that of the baseline.
        error: how far the sum of the scores is from `difference`.
        steps: the number of points on the path at which gradients were computed.

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


def attribute(
    task: Any,
    texts: Any,
    target: Any = None,
    *,
    baseline: str = "pad",
    tolerance: float = 1e-3,
    max_steps: int = 256,
) -> Any:
    """Scores the tokens of texts by how much each raised the logit of an answer, with integrated gradients.

    The answer is, in a

    - `BertClassifier` and `BertCrossEncoder`: a class, or the number or score;
    - `BertQuestionAnswerer`: the best span, its start logit plus its end logit in the window in which it is best. The
      span is explained also where "no answer" is more probable;
    - `BertTokenClassifier`: the tag of a word, the logit of its first piece in the window in which it has most context.
      With a `crf` it is the word's own score (emission), without those of the tags beside it.

    Args:
        task: the task; this function is a method of it.
        texts: as in `answer`: a list, array or column of strings, or a tuple of two; or a single row.
        target: what to explain, or a list with one for each text. None is the highest logit of a classifier, the best
            span, or the word whose tag is most probable, among those with another tag than "O" if there are any.
            Otherwise a class, by its name or index; or a word, by its index among the words of the tokenizer, or a
            tuple of the index and the name of a tag. A question answerer takes none.
        baseline: what stands in place of the text's tokens at the start of the path: `"pad"`, [PAD], or `"mask"`,
            [MASK]. Positions and segments stay.
        tolerance: the error that is accepted, as a share of the difference, or of 1 if that is smaller. Texts that
            exceed it are computed again with twice the points, 32 at first.
        max_steps: the most points. A text that is still above the tolerance is named in a warning.

    Returns:
        One `tasks.Attribution` for each text; for a single row, its own.

    Raises:
        TypeError, ValueError: what `answer` refuses; an unknown target or baseline; a text without words for a tag; no
            [MASK] in the vocabulary; the task has no preprocessor.
        RuntimeError: Keras runs on a backend without gradients.
    """
    owner = type(task).__name__
    check_takes_text(task)
    checks.one_of(owner, "baseline", baseline, ["pad", "mask"])
    checks.positive_number(owner, "tolerance", tolerance)
    checks.positive_integer(owner, "max_steps", max_steps)
    if keras.backend.backend() not in _BACKENDS:
        raise RuntimeError(f"`{owner}`: `attribute` needs gradients. Received: backend {keras.backend.backend()!r}.")
    is_one = is_single_row(texts)
    columns = task.pipeline.columns(as_rows(texts) if is_one else task.pipeline.from_table(texts)[0])
    wanted = target if isinstance(target, list) else [target] * num_rows(columns)
    checks.length(owner, "target", wanted, num_rows(columns), rule="hold one for each text", unit="targets")
    if not wanted:
        return []
    inputs, targets, names = task._rows_to_attribute(columns, wanted)
    inputs = {name: np.asarray(values, np.int32) for name, values in inputs.items()}
    offsets = inputs.pop("starts"), inputs.pop("ends")
    tokenizer, ids = task.preprocessor.tokenizer, inputs["token_ids"]
    is_text = ~np.isin(ids, special_ids(tokenizer))
    baseline_ids = np.where(is_text, tokenizer.pad_id if baseline == "pad" else tokenizer.mask_id, ids)
    found = _integrated(task, inputs, baseline_ids, np.asarray(targets, np.int32), tolerance, max_steps)
    errors, is_open = found[-2:]
    if is_open.any():
        cure = "Raise `max_steps`, or read `error` of each row."
        received = f"errors of up to {errors.max():.2g}, in rows {np.flatnonzero(is_open)[:10].tolist()} and so on"
        rule = f"`attribute` must reach tolerance={tolerance:g} within max_steps={max_steps}"
        warnings.warn(checks.row_message(owner, rule, received, cure), UserWarning, stacklevel=2)
    made = [
        _attribution(
            tokenizer,
            names[row],
            is_text[row, :length],
            ids[row, :length],
            *(part[row] for part in (*offsets, *found[:-1])),
        )
        for row, length in enumerate(inputs["padding_mask"].sum(axis=1))
    ]
    return made[0] if is_one else made


def special_ids(tokenizer: Any) -> list[int]:
    """The ids that a baseline keeps."""
    return [tokenizer.start_id, tokenizer.separator_id, tokenizer.pad_id]


def _attribution(
    tokenizer: Any,
    name: str,
    is_text: Any,
    ids: Any,
    starts: Any,
    ends: Any,
    scores: Any,
    difference: Any,
    steps: Any,
    error: Any,
) -> Attribution:
    """The attribution of a row, with the tokens joined to words."""
    size = len(ids)
    scores = scores[:size]
    continues = np.array(tokenizer.continues_word())[ids] & np.roll(is_text, 1)
    numbers = np.cumsum(is_text & ~continues)[is_text] - 1
    words = tokenizer.detokenize(tf.RaggedTensor.from_value_rowids(ids[is_text], numbers)).numpy()
    sums = np.bincount(numbers, scores[is_text], minlength=len(words))
    tokens = [tokenizer.id_to_token(int(token_id)) for token_id in ids]
    words, numbers = [word.decode() for word in words], (float(difference), float(error), int(steps))
    return Attribution(name, tokens, scores, words, sums, starts[:size], ends[:size], *numbers)


# What each task explains: columns of texts and a target for each row to `Rows`.


def class_rows(task: Any, columns: Any, wanted: list[Any]) -> Rows:
    """The rows of a classifier or a cross encoder, and a class of each."""
    task.pipeline.look_for_cuts(columns)
    inputs = on_host(functools.partial(task.preprocessor.with_offsets, prompt=task.pipeline.prompt), columns)
    names = class_names(task)
    highest = task.predict(columns, verbose=0).argmax(axis=-1) if None in wanted else wanted
    indices = {key: index for index, name in enumerate(names) for key in (name, index)}
    given = [int(best) if one is None else one for one, best in zip(wanted, highest, strict=True)]
    found = [indices[checks.one_of(type(task).__name__, "target", one, indices)] for one in given]
    return inputs, [[index] for index in found], [names[index] for index in found]


def class_names(task: Any) -> list[str]:
    """A name for each logit of a classifier or a cross encoder."""
    return task._labels.answers if task.output.shape[-1] > 1 else ["score"]


def span_rows(task: Any, columns: Any, wanted: list[Any]) -> Rows:
    """The windows of a question answerer that hold the best spans, and these."""
    windows = {name: np.asarray(values) for name, values in on_host(task.preprocessor, columns).items()}
    chosen, targets, names = [], [], []
    for row, logits in enumerate(task.predict_stream(columns)):
        checks.one_of(type(task).__name__, "target", wanted[row], [None])
        start, end = logits["start_logits"], logits["end_logits"]
        of_row, width = np.flatnonzero(windows["rows"] == row), start.shape[1]
        is_context = windows["starts"][of_row, :width] >= 0
        length = np.arange(width) - np.arange(width)[:, None]  # of a span from a token (row) to a token (column)
        is_span = is_context[:, :, None] & is_context[:, None] & (length >= 0) & (length < task.max_answer_length)
        spans = np.where(is_span, start[:, :, None] + end[:, None], -np.inf)
        window, first, last = np.unravel_index(spans.argmax(), spans.shape)  # [CLS] in a context without tokens
        chosen.append(of_row[window])
        targets.append([last, first])  # the end's logits come first
        place = (max(windows[side][of_row[window], at], 0) for side, at in (("starts", first), ("ends", last)))
        names.append(_part(columns[1][row], *place))
    return {name: windows[name][chosen] for name in (*IDS, "starts", "ends")}, targets, names


def tag_rows(task: Any, columns: Any, wanted: list[Any]) -> Rows:
    """The windows of a token classifier in which words have most context, and a tag of each word."""
    owner, tag_names = type(task).__name__, np.array(task.tag_names)
    pieces = on_host(task.pipeline.aligner().align_pieces, *task.pipeline.answer_columns(columns))
    places, word_ids, *offsets = (part.numpy() for part in pieces[1:])
    logits = task.predict(columns, verbose=0)
    tags, shares = map(
        ops.convert_to_numpy, task._decode(logits, np.arange(logits.shape[1]) <= word_ids.max(axis=1)[:, None])
    )
    inputs = {name: values.numpy() for name, values in pieces.inputs.items()}
    for name, values in zip(("starts", "ends"), offsets, strict=True):
        inputs[name] = np.full(inputs["token_ids"].shape, -1)
        inputs[name].flat[places[places >= 0]] = values[places >= 0]
    chosen, targets, names = [], [], []
    for row, target in enumerate(wanted):
        count = word_ids[row].max() + 1
        is_entity = tag_names[tags[row, :count]] != _OUTSIDE
        best = np.where(is_entity | ~is_entity.any(), shares[row, :count], -1).argmax() if count else 0
        word, *tag = target if isinstance(target, tuple) else [int(best) if target is None else target]
        checks.one_of(owner, f"target of row {row}", word, range(count), "It is the index of a word.")
        tag = checks.one_of(owner, "target", *tag, task.tag_names) if tag else tag_names[tags[row, word]]
        of_word = np.flatnonzero(word_ids[row] == word)
        window, position = divmod(places[row, of_word[0]], inputs["token_ids"].shape[1])
        chosen.append(window)
        targets.append([position * len(tag_names) + task.tag_names.index(tag)])
        names.append(f"{tag} of {_part(columns[row], offsets[0][row, of_word[0]], offsets[1][row, of_word[-1]])!r}")
    return {name: values[chosen] for name, values in inputs.items()}, targets, names


def _part(text: Any, start: int, end: int) -> str:
    """The part of a text between two bytes."""
    return (text if isinstance(text, bytes) else str(text).encode())[start:end].decode(errors="replace")


def _integrated(
    task: Any, inputs: dict[str, np.ndarray], baseline_ids: np.ndarray, targets: np.ndarray, tolerance: float, most: int
) -> tuple[np.ndarray, ...]:
    """Integrates rows, those of similar length together, and again with twice the points while errors are too large.

    Returns:
        The scores, float64 `[R, S]`; the differences, float64 `[R]`; the numbers of points; the errors; and whether the
        error is too large.
    """
    ids = tf.TensorSpec([None, None], tf.int32)
    signature = (dict.fromkeys(IDS, ids), ids, ids, tf.TensorSpec([None, 3], tf.float32))
    run = task._predictor.traced_once(types.MethodType(integral, task), signature)
    lengths, steps = inputs["padding_mask"].sum(axis=1), min(FIRST_STEPS, most)
    scores, differences, counts = np.zeros(baseline_ids.shape), np.zeros(len(lengths)), np.zeros(len(lengths), int)
    is_open = np.ones(len(lengths), bool)
    while True:
        rows = np.flatnonzero(is_open)
        for order in plan(lengths[rows], width=int, max_rows=None, max_tokens=TOKENS_AT_ONCE // steps):
            chosen = rows[order]
            width = lengths[chosen].max()
            of_ids = keras.tree.map_structure(lambda ids: ids[chosen, :width], (inputs, baseline_ids))  # noqa: B023
            given = keras.tree.map_structure(ops.convert_to_tensor, (*of_ids, targets[chosen], path(steps)))
            found = map(ops.convert_to_numpy, run(*given))
            scores[chosen, :width], differences[chosen] = found
            counts[chosen] = steps
        errors = np.abs(scores.sum(axis=1) - differences)
        is_open = errors > tolerance * np.maximum(1, np.abs(differences))
        if steps == most or not is_open.any():
            return scores, differences, counts, errors, is_open
        steps = min(2 * steps, most)


def path(steps: int) -> np.ndarray:
    """The points of Gauss-Legendre quadrature on [0, 1] between the two ends, float32 `(steps + 2, 3)`.

    The columns are the points; their weights in the integral, 0 for the ends; and their weights in the difference
    between the ends, 0 for the others.
    """
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    points = np.pad(np.stack([(nodes + 1) / 2, weights / 2, 0 * nodes], axis=1), [(1, 1), (0, 0)])
    points[0, 2], points[-1, 0], points[-1, 2] = -1, 1, 1
    return points.astype(np.float32)


def integral(task: Any, inputs: dict[str, Any], baseline_ids: Any, targets: Any, path: Any) -> tuple[Any, Any]:
    """Integrated gradients of rows, a few points at a time; in TensorFlow's graphs, or eagerly.

    Args:
        task: the task.
        inputs: the model's inputs, int32 `[R, S]` each.
        baseline_ids: int32 `[R, S]`, the token ids at the start of the path.
        targets: int32 `[R, K]`: for each output of the task, in the order of their names, the index of a logit in the
            flattened logits of the row.
        path: what `path` returns.

    Returns:
        The scores, float32 `[R, S]`, 0 at padding, and the differences, float32 `[R]`.
    """
    num_points, (num_rows, length) = ops.shape(path)[0], ops.shape(baseline_ids)
    at_once = ops.maximum(1, TOKENS_AT_ONCE // ops.maximum(1, num_rows * length))

    def add(start: Any, scores: Any, differences: Any) -> tuple[Any, Any, Any]:
        points = path[start : start + at_once]  # [P, 3]
        number = ops.shape(points)[0]
        rows = keras.tree.map_structure(lambda ids: ops.tile(ids, (number, 1)), (inputs, baseline_ids, targets))
        products, logits = _at_points(task, *rows, ops.repeat(points[:, 0], num_rows))
        scores += ops.tensordot(points[:, 1], ops.reshape(products, (number, num_rows, length)), 1)
        differences += ops.tensordot(points[:, 2], ops.reshape(logits, (number, num_rows)), 1)
        return start + at_once, scores, differences

    state = (ops.zeros((), "int32"), ops.zeros((num_rows, length)), ops.zeros((num_rows,)))
    if keras.backend.backend() == "tensorflow":
        return tf.while_loop(lambda start, *_: start < num_points, add, state, parallel_iterations=1)[1:]
    while state[0] < num_points:
        state = add(*state)
    return state[1:]


def _at_points(task: Any, inputs: dict[str, Any], baseline_ids: Any, targets: Any, shares: Any) -> tuple[Any, Any]:
    """Gradients at points of the path, float32 `[N, S]`: sums over H of gradient times change; and the targets `[N]`."""

    def target_at(offset: Any) -> tuple[Any, tuple[Any, Any]]:
        changes = []

        def embed(layer: BertEmbedding, token_ids: Any, segment_ids: Any, padding_mask: Any) -> Any:
            # [PAD] has a position of its own in RoBERTa. The baseline has the positions of the text.
            positions = layer._counted_positions(token_ids, None) if layer.position_offset else None
            given = ((ids, segment_ids, positions, padding_mask) for ids in (baseline_ids, token_ids))
            start, end = (ops.cast(layer(*arguments), "float32") for arguments in given)
            changes.append(end - start)
            return start + shares[:, None, None] * changes[0] + offset  # [N, S, H]

        outputs = keras.tree.flatten(_outputs(task, inputs, embed))
        logits = [ops.reshape(output, (ops.shape(targets)[0], -1)) for output in outputs]
        chosen = [ops.take_along_axis(row, targets[:, i : i + 1], axis=1)[:, 0] for i, row in enumerate(logits)]
        target = functools.reduce(ops.add, chosen)
        return ops.sum(target), (target, changes[0])

    with freed_with(task):
        offset = ops.zeros((*ops.shape(baseline_ids), task.backbone.config.hidden_dim))
        gradient, (target, change) = _gradient(target_at, offset)
        return ops.where(inputs["padding_mask"] > 0, ops.sum(gradient * change, axis=-1), 0.0), target


def _outputs(model: Any, inputs: Any, embed: Callable[..., Any]) -> Any:
    """The outputs of a functional model, with `embed` called in place of the embedding layer, which it gets first."""

    def operation(layer: Any) -> Any:
        if isinstance(layer, BertBackbone):
            return lambda inputs, **_: _outputs(layer, inputs, embed)
        return functools.partial(embed, layer) if isinstance(layer, BertEmbedding) else layer

    return model._run_through_graph(inputs, operation_fn=operation)


def _gradient(function: Callable[[Any], tuple[Any, Any]], point: Any) -> tuple[Any, Any]:
    """The gradient of a function's first result at a point, and its second result."""
    if keras.backend.backend() == "jax":
        return __import__("jax").grad(function, has_aux=True)(point)
    if keras.backend.backend() == "torch":
        value, other = function(point.requires_grad_())
        return __import__("torch").autograd.grad(value, point)[0], other
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(point)
        value, other = function(point)
    return tape.gradient(value, point), other
