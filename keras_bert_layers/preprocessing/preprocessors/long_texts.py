"""What a task reads of a text that is longer than `max_length`: `HeadTail` or `Windows`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Strings
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import (
    BertPreprocessor,
    as_strings,
    keep_tokens,
    rest_of_budget,
    split_pair,
)
from keras_bert_layers.preprocessing.preprocessors.windows import lay_windows, row_lengths

#: The poolings of `layers.WindowPooling`, which a preprocessor cannot import.
POOLINGS = ("mean", "max", "attention")
#: The key of the row that each window belongs to, int32 `(windows,)`, beside the ids.
WINDOW_ROWS = "window_rows"
# Sun et al. keep 128 tokens of the head where 510 fit.
_HEAD, _WHOLE = 128, 510


@register
@dataclass(frozen=True, kw_only=True)
class HeadTail:
    """Reads the first and the last tokens of a text that is longer than `max_length`, in one row.

    The preprocessor decides how many tokens of a text fit, and this rule which ones. Of a pair, that is usually the
    second text: the default truncation keeps a first text whole that needs less than half of the room. A text that fits
    is read as without the rule.

    Args:
        head: how many tokens are from the beginning; None for 128 of 510, in proportion to the room. The others are
            from the end.

    Raises:
        TypeError, ValueError: `head` is not an integer of at least 1.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e"])
        >>> preprocessor = kbl.BertPreprocessor(tokenizer, max_length=5)
        >>> HeadTail(head=1)(preprocessor, ["a b c d e"])["token_ids"].numpy().tolist()
        [[2, 4, 7, 8, 3]]

    References:
        Sun et al. 2019, arXiv:1905.05583, section 5.3.1: on IMDb with 512 tokens, a test error of 5.42 % with 128 + 382
        tokens, 5.63 % with the first and 5.44 % with the last 510.
    """

    head: int | None = None

    def __post_init__(self) -> None:
        checks.optional(checks.positive_integer, "HeadTail", "head", self.head)

    def check(self, preprocessor: BertPreprocessor, *, pairs: bool = False) -> None:
        """Refuses a preprocessor that keeps the end of long texts; ValueError."""
        if (side := preprocessor.truncation_side) != "right":
            cure = "`HeadTail` reads both ends of a text."
            raise ValueError(checks.message("HeadTail", "preprocessor.truncation_side", "be 'right'", side, cure))

    def __call__(self, preprocessor: BertPreprocessor, text: Strings) -> dict[str, tf.Tensor]:
        """The ids of texts or pairs `(batch,)`, as `preprocessor(text)` returns them; in graph."""
        self.check(preprocessor)
        texts = [preprocessor.tokenizer.tokenize(part) for part in _strings(text) if part is not None]
        return preprocessor.framed(list(map(self._kept, texts, preprocessor.truncated(texts))))

    def _kept(self, ids: tf.RaggedTensor, cut: tf.RaggedTensor) -> tf.RaggedTensor:
        """As many tokens of each text as are left of it when it is cut."""
        kept, starts = row_lengths(cut), tf.cast(ids.row_starts(), tf.int32)
        head = kept * _HEAD // _WHOLE if self.head is None else tf.minimum(kept, self.head)
        ends = starts + row_lengths(ids)
        parts = [tf.ragged.range(starts, starts + head), tf.ragged.range(ends - (kept - head), ends)]
        return tf.gather(ids.flat_values, tf.concat(parts, axis=1))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> HeadTail:
        """The rule of a `get_config` dictionary."""
        return cls(**config)


@register
@dataclass(frozen=True, kw_only=True)
class Windows:
    """Reads a text that is longer than `max_length` through overlapping windows, and pools over them.

    Each window goes through the encoder. Of a pair, the second text is read through windows, and each repeats the
    first, which is cut only where it would leave less room than twice `stride`. A text that fits is one window, and is
    read as without the rule.

    Args:
        stride: how many tokens two neighbouring windows share; None for a quarter of `max_length`.
        pooling: over the windows of a text, `"mean"`, `"max"` or `"attention"` (see `layers.WindowPooling`); None for
            the task's own.
        max_windows: the most windows of a text in a training step, which holds all windows of its texts; those of a
            longer text are spread evenly over it, with the first and the last. None for all. Evaluation and prediction
            always read all windows.

    Raises:
        TypeError, ValueError: an argument out of range.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e"])
        >>> windows = Windows(stride=1)(kbl.BertPreprocessor(tokenizer, max_length=5), ["a b c d e", "b"])
        >>> windows["token_ids"].numpy().tolist(), windows["window_rows"].numpy().tolist()
        ([[2, 4, 5, 6, 3], [2, 6, 7, 8, 3], [2, 5, 3, 0, 0]], [0, 0, 1])
    """

    stride: int | None = None
    pooling: str | None = None
    max_windows: int | None = 8

    def __post_init__(self) -> None:
        checks.optional(checks.whole_number, "Windows", "stride", self.stride)
        checks.one_of("Windows", "pooling", self.pooling, (None, *POOLINGS))
        checks.optional(checks.positive_integer, "Windows", "max_windows", self.max_windows)

    def check(self, preprocessor: BertPreprocessor, *, pairs: bool = False) -> tuple[int, int]:
        """The overlap of two windows and the room of a row for texts, in tokens; ValueError where they do not fit."""
        length = preprocessor.max_length
        stride = length // 4 if self.stride is None else self.stride
        room = length - 2 - (preprocessor.tokenizer.num_pair_separators if pairs else 0)
        if room < max(2 * stride, 1):
            rule = f"be at most {max(room, 0) // 2}, half of the tokens that fit beside the special tokens"
            cure = f"Lower it, or raise `max_length`, which is {length}."
            raise ValueError(checks.message("Windows", "stride", rule, self.stride, cure))
        return stride, room

    def __call__(self, preprocessor: BertPreprocessor, text: Strings) -> dict[str, tf.Tensor]:
        """All windows of texts or pairs `(batch,)`, in graph.

        Args:
            preprocessor: a `BertPreprocessor`.
            text: strings `(batch,)`, or a tuple of two.

        Returns:
            What `preprocessor(text)` returns, int32 `(windows, sequence)` each, text by text; and `"window_rows"`,
            int32 `(windows,)`, the row of the batch that a window belongs to, in ascending order.
        """
        first, second = _strings(text)
        (stride, budget), tokenizer = self.check(preprocessor, pairs=second is not None), preprocessor.tokenizer
        read = tokenizer.tokenize(first if second is None else second)
        room, before, least = tf.fill([read.nrows(tf.int32)], budget), [], max(2 * stride, 1)
        if second is not None:  # the first text is cut where it would leave less than that to a second that is cut
            ids, most = tokenizer.tokenize(first), budget - least
            lengths = row_lengths(ids)
            fits = lengths + row_lengths(read) <= budget
            if preprocessor.truncation == "only_second":  # which never shortens the first text
                most -= rest_of_budget(tf.where(fits, 0, lengths), most, preprocessor.truncation)
            kept = tf.where(fits, lengths, tf.minimum(lengths, most))
            before = [keep_tokens(ids, kept, preprocessor.truncation_side)]
            room = tf.maximum(budget - kept, least)  # more than is left only where both fit
        windows = lay_windows(row_lengths(read), room, stride)
        begins = tf.gather(tf.cast(read.row_starts(), tf.int32), windows.rows) + windows.begins
        shown = tf.gather(read.flat_values, tf.ragged.range(begins, begins + windows.lengths))
        parts = [*(tf.gather(ids, windows.rows) for ids in before), shown]
        return {**preprocessor.framed(parts), WINDOW_ROWS: windows.rows}

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Windows:
        """The rule of a `get_config` dictionary."""
        return cls(**config)


def _strings(text: Strings) -> Any:
    """The first texts as a tensor, and the second ones or None."""
    first, second = split_pair(text)
    return as_strings("long_texts", first), None if second is None else as_strings("long_texts", second)


def as_long_texts(
    owner: str, value: object, *preprocessors: BertPreprocessor | None, pooling: str, pairs: bool | None = None
) -> Any:
    """A task's rule for long texts, from what its constructor takes; None for none.

    Args:
        owner: the task's class, for errors.
        value: None, `"head_tail"`, `"windows"` or a rule.
        *preprocessors: what the rule applies to; all but the first may be None.
        pooling: the task's own pooling over windows.
        pairs: whether rows are pairs, if that is known.

    Raises:
        TypeError, ValueError: another value; no preprocessor; a preprocessor that the rule does not fit.
    """
    made = {"head_tail": HeadTail, "windows": Windows}
    if isinstance(value, str):
        value = made[checks.one_of(owner, "long_texts", value, made)]()
    if value is None:
        return None
    if not isinstance(value, HeadTail | Windows):
        raise TypeError(checks.message(owner, "long_texts", "be a HeadTail, a Windows, a name or None", value))
    if preprocessors[0] is None:
        cure = "Make the task with `preprocessor=BertPreprocessor(tokenizer)`."
        raise ValueError(checks.message(owner, "long_texts", "be None without a preprocessor", value, cure))
    for preprocessor in filter(None, preprocessors):
        value.check(preprocessor, pairs=bool(pairs))
    return replace(value, pooling=value.pooling or pooling) if isinstance(value, Windows) else value


def by_text(windows: dict[str, Any], most: int | None = None) -> dict[str, Any]:
    """Windows with an axis of texts, `(batch, windows, ...)`; absent windows are 0. Other ids are unchanged.

    Args:
        windows: what a call of `Windows` returned, or a dictionary of such dictionaries.
        most: the most windows of a text, spread evenly over it, with the first and the last; None for all.
    """
    if WINDOW_ROWS not in windows:
        return {name: by_text(ids, most) if isinstance(ids, dict) else ids for name, ids in windows.items()}
    counts = tf.math.bincount(windows[WINDOW_ROWS])  # [B]; every text has a window
    kept = counts if most is None else tf.minimum(counts, most)
    spread = tf.ragged.range(kept) * (counts - 1)[:, None] // tf.maximum(kept - 1, 1)[:, None]
    places = spread + tf.cumsum(counts, exclusive=True)[:, None]  # ragged [B, (windows)]
    return {name: tf.gather(ids, places).to_tensor() for name, ids in windows.items() if name != WINDOW_ROWS}
