"""DeBERTa's attention by its definition: a loop over rows, heads, queries and keys, in float64."""

import numpy as np


def normalized(vectors, gamma, beta, epsilon):
    """LayerNorm of vectors `[R, H]`."""
    centred = vectors - vectors.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta


def probabilities(hidden, weights, rows, vectors, mask, num_heads, *, kinds, shares):
    """The probabilities `[B, N, S, S]`.

    Args:
        hidden: `[B, S, H]`.
        weights: the attention's, by their paths in it.
        rows: distance from a key to a query -> the row of its vector.
        vectors: `[R, H]`.
        mask: `[B, S]`.
        num_heads: the number of heads.
        kinds: of "c2p" and "p2c".
        shares: whether keys and queries of positions have the projections of contents.
    """
    weights = {name: np.asarray(value, "float64") for name, value in weights.items()}
    kernel, bias = weights["query_key_value/kernel"], weights["query_key_value/bias"]
    query, key, _ = np.split(hidden @ kernel + bias, 3, axis=-1)
    if shares:
        of_query, of_key, _ = np.split(vectors @ kernel + bias, 3, axis=-1)
    else:
        of_key, of_query = (
            vectors @ weights[f"{name}/kernel"] + weights[f"{name}/bias"] if f"{name}/kernel" in weights else None
            for name in ("position_key", "position_query")
        )
    batch, length, width = hidden.shape
    size = width // num_heads
    logits = np.zeros((batch, num_heads, length, length))
    for b, n, i, j in np.ndindex(*logits.shape):
        columns, row = slice(n * size, (n + 1) * size), rows(i - j)
        score = query[b, i, columns] @ key[b, j, columns]
        score += query[b, i, columns] @ of_key[row, columns] if "c2p" in kinds else 0
        score += key[b, j, columns] @ of_query[row, columns] if "p2c" in kinds else 0
        logits[b, n, i, j] = score / np.sqrt(size * (1 + len(kinds))) if mask[b, j] else -np.inf
    logits = np.exp(logits - logits.max(-1, keepdims=True))
    return logits / logits.sum(-1, keepdims=True)
