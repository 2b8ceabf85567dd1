import base64
import re
import struct
import zlib

import numpy as np
import pytest

from keras_bert_layers.visualization import AttentionGrid

TOLERANCE = 1e-6  # the weights are float32


def attention_to(positions):
    """The attention of a head in which each token attends to one position."""
    return np.eye(len(positions))[positions]


def test_habits():
    heads = [[0, 0, 1, 2], [1, 2, 3, 3], [0, 1, 2, 3], [0, 0, 0, 0], [3, 3, 3, 3]]
    weights = np.stack([*(attention_to(positions) for positions in heads), np.full((4, 4), 0.25) - 0.01])
    grid = AttentionGrid("abcd", weights[None])
    names = [name for name, _ in grid.habits[0]]
    assert names == ["before", "after", "itself", "[CLS]", "[SEP]", "spread"]
    assert grid.habits[0][0][1] == 1.0
    page = grid.html()
    assert "before 100\N{NO-BREAK SPACE}%" in page
    assert page.count("<filter") == 1, "all maps have the accent of the page by one filter"
    assert "spread<" in page
    assert 'aria-label="Map of layer 0, head 5"' in page


def test_entropies_and_distances():
    rows = np.random.default_rng(3).dirichlet(np.ones(5), size=(2, 3, 5))
    rows[0, 0] = attention_to([0, 2, 0, 3, 1])  # distances 0, 1, 2, 0, 3
    rows[0, 1] = 1 / 5
    grid = AttentionGrid("abcde", rows)
    entropies = [[np.mean([-sum(p * np.log(p) for p in row if p) for row in head]) for head in layer] for layer in rows]
    distances = [
        [np.mean([sum(p * abs(i - j) for j, p in enumerate(row)) for i, row in enumerate(head)]) for head in layer]
        for layer in rows
    ]
    assert grid.entropies == pytest.approx(np.array(entropies), abs=TOLERANCE)
    assert grid.distances == pytest.approx(np.array(distances), abs=TOLERANCE)
    assert grid.entropies[0, :2] == pytest.approx([0, np.log(5)], abs=TOLERANCE)
    assert grid.distances[0, 0] == pytest.approx(1.2, abs=TOLERANCE)
    assert "<br>0.0 nats<br>1.2 away</td>" in grid.html()


def test_one_token_looks_at_itself():
    assert AttentionGrid("a", np.ones((1, 1, 1, 1))).habits == [[("itself", 1.0)]]


def test_image_holds_the_shares():
    weights = np.array([[0.0, 1.0, 0.5], [0.2, 0.4, 0.4], [0.6, 0.1, 0.3]])
    page = AttentionGrid("abc", weights[None, None]).html()
    data = base64.b64decode(re.search(r"base64,([^\"]+)", page)[1])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (3, 3)
    start = data.index(b"IDAT") + 4
    size = struct.unpack(">I", data[start - 8 : start - 4])[0]
    assert struct.unpack(">I", data[start + size : start + size + 4])[0] == zlib.crc32(data[start - 4 : start + size])
    pixels = np.frombuffer(zlib.decompress(data[start : start + size]), np.uint8).reshape(3, 13)[:, 1:].reshape(3, 3, 4)
    assert pixels[..., 3].tolist() == np.rint(255 * weights).astype(int).tolist()


def test_wrong_shape():
    with pytest.raises(
        ValueError, match=r"must be \(layers, heads, tokens, tokens\) of 2 tokens. Received: .*\(2, 2\)"
    ):
        AttentionGrid("ab", np.eye(2))
