"""`crc32c`: the checksum of TensorFlow's files, in NumPy at the speed of memory."""

from __future__ import annotations

import numpy as np

# The polynomial of Castagnoli, lowest power last, as RFC 3720 (iSCSI) uses it.
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8

# Sums of few powers of x^32 that the polynomial divides: x^(32 a) + x^(32 b) + ... + 1 is zero modulo it. They come
# from a search among all sums of 4 powers (a below 2^14) and of 6 (a below 400) for those with the widest gap a - b.
_RELATIONS = ((14867, 318, 278), (299, 142, 134, 62, 21))

_WORDS_AT_ONCE = 1 << 18


def _byte_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [(value >> 1) ^ (_POLYNOMIAL if value & 1 else 0) for value in table]
    return table


_TABLE = _byte_table()


def crc32c(data: bytes | np.ndarray) -> int:
    """The CRC-32C of some bytes, or of an array's numbers as they lie in memory.

    A CRC is the remainder of a polynomial whose coefficients are the data's bits. Remainders do not change when a word
    is taken out and added at the places of a relation instead, `a - b`, `a - c`, ... and `a` words further on. So long
    data are folded up, thousands of words in one addition, into the few hundred bytes that are then divided as usual.

    Args:
        data: bytes, or a C-contiguous array.

    Returns:
        The checksum, in [0, 2^32).

    Examples:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
        >>> hex(crc32c(np.zeros(8, "float32")))
        '0x8a9136aa'

    References:
        The check value of "123456789" is that of RFC 3720, and the 32 zeros' of its section B.4.
    """
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data.reshape(-1).view(np.uint8)
    num_words = raw.size // 4
    words, rest = raw[: 4 * num_words].view("<u4"), raw[4 * num_words :]
    crc = 0xFFFFFFFF
    if num_words:
        words = _folded(words, first=crc)
        crc = 0
    return _divided(words.tobytes() + rest.tobytes(), crc) ^ 0xFFFFFFFF


def masked_crc32c(data: bytes | np.ndarray) -> int:
    """The CRC-32C as TensorFlow's files hold it: turned and shifted, so that it is no part of what it checks.

    References:
        tensorflow/core/lib/hash/crc32c.h, `Mask`.
    """
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def _folded(words: np.ndarray, *, first: int) -> np.ndarray:
    """A few words with the same remainder; `first` is added to the first word."""
    pending = np.zeros(0, "<u4")
    for start in range(0, words.size, _WORDS_AT_ONCE):
        pending = np.concatenate([pending, words[start : start + _WORDS_AT_ONCE]])
        if start == 0:
            pending[0] ^= first
        for relation in _RELATIONS[: 1 if start + _WORDS_AT_ONCE < words.size else None]:
            pending = _fold(pending, relation)
    return pending


def _fold(words: np.ndarray, relation: tuple[int, ...]) -> np.ndarray:
    """The last `a` words, with all the others added to them; changes the array."""
    highest = relation[0]
    shifts = [highest - power for power in relation[1:]] + [highest]
    num_folded = max(words.size - highest, 0)
    for start in range(0, num_folded, min(shifts)):
        end = min(start + min(shifts), num_folded)
        for shift in shifts:
            words[start + shift : end + shift] ^= words[start:end]
    return words[num_folded:]


def _divided(data: bytes, crc: int) -> int:
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc
