"""Runs a model over any number of windows in parts, and tags words by all their pieces; in graph.

Axes: B batch, P pieces of a row, U words of a row, N pieces and M words of the batch, C tags.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Outputs
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor, padded_width
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, AlignedWords

# With more windows at once, the attention scores of BERT-base over 384 tokens take more than a few 100 MB.
WINDOWS_PER_PART = 32


def in_parts(
    function: Callable[[dict[str, tf.Tensor]], tuple[tf.Tensor, ...]],
    windows: dict[str, tf.Tensor],
    *,
    width: Callable[[tf.Tensor], tf.Tensor | int],
    sizes: tuple[tuple[Any, tuple[int | None, ...]], ...],
) -> tuple[tf.Tensor, ...]:
    """The outputs of a function for windows, computed in parts of similar length.

    Args:
        function: takes windows and returns tensors, windows first.
        windows: tensors `[W, S]`, among them `"padding_mask"`.
        width: maps the lengths of some windows to the width that they are padded to.
        sizes: the dtype of each output of the function, and its axes after the windows.

    Returns:
        The outputs for all windows, in their order.
    """
    lengths = tf.reduce_sum(windows["padding_mask"], axis=1)  # [W]
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    num_parts = tf.maximum((tf.size(order) + WINDOWS_PER_PART - 1) // WINDOWS_PER_PART, 1)
    results = tuple(
        tf.TensorArray(dtype, num_parts, element_shape=(None, *axes), infer_shape=False) for dtype, axes in sizes
    )

    def one_part(part: tf.Tensor, results: tuple[tf.TensorArray, ...]) -> tuple[tf.Tensor, tuple[tf.TensorArray, ...]]:
        chosen = order[part * WINDOWS_PER_PART : (part + 1) * WINDOWS_PER_PART]
        needed = width(tf.gather(lengths, chosen))
        outputs = function({name: tf.gather(tensor, chosen)[:, :needed] for name, tensor in windows.items()})
        return part + 1, tuple(result.write(part, output) for result, output in zip(results, outputs, strict=True))

    _, results = tf.while_loop(
        lambda part, _: part < num_parts, one_part, (tf.constant(0), results), parallel_iterations=1
    )
    position = tf.math.invert_permutation(order)
    return tuple(tf.gather(result.concat(), position) for result in results)


def states_of_windows(
    run: Callable[[dict[str, tf.Tensor]], Any],
    windows: dict[str, tf.Tensor],
    preprocessor: BertPreprocessor,
    outputs: Outputs,
) -> Any:
    """The outputs of a model for any number of windows, float32 `(windows, ...)`.

    Args:
        run: the model; returns a tensor, or a dictionary of them.
        windows: its inputs.
        preprocessor: made them.
        outputs: its symbolic outputs, `keras.KerasTensor`; None in a shape, after the first, is the axis of tokens.
    """
    sequence = tf.shape(windows["token_ids"])[1]
    sizes = tuple((tf.float32, tuple(output.shape[1:])) for output in tf.nest.flatten(outputs))

    def padded(part: dict[str, tf.Tensor]) -> tuple[tf.Tensor, ...]:
        missing = sequence - tf.shape(part["token_ids"])[1]
        paddings = [[[0, 0], *([0, missing if size is None else 0] for size in axes)] for _, axes in sizes]
        return tuple(map(tf.pad, tf.nest.flatten(run(part)), paddings))

    width = functools.partial(padded_width, padding=preprocessor.padding, max_length=preprocessor.max_length)
    return tf.nest.pack_sequence_as(outputs, in_parts(padded, windows, width=width, sizes=sizes))


#: What decides a word's tag: transformers' names, `aggregation_strategy` of its `TokenClassificationPipeline`.
AGGREGATIONS = ("first", "average", "max", "simple")


class TaggedWords(NamedTuple):
    """The arguments of `decode_entities` about words, `(batch, words)` each."""

    tags: tf.Tensor
    scores: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def tags_of_pieces(logits: tf.Tensor, pieces: AlignedWords, *, aggregation: str) -> TaggedWords:
    """Tags each word by all of its pieces.

    Args:
        logits: float32 `[windows, S, C]`.
        pieces: the pieces of the words, as `WordAligner.align_pieces` returns them.
        aggregation: "average", the most probable tag of the mean of the pieces' probabilities; or "max", the tag of the
            piece whose tag is most probable, the first of several.

    Returns:
        The tag of each word and its probability there; the start of its first piece and the end of its last.
    """
    is_piece = pieces.places != NO_WORD
    logits = tf.reshape(logits, [-1, logits.shape[-1]])
    probabilities = tf.nn.softmax(tf.gather(logits, tf.boolean_mask(pieces.places, is_piece)))  # [N, C]
    before = tf.pad(pieces.word_ids, [[0, 0], [1, 0]], constant_values=NO_WORD)[:, :-1]
    begins_word = is_piece & (pieces.word_ids != before)  # [B, P]
    word = tf.cumsum(tf.cast(tf.boolean_mask(begins_word, is_piece), tf.int32)) - 1  # [N]
    num_words = tf.reduce_sum(tf.cast(begins_word, tf.int32))
    if aggregation == "average":
        means = tf.math.unsorted_segment_mean(probabilities, word, num_words)  # [M, C]
        tags, scores = tf.argmax(means, axis=1, output_type=tf.int32), tf.reduce_max(means, axis=1)
    else:
        best = tf.reduce_max(probabilities, axis=1)  # [N]
        scores = tf.math.unsorted_segment_max(best, word, num_words)
        places = tf.range(tf.size(best))
        chosen = tf.where(best == tf.gather(scores, word), places, tf.size(best))
        chosen = tf.math.unsorted_segment_min(chosen, word, num_words)
        tags = tf.argmax(tf.gather(probabilities, chosen), axis=1, output_type=tf.int32)
    ends = tf.math.unsorted_segment_max(tf.boolean_mask(pieces.ends, is_piece), word, num_words)
    num_rows = tf.shape(begins_word, tf.int64)[0]
    rows = tf.where(begins_word)[:, 0]

    def by_row(values: tf.Tensor) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_value_rowids(values, rows, nrows=num_rows, validate=False)
        return ragged.to_tensor(NO_WORD)

    starts = tf.boolean_mask(pieces.starts, begins_word)
    return TaggedWords(tf.maximum(by_row(tags), 0), *map(by_row, (scores, starts, ends)))
