"""`masked_crc32c`: the checksum in TensorFlow's files."""

from __future__ import annotations

import google_crc32c
import numpy as np

_MASK_DELTA = 0xA282EAD8


def masked_crc32c(data: bytes | np.ndarray) -> int:
    """The CRC-32C of bytes or of a C-contiguous array, rotated and shifted as TensorFlow stores it.

    Examples:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'

    References:
        tensorflow/core/lib/hash/crc32c.h, `Mask`.
    """
    crc = google_crc32c.value(data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8))
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
