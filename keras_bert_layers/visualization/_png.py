"""Small images inside of a page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np


def image_address(shares: np.ndarray, color: str) -> str:
    """A `data:` address of a PNG, one pixel a share: the colour, as opaque as the share is large.

    Args:
        shares: float `(rows, columns)`, in [0, 1].
        color: `#rrggbb`.

    References:
        PNG Specification, third edition: colour type 6, filter 0.
    """
    height, width = shares.shape
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = [int(color[start : start + 2], 16) for start in (1, 3, 5)]
    pixels[..., 3] = np.rint(255 * shares)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
