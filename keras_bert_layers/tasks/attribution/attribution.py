"""`Attribution`: a score for each token of a text, which says how much it raised or lowered a logit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.attribution.path_integral import BACKENDS, integrate

BASELINES = ("pad", "mask")


@dataclass(frozen=True)
class Attribution:
    """The scores of the tokens of a text for one logit; the method `attribute` of four tasks computes them.

    A score is the integrated gradient of the logit over the embedding of the token, on the straight path from a
    baseline, the same row with [PAD] (or [MASK]) in place of the text's tokens. Above 0, the token raises the logit.
    The scores add up to the difference of the logit between the text and the baseline.
    `visualization.AttributionPicture` draws it.

    Args:
        target: what the logit stands for: a class, an answer, or a tag and its word.
        tokens: the tokens that the model read, special ones included.
        scores: float64 `(tokens,)`; 0 for special tokens, which the baseline has too.
        words: the words of the text as the model reads them (in lower case, for example), without special tokens.
        word_scores: float64 `(words,)`, the sums over the tokens of each word.
        starts: int32 `(tokens,)`, the byte of its text at which a token starts, or -1 for special tokens and questions.
        ends: int32 `(tokens,)`, the byte after its last, or -1.
        difference: the logit of the text minus that of the baseline.
        error: how far the sum of the scores is from `difference`.
        steps: the number of points on the path at which gradients were computed.

    References:
        Sundararajan et al. 2017, arXiv:1703.01365, sections 3 and 5 (the error is that of their completeness axiom).
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


class Rows(NamedTuple):
    """Rows whose logits are to be explained.

    Attributes:
        row: int32 arrays `(rows, sequence)`: the model's inputs, `"starts"` and `"ends"`.
        targets: int32 `(rows, outputs)`, as in `path_gradients`.
        names: what each row's target stands for.
    """

    inputs: dict[str, np.ndarray]
    targets: Any
    names: list[str]


def special_ids(tokenizer: Any) -> list[int]:
    """The ids that the baseline keeps."""
    return [tokenizer.start_id, tokenizer.separator_id, tokenizer.pad_id]


def attributions(task: Any, rows: Rows, *, baseline: str, tolerance: float, max_steps: int) -> list[Attribution]:
    """One attribution for each row; a warning names the rows whose error is larger than the tolerance."""
    owner, backend, tokenizer = type(task).__name__, keras.backend.backend(), task.preprocessor.tokenizer
    checks.one_of(owner, "baseline", baseline, BASELINES)
    checks.positive_number(owner, "tolerance", tolerance)
    checks.positive_integer(owner, "max_steps", max_steps)
    if backend not in BACKENDS:
        raise RuntimeError(f"`{owner}`: `attribute` needs gradients. Received: KERAS_BACKEND={backend!r}.")
    inputs = {name: np.asarray(values, np.int32) for name, values in rows.inputs.items()}
    starts, ends, token_ids = inputs.pop("starts"), inputs.pop("ends"), inputs["token_ids"]
    fill = tokenizer.pad_id if baseline == "pad" else tokenizer.mask_id
    is_text = ~np.isin(token_ids, special_ids(tokenizer))
    baseline_ids = np.where(is_text, fill, token_ids).astype(np.int32)
    targets = np.asarray(rows.targets, np.int32)
    scores, differences, steps = integrate(
        task, inputs, baseline_ids, targets, tolerance=tolerance, most=max_steps
    )
    errors = np.abs(scores.sum(axis=1) - differences)
    missed = np.flatnonzero(errors > tolerance * np.maximum(1, np.abs(differences))).tolist()
    if missed:
        received = f"errors of up to {errors[missed].max():.2g} in rows {missed[:10]}, {len(missed)} in all"
        cure = "Raise `max_steps`, or see the error of each row in `error`."
        rule = f"`attribute` did not reach the tolerance {tolerance:g} with {max_steps} steps"
        warnings.warn(checks.row_message(owner, rule, received, cure), UserWarning, stacklevel=4)
    continues, made = np.array(tokenizer.continues_word()), []
    for row, length in enumerate(inputs["padding_mask"].sum(axis=1)):
        ids, is_word, values = token_ids[row, :length], is_text[row, :length], scores[row, :length]
        begins = is_word & ~(continues[ids] & np.roll(is_word, 1))
        numbers = np.cumsum(begins)[is_word] - 1
        words = tokenizer.detokenize(tf.RaggedTensor.from_value_rowids(ids[is_word], numbers)).numpy()
        made.append(
            Attribution(
                target=rows.names[row],
                tokens=[tokenizer.id_to_token(int(token_id)) for token_id in ids],
                scores=values,
                words=[word.decode() for word in words],
                word_scores=np.bincount(numbers, values[is_word], minlength=len(words)),
                starts=starts[row, :length],
                ends=ends[row, :length],
                difference=float(differences[row]),
                error=float(errors[row]),
                steps=int(steps[row]),
            )
        )
    return made
