"""A small BERT in NumPy, the reference of the tests: one matrix product at a time, in float64.

Written from the papers and google-research/bert's modeling.py, apart from the package: query, key and value are three
products, each head of each row of the batch is computed alone, and padding is cut out and not masked.

Weights come as a dictionary from the paths that Keras gives them in a backbone.
"""

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu_erf(x):
    return x * (1 + _erf(x / math.sqrt(2))) / 2


def gelu_tanh(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


ACTIVATIONS = {
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "linear": lambda x: x,
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
    "gelu_10": lambda x: np.clip(gelu_erf(x), -10, 10),
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "softplus": lambda x: np.log1p(np.exp(x)),
}


def dense(weights, name, x):
    return x @ weights[f"{name}/kernel"].astype("float64") + weights.get(f"{name}/bias", 0)


def layer_norm(weights, name, x, epsilon):
    centered = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + epsilon)
    return centered / deviation * weights[f"{name}/gamma"] + weights.get(f"{name}/beta", 0)


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def embed(weights, name, token_ids, segment_ids, epsilon, position_offset=0, position_table=None):
    """Positions are trained, or the rows of a table."""
    token = weights[f"{name}/token_embedding"].astype("float64")
    position = weights[f"{name}/position_embedding"].astype("float64") if position_table is None else position_table
    segment = weights.get(f"{name}/segment_embedding", np.zeros((99, 1)))
    rows = []
    for ids, segments in zip(token_ids, segment_ids, strict=True):
        rows.append([])
        next_position = position_offset
        for t, s in zip(ids, segments, strict=True):
            is_padding = position_offset and t == position_offset - 1
            rows[-1].append(token[t] + segment[s] + position[position_offset - 1 if is_padding else next_position])
            next_position += not is_padding
    hidden = layer_norm(weights, f"{name}/layer_norm", np.array(rows), epsilon)
    return dense(weights, f"{name}/projection", hidden) if f"{name}/projection/kernel" in weights else hidden


def attend(
    weights,
    name,
    hidden,
    padding_mask,
    num_heads,
    causal=False,
    rotate=lambda x, _: x,
    added=lambda *_: 0,
    window=None,
):
    """Self-attention; gives the output and the probabilities.

    `rotate(x, position)` is what is compared of a query or a key, `added(head, distance)` is added to a score. Tokens
    that are further away than `window // 2` are not seen.
    """
    hidden = np.asarray(hidden, "float64")
    batch, length, width = hidden.shape
    head = width // num_heads
    kernel = weights[f"{name}/query_key_value/kernel"].astype("float64")
    bias = weights.get(f"{name}/query_key_value/bias", np.zeros(3 * width))
    query, key, value = (
        hidden @ kernel[:, part * width : (part + 1) * width] + bias[part * width : (part + 1) * width]
        for part in range(3)
    )
    context = np.zeros_like(hidden)
    scores = np.zeros((batch, num_heads, length, length))
    for b in range(batch):
        for n in range(num_heads):
            columns = slice(n * head, (n + 1) * head)
            for i in range(length):
                near = [
                    j for j in range(length) if (window is None or abs(j - i) <= window // 2) and (j <= i or not causal)
                ]
                seen = [j for j in near if padding_mask[b][j]]
                turned = rotate(query[b, i, columns], i)
                logits = [rotate(key[b, j, columns], j) @ turned / math.sqrt(head) + added(n, j - i) for j in seen]
                if not seen:  # nothing to attend to: all alike
                    seen, logits = list(range(length)), np.zeros(length)
                scores[b, n, i, seen] = softmax(np.array(logits))
            context[b, :, columns] = scores[b, n] @ value[b, :, columns]
    return dense(weights, f"{name}/output", context), scores


def transform(weights, name, hidden, activation):
    inner = dense(weights, f"{name}/intermediate", hidden)
    width = len(weights[f"{name}/output/kernel"])
    gate, value = (inner[..., :width], inner[..., width:]) if inner.shape[-1] > width else (inner, 1)
    inner = ACTIVATIONS[activation](gate) * value
    return dense(weights, f"{name}/output", inner)


def encode(weights, name, hidden, padding_mask, *, num_heads, activation, epsilon, normalize_first=False, **attention):
    """One encoder block; gives the output and the attention probabilities."""
    first, second = f"{name}/attention_layer_norm", f"{name}/feed_forward_layer_norm"
    if normalize_first:
        normed = layer_norm(weights, first, hidden, epsilon) if f"{first}/gamma" in weights else hidden
        attended, scores = attend(weights, f"{name}/attention", normed, padding_mask, num_heads, **attention)
        hidden = hidden + attended
        normed = layer_norm(weights, second, hidden, epsilon)
        return hidden + transform(weights, f"{name}/feed_forward", normed, activation), scores
    attended, scores = attend(weights, f"{name}/attention", hidden, padding_mask, num_heads, **attention)
    hidden = layer_norm(weights, first, hidden + attended, epsilon)
    transformed = transform(weights, f"{name}/feed_forward", hidden, activation)
    return layer_norm(weights, second, hidden + transformed, epsilon), scores


def bert(
    weights,
    inputs,
    *,
    num_layers,
    num_heads,
    activation="gelu_erf",
    epsilon=1e-12,
    position_offset=0,
    pooler_activation="tanh",
    position_table=None,
    normalize_first=False,
    pooling="first",
    of_blocks=(),
    **attention,
):
    """The complete encoder: all outputs of a backbone; `of_blocks` changes the attention of blocks, by index."""
    ids = inputs["token_ids"], inputs["segment_ids"]
    hidden_states = [embed(weights, "embedding", *ids, epsilon, position_offset, position_table)]
    attention_scores = []
    for index in range(num_layers):
        hidden, scores = encode(
            weights,
            f"encoder_block_{index}",
            hidden_states[-1],
            inputs["padding_mask"],
            num_heads=num_heads,
            activation=activation,
            epsilon=epsilon,
            normalize_first=normalize_first,
            **(attention | dict(of_blocks).get(index, {})),
        )
        hidden_states.append(hidden)
        attention_scores.append(scores)
    if normalize_first:
        hidden_states[-1] = layer_norm(weights, "final_layer_norm", hidden_states[-1], epsilon)
    read = hidden_states[-1][:, 0]
    if pooling == "mean":
        rows = zip(hidden_states[-1], inputs["padding_mask"], strict=True)
        read = np.array([row[np.asarray(mask, bool)].mean(axis=0) for row, mask in rows])
    pooled = ACTIVATIONS[pooler_activation](dense(weights, "pooler/dense", read))
    if "pooler/layer_norm/gamma" in weights:
        pooled = layer_norm(weights, "pooler/layer_norm", pooled, epsilon)
    return {
        "sequence_output": hidden_states[-1],
        "pooled_output": pooled,
        "hidden_states": hidden_states,
        "attention_scores": attention_scores,
    }
