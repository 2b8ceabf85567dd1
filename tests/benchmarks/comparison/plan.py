"""Plans: how much a run measures, in full for the figures or quickly to check that everything works."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Plan:
    """How much a run measures.

    Args:
        num_rounds: timed rounds of each work; one more comes first, untimed.
        longest_work: seconds after which a work begins no further round, once it has three (in a quick run, one).
        least_rounds: timed rounds that a work has however long they take.
        num_texts: (model, texts) -> how many of the texts.
        num_answers: answers to one text in a turn.
        num_training_texts: sentences in a turn of training.
        full_rows: training on rows without padding; rows of a batch and tokens.
        num_starts: fresh processes of each line.
        fresh_models: the models of the fresh processes.
        num_imports: fresh processes of each import.
        lengths: growth with the length; tokens.
        batch_sizes: growth with the batch.
        growth_batch_size: texts in a batch of growth with the length.
        full_batch_size: texts of 512 tokens in a batch of BERT-base's size, for the share of the peak.
        peak_size: rows of the square matrices of the peak.
        tokenizer_rounds: rounds of `bench_tokenizer.py`.
        tries_settings: whether the settings that one cannot know are tried; if not, the first is taken.
    """

    num_rounds: int
    longest_work: float
    least_rounds: int
    num_texts: dict[tuple[str, str], int]
    num_answers: int
    num_training_texts: int
    full_rows: tuple[tuple[int, int], ...]
    num_starts: int
    fresh_models: tuple[str, ...]
    num_imports: int
    lengths: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    growth_batch_size: int
    full_batch_size: int
    peak_size: int
    tokenizer_rounds: int
    tries_settings: bool

    def with_rounds(self, num_rounds: int) -> Plan:
        """The same plan with a given number of rounds of every work, however long they take."""
        return replace(self, num_rounds=num_rounds, least_rounds=num_rounds)


FULL = Plan(
    num_rounds=7,
    longest_work=25.0,
    least_rounds=3,
    num_texts={("minilm", "sst2"): 256, ("minilm", "squad"): 64, ("minilm", "reviews"): 64}
    | {("base", "sst2"): 64, ("base", "squad"): 32, ("base", "reviews"): 32},
    num_answers=30,
    num_training_texts=192,
    full_rows=((16, 64), (32, 128)),
    num_starts=2,
    fresh_models=("minilm", "base"),
    num_imports=3,
    lengths=(16, 32, 64, 128, 256, 512),
    batch_sizes=(1, 4, 16, 64, 256),
    growth_batch_size=16,
    full_batch_size=4,
    peak_size=4096,
    tokenizer_rounds=15,
    tries_settings=True,
)
QUICK = Plan(
    num_rounds=1,
    longest_work=0.0,
    least_rounds=1,
    num_texts={("minilm", "sst2"): 32, ("minilm", "squad"): 4, ("minilm", "reviews"): 4}
    | {("base", "sst2"): 8, ("base", "squad"): 2, ("base", "reviews"): 2},
    num_answers=10,
    num_training_texts=32,
    full_rows=((4, 16),),
    num_starts=1,
    fresh_models=("minilm",),
    num_imports=1,
    lengths=(16, 64),
    batch_sizes=(1, 8),
    growth_batch_size=4,
    full_batch_size=1,
    peak_size=2048,
    tokenizer_rounds=3,
    tries_settings=False,
)
