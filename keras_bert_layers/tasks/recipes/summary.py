"""`summarize`: the sentences of a text that say most of it, by their vectors."""

from __future__ import annotations

import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.tasks.recipes.unit_vectors import unit_vectors

OWNER = "summarize"


def summarize(vectors: Tensor, num_sentences: int = 3, *, diversity: float = 0.3) -> list[int]:
    """The most central sentences of a text, without those that say the same again: an extractive summary.

    A sentence is central if its vector has a large cosine with the mean of all. The first chosen is the most central
    one; each next has the largest `(1 - diversity) * centrality - diversity * (its largest cosine with a chosen one)`.
    `encoder.predict(sentences)` of a sentence encoder makes the vectors. The command `summarize` does it for a file.

    Args:
        vectors: floats `(sentences, vector_dim)`, in the order of the text, of any length.
        num_sentences: how many sentences to choose; all, if there are no more.
        diversity: how much a sentence that repeats another loses, between 0 and 1; 0 for centrality alone.

    Returns:
        The numbers of the chosen sentences, from 0, in the order of the text.

    Raises:
        ValueError: `vectors` does not have two axes or is not finite, or another argument is out of its range.

    Examples:
        >>> vectors = np.array([[1, 0], [1, 0], [1, 0.1], [0, 1]], "float32")
        >>> summarize(vectors, 2, diversity=0.5), summarize(vectors, 2, diversity=0)
        ([2, 3], [0, 2])

    References:
        Maximal marginal relevance: Carbonell and Goldstein 1998, https://doi.org/10.1145/290941.291025. The centroid of
        a text: Radev et al. 2000, https://arxiv.org/abs/cs/0005020.
    """
    found = ops.convert_to_numpy(vectors)
    if found.ndim != 2 or not np.isfinite(found).all():
        shape = checks.Shown(f"the shape {found.shape}")
        raise ValueError(checks.message(OWNER, "vectors", "be finite, of the shape (sentences, vector_dim)", shape))
    checks.positive_integer(OWNER, "num_sentences", num_sentences)
    if not 0 <= diversity <= 1:
        raise ValueError(checks.message(OWNER, "diversity", "be in [0, 1]", diversity))
    units = unit_vectors(found.astype(np.float32, copy=False))
    scores = (1 - diversity) * (units @ unit_vectors(units.sum(axis=0)))
    repeated = np.zeros(len(units), np.float32)
    chosen: list[int] = []
    while len(chosen) < min(num_sentences, len(units)):
        best = int(np.argmax(scores - diversity * repeated))
        cosines = units @ units[best]
        repeated = np.maximum(repeated, cosines) if chosen else cosines
        chosen.append(best)
        scores[best] = -np.inf
    return sorted(chosen)
