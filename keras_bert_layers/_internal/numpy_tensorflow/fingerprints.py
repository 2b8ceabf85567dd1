"""FarmHash's `Fingerprint64`, by which TensorFlow puts strings into buckets."""

from __future__ import annotations

import functools
from struct import unpack_from

_BITS = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_CACHED_BYTES = 32


def fingerprint(text: bytes) -> int:
    """A number of 64 bits for a string, the same everywhere.

    References:
        `farmhashna::Hash64` in google/farmhash, farmhash.cc.
    """
    return _short(text) if len(text) <= _CACHED_BYTES else _long(text)


@functools.lru_cache(2**17)
def _short(text: bytes) -> int:
    size = len(text)
    multiplier = _K2 + 2 * size
    if size > 16:
        a, b = unpack_from("<QQ", text)
        c, d = unpack_from("<QQ", text, size - 16)
        a, c, d = a * _K1, c * _K2, d * multiplier
        return _mixed(_rotated(a + b, 43) + _rotated(d, 30) + c, a + _rotated(b + _K2, 18) + d, multiplier)
    if size >= 8:
        a, b = unpack_from("<Q", text)[0] + _K2, unpack_from("<Q", text, size - 8)[0]
        c = _rotated(b, 37) * multiplier + a
        d = (_rotated(a, 25) + b) * multiplier
        return _mixed(c, d, multiplier)
    if size >= 4:
        first, last = unpack_from("<I", text)[0], unpack_from("<I", text, size - 4)[0]
        return _mixed(size + (first << 3), last, multiplier)
    if size:
        y = text[0] + (text[size >> 1] << 8)
        z = size + (text[-1] << 2)
        return _shifted(y * _K2 ^ z * _K0) * _K2 & _BITS
    return _K2


def _long(text: bytes) -> int:
    size = len(text)
    if size <= 64:
        return _of_64(text, size, _K2 + 2 * size)
    x, y = 81, 81 * _K1 + 113
    z = _shifted(y * _K2 + 113) * _K2
    v = w = (0, 0)
    x = x * _K2 + unpack_from("<Q", text)[0]
    last = (size - 1) // 64 * 64
    for place in range(0, last, 64):
        x, y, z, v, w = _round(text, place, (x, y, z, v, w), _K1, 1)
    place = last + ((size - 1) & 63) - 63
    multiplier = _K1 + ((z & 0xFF) << 1)
    w = (w[0] + ((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _round(text, place, (x, y, z, v, w), multiplier, 9)
    return _mixed(
        _mixed(v[0], w[0], multiplier) + _shifted(y) * _K0 + z, _mixed(v[1], w[1], multiplier) + x, multiplier
    )


def _of_64(text: bytes, size: int, multiplier: int) -> int:
    a, b, e, f = unpack_from("<4Q", text)
    g, h, d, c = unpack_from("<4Q", text, size - 32)
    a, c, d, e = a * _K2, c * multiplier, d * _K2, e * multiplier
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _mixed(y, a + _rotated(b + _K2, 18) + c, multiplier)
    g, h = (y + g) * multiplier, (z + h) * multiplier
    return _mixed(_rotated(e + f, 43) + _rotated(g, 30) + h, e + _rotated(f + a, 18) + g, multiplier)


def _round(text: bytes, place: int, state: tuple, multiplier: int, factor: int) -> tuple:  # type: ignore[type-arg]
    x, y, z, v, w = state
    words = unpack_from("<8Q", text, place)
    x = _rotated(x + y + v[0] + words[1], 37) * multiplier
    y = _rotated(y + v[1] + words[6], 42) * multiplier
    x ^= w[1] * factor
    y += v[0] * factor + words[5]
    z = _rotated(z + w[0], 33) * multiplier
    v = _weak(words[:4], v[1] * multiplier, x + w[0])
    w = _weak(words[4:], z + w[1], y + words[2])
    return z & _BITS, y & _BITS, x & _BITS, v, w


def _weak(words: tuple[int, ...], a: int, b: int) -> tuple[int, int]:
    a += words[0]
    b = _rotated(b + a + words[3], 21)
    c = a
    a += words[1] + words[2]
    return (a + words[3]) & _BITS, (b + _rotated(a, 44) + c) & _BITS


def _rotated(value: int, by: int) -> int:
    value &= _BITS
    return (value >> by | value << (64 - by)) & _BITS


def _shifted(value: int) -> int:
    value &= _BITS
    return value ^ value >> 47


def _mixed(first: int, second: int, multiplier: int) -> int:
    a = _shifted((first ^ second) * multiplier)
    return _shifted((second ^ a) * multiplier) * multiplier & _BITS
