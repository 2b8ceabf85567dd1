"""What is measured on an accelerator: the model, the texts, and how many operations they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from comparison.arithmetic import Sizes, matrix_product_operations

INFERENCE, FINE_TUNING, PRETRAINING = "inference", "fine-tuning", "pretraining"
#: The length of a case whose texts are of many lengths.
MIXED = "mixed"
MASKED_SHARE = 0.15
FIRST_WORD = 5  # the ids before it stand for special tokens


@dataclass(frozen=True)
class Scale:
    """The sizes of a run.

    Args:
        model: the sizes of the model, by `BertConfig`'s names.
        lengths: the lengths of full rows, in tokens; the last is the longest of the mixed lengths too.
        buckets: the widths of rows of mixed lengths where shapes must be few.
        tokens_per_step: tokens of a step of inference, padding included.
        training_tokens_per_step: the same of a step of training.
        num_steps: steps of different texts, for full rows.
        num_texts: texts of mixed lengths.
        median_length: the median of the mixed lengths, which are log-normal.
        turn_seconds: about how long a turn is.
        num_rounds: turns of every line.
        matrix_size: rows of the square matrices whose product is the peak.
    """

    model: dict[str, int]
    lengths: tuple[int, ...]
    buckets: tuple[int, ...]
    tokens_per_step: int
    training_tokens_per_step: int
    num_steps: int
    num_texts: int
    median_length: float
    turn_seconds: float
    num_rounds: int
    matrix_size: int


BASE = Scale(
    model={"vocabulary_size": 30522, "hidden_dim": 768, "num_layers": 12, "num_heads": 12, "intermediate_dim": 3072},
    lengths=(128, 512),
    buckets=(64, 128, 256, 512),
    tokens_per_step=32768,
    training_tokens_per_step=16384,
    num_steps=4,
    num_texts=1024,
    median_length=90.0,
    turn_seconds=1.0,
    num_rounds=5,
    matrix_size=8192,
)
SMOKE = Scale(
    model={"vocabulary_size": 131, "hidden_dim": 16, "num_layers": 1, "num_heads": 2, "intermediate_dim": 24},
    lengths=(16,),
    buckets=(16,),
    tokens_per_step=128,
    training_tokens_per_step=64,
    num_steps=1,
    num_texts=13,
    median_length=6.0,
    turn_seconds=0.01,
    num_rounds=2,
    matrix_size=128,
)


@dataclass(frozen=True)
class Case:
    """A case of the benchmark: work, length of texts and dropout.

    Args:
        work: `INFERENCE`, `FINE_TUNING` or `PRETRAINING`.
        length: tokens per row, or `MIXED`.
        attention_dropout: in training.
    """

    work: str
    length: int | str
    attention_dropout: float = 0.0

    @property
    def is_training(self) -> bool:
        """Whether weights change."""
        return self.work != INFERENCE

    @property
    def name(self) -> str:
        """The name in the table."""
        dropout = f", attention dropout {self.attention_dropout}" if self.is_training else ""
        return f"{self.work}, {self.length}{dropout}"

    def to_dict(self) -> dict[str, Any]:
        """For a pipe."""
        return asdict(self)


@dataclass(frozen=True)
class Batch:
    """The arrays of one step.

    Args:
        ids: the backbone's three inputs `(rows, width)`; in packed rows the mask numbers the texts of a row.
        positions: of the masked tokens `(rows, masks)`; 0 where a row has fewer.
        masked_ids: their tokens `(rows, masks)`.
        is_masked: float `(rows, masks)`, 1 where there is one.
        labels: one of two classes per row, `(rows,)`.
    """

    ids: dict[str, np.ndarray]
    positions: np.ndarray
    masked_ids: np.ndarray
    is_masked: np.ndarray
    labels: np.ndarray


def cases(scale: Scale) -> list[Case]:
    """All cases, what matters most first: a run that has too little time leaves out the last ones."""
    lengths = [*reversed(scale.lengths), MIXED]
    training = [
        *(Case(work, length) for work in (FINE_TUNING, PRETRAINING) for length in reversed(scale.lengths)),
        *(Case(work, scale.lengths[-1], 0.1) for work in (FINE_TUNING, PRETRAINING)),
        *(Case(work, MIXED) for work in (PRETRAINING, FINE_TUNING)),
        *(Case(work, length, 0.1) for work in (FINE_TUNING, PRETRAINING) for length in scale.lengths[:-1]),
    ]
    return [*(Case(INFERENCE, length) for length in lengths), *training]


def text_lengths(case: Case, scale: Scale) -> np.ndarray:
    """The tokens of each text of a case, int `(texts,)`."""
    if case.length != MIXED:
        budget = scale.training_tokens_per_step if case.is_training else scale.tokens_per_step
        return np.full(scale.num_steps * (budget // case.length), case.length)
    drawn = np.random.default_rng(7).lognormal(np.log(scale.median_length), 0.8, scale.num_texts)
    return np.clip(drawn.astype(int), 4, scale.lengths[-1])


def num_masked(length: int) -> int:
    """How many tokens of a text are masked, as in google-research/bert, create_pretraining_data.py."""
    return max(1, round(MASKED_SHARE * length))


def operations(case: Case, scale: Scale) -> float:
    """Floating-point operations of the matrix products that one pass over the texts of a case needs.

    The rules of `comparison.arithmetic` for the forward pass: real tokens, two operations for a multiplication and an
    addition. A classifier's last layer needs keys and values of all tokens, and the rest of the first alone. The heads
    of pretraining are a product of hidden x hidden and one of hidden x vocabulary per masked token. A backward pass
    takes twice the forward pass: Kaplan et al. 2020, https://arxiv.org/abs/2001.08361, section 2.1.
    """
    lengths = [int(length) for length in text_lengths(case, scale)]
    hidden, wide, num_layers = (scale.model[name] for name in ("hidden_dim", "intermediate_dim", "num_layers"))
    pooler = 2 * hidden * hidden * len(lengths)
    if case.work == FINE_TUNING:
        total = matrix_product_operations(Sizes(hidden, wide, num_layers - 1), lengths) + pooler
        total += sum(4 * hidden * hidden * length + 4 * hidden * length for length in lengths)
        total += len(lengths) * (4 * hidden * hidden + 4 * hidden * wide)
    else:
        total = matrix_product_operations(Sizes(hidden, wide, num_layers), lengths)
    if case.work == PRETRAINING:
        masked = sum(num_masked(length) for length in lengths)
        total += pooler + 2 * masked * hidden * (hidden + scale.model["vocabulary_size"])
    return 3.0 * total if case.is_training else float(total)


def batches(case: Case, scale: Scale, layout: str) -> list[Batch]:
    """The steps of one pass over the texts of a case.

    Args:
        case: the case.
        scale: the sizes.
        layout: "full" for texts of one length. For mixed lengths "sorted", each batch padded to its longest row;
            "buckets", padded to one of a few widths; "packed", several texts per row.
    """
    lengths = text_lengths(case, scale)
    generator = np.random.default_rng(11)
    texts = [generator.integers(FIRST_WORD, scale.model["vocabulary_size"], length) for length in lengths]
    budget = scale.training_tokens_per_step if case.is_training else scale.tokens_per_step
    chosen = list(_chosen_rows(lengths, layout, scale, budget))
    num_masks = {width: 0 for width, _ in chosen}
    for width, rows in chosen:
        most = max(sum(num_masked(len(texts[index])) for index in row) for row in rows)
        num_masks[width] = max(num_masks[width], most)
    return [_batch(rows, texts, width=width, num_masks=num_masks[width], seed=width) for width, rows in chosen]


def _chosen_rows(
    lengths: np.ndarray, layout: str, scale: Scale, budget: int
) -> Iterator[tuple[int, list[Sequence[int]]]]:
    """The width of each batch, and its rows, each a list of texts; no texts in rows that fill a fixed shape."""
    order = np.argsort(-lengths, kind="stable").tolist()
    if layout == "sorted":
        while order:
            size = max(1, budget // int(lengths[order[0]]))
            yield int(lengths[order[0]]), [[index] for index in order[:size]]
            order = order[size:]
        return
    rows = packed(lengths, scale.lengths[-1]) if layout == "packed" else [[index] for index in order]
    widths = {"full": (int(lengths[0]),), "packed": scale.lengths[-1:], "buckets": scale.buckets}[layout]
    sizes = [min(width for width in widths if width >= sum(lengths[index] for index in row)) for row in rows]
    for width in sorted(set(sizes)):
        inside = [row for row, size in zip(rows, sizes, strict=True) if size == width]
        size = max(1, budget // width)
        inside += [[]] * (-len(inside) % size)
        yield from ((width, inside[start : start + size]) for start in range(0, len(inside), size))


def packed(lengths: np.ndarray, width: int) -> list[list[int]]:
    """Texts put together in rows of at most `width` tokens: the longest first, each into the first row that fits."""
    rows: list[list[int]] = []
    free: list[int] = []
    for index in np.argsort(-lengths, kind="stable").tolist():
        place = next((place for place, left in enumerate(free) if left >= lengths[index]), None)
        if place is None:
            place = len(rows)
            rows.append([])
            free.append(width)
        rows[place].append(index)
        free[place] -= int(lengths[index])
    return rows


def _batch(rows: list[Sequence[int]], texts: list[np.ndarray], *, width: int, num_masks: int, seed: int) -> Batch:
    generator = np.random.default_rng(seed)
    ids = {name: np.zeros((len(rows), width), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
    positions, masked_ids = (np.zeros((len(rows), num_masks), "int32") for _ in range(2))
    is_masked = np.zeros((len(rows), num_masks), "float32")
    for row, chosen in enumerate(rows):
        start = count = 0
        for number, index in enumerate(chosen, start=1):
            end = start + len(texts[index])
            ids["token_ids"][row, start:end] = texts[index]
            ids["segment_ids"][row, start + (end - start) // 2 : end] = 1
            ids["padding_mask"][row, start:end] = number
            masks = num_masked(end - start)
            positions[row, count : count + masks] = start + generator.choice(end - start, masks, replace=False)
            is_masked[row, count : count + masks] = 1
            start, count = end, count + masks
        masked_ids[row] = ids["token_ids"][row, positions[row]]
    return Batch(ids, positions, masked_ids, is_masked, generator.integers(0, 2, len(rows)))
