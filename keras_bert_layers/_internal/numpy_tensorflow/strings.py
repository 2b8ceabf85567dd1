"""TensorFlow's functions of strings, under the names of `tf.strings`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from keras_bert_layers._internal.numpy_tensorflow import patterns
from keras_bert_layers._internal.numpy_tensorflow.arrays import on_values
from keras_bert_layers._internal.numpy_tensorflow.fingerprints import fingerprint
from keras_bert_layers._internal.numpy_tensorflow.patterns import decode_bytes, encode_bytes, matcher
from keras_bert_layers._internal.numpy_tensorflow.ragged import RaggedTensor, map_flat, splits_of
from keras_bert_layers._internal.numpy_tensorflow.tensors import Tensor, string_array, to_array
from keras_bert_layers._internal.numpy_tensorflow.types import OBJECT, Kind, Value, invalid

_ESCAPED = (0xDC80, 0xDCFF)
_SURROGATES = (0xD800, 0xDFFF)
_LAST_CODE, _REPLACEMENT = 0x10FFFF, 0xFFFD
_CHARACTERS = "UTF8_CHAR"


def strings_of(value: Value) -> np.ndarray:
    """A value as an array of strings; TypeError for others."""
    return to_array(value, OBJECT)


def _mapped(function: Callable[[bytes], Any], texts: np.ndarray, dtype: Kind = OBJECT) -> Tensor:
    """A function of each string, called once for equal ones: many are the same word."""
    values = texts.ravel().tolist()
    found: Iterable[Any] = map(function, values)
    if len(values) > 1:
        known = {text: function(text) for text in set(values)}
        found = map(known.__getitem__, values)
    if dtype != OBJECT:
        return Tensor(np.fromiter(found, dtype, texts.size).reshape(texts.shape))
    return Tensor(string_array(list(found)).reshape(texts.shape))


def _lengths(texts: np.ndarray) -> np.ndarray:
    return np.fromiter(map(len, texts.ravel().tolist()), np.int64, texts.size)


@on_values
def length(input: Value, unit: str = "BYTE") -> Tensor:
    """The number of bytes, or of characters, of each string; int32."""
    texts = strings_of(input)
    if unit == "BYTE":
        return Tensor(_lengths(texts).astype(np.int32).reshape(texts.shape))
    joined = np.frombuffer(b"".join(texts.ravel().tolist()), np.int8)
    begun = splits_of((joined >= -0x40).astype(np.int32))
    return Tensor(np.diff(begun[splits_of(_lengths(texts))]).reshape(texts.shape))


@on_values
def substr(input: Value, pos: Value, len: Value, unit: str = "BYTE") -> Tensor:
    """The parts of strings from `pos` on, of `len` bytes or characters."""
    texts, starts, sizes = np.broadcast_arrays(strings_of(input), to_array(pos), to_array(len))
    part = _part_of_characters if unit == _CHARACTERS else _part
    values = (each.ravel().tolist() for each in (texts, starts, sizes))
    return Tensor(string_array(list(map(part, *values))).reshape(texts.shape))


def _part(text: Value, start: int, size: int) -> Any:
    if not -len(text) <= start <= len(text):
        raise invalid(f"pos {start} out of range for string {text!r:.80}")
    start += len(text) * (start < 0)
    return text[start : start + size] if size >= 0 else text[start:]


def _part_of_characters(text: bytes, start: int, size: int) -> bytes:
    return _part(text, start, size) if text.isascii() else encode_bytes(_part(decode_bytes(text), start, size))


@on_values
def regex_full_match(input: Value, pattern: str) -> Tensor:
    """Whether a pattern of RE2 matches a whole string."""
    match = matcher(pattern)
    return _mapped(lambda text: match(decode_bytes(text)) is not None, strings_of(input), np.bool_)


@on_values
def regex_replace(input: Value, pattern: str, rewrite: str | bytes, replace_global: bool = True) -> Tensor:
    """Strings with each match of a pattern of RE2 replaced."""
    template = patterns.template(rewrite if isinstance(rewrite, str) else decode_bytes(rewrite))

    def replaced(text: bytes) -> bytes:
        return encode_bytes(patterns.replaced(pattern, template, decode_bytes(text), not replace_global))

    return _mapped(replaced, strings_of(input))


@on_values
def unicode_transcode(
    input: Value,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
) -> Tensor:
    """Strings without bytes that are not UTF-8."""
    return _mapped(lambda text: _decoded(text, errors).encode(), strings_of(input))


def _decoded(text: bytes, errors: str) -> str:
    try:
        return text.decode("utf-8", errors)
    except UnicodeDecodeError:
        raise invalid("Invalid formatting on input string") from None


def _characters(texts: np.ndarray, errors: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The codes of all characters, where those of each string begin, and the strings."""
    decoded = [_decoded(text, errors) for text in texts.tolist()]
    codes = np.frombuffer("".join(decoded).encode("utf-32-le", "surrogatepass"), "<i4")
    return codes, splits_of(np.fromiter(map(len, decoded), np.int64, len(decoded))), decoded


def unicode_decode(input: Value, input_encoding: str, errors: str = "replace") -> Any:
    """The code points of the characters of strings, ragged int32 with one more axis."""
    if isinstance(input, RaggedTensor):
        return map_flat(lambda flat: unicode_decode(flat, input_encoding, errors), input)
    texts = strings_of(input)
    codes, splits, _ = _characters(texts.ravel(), errors)
    return _by_text(Tensor(codes), splits, texts.shape)


def _by_text(values: Value, splits: np.ndarray, shape: tuple[int, ...]) -> Any:
    """What each string of an array has, ragged."""
    if not shape:
        return values
    rows = RaggedTensor(values, Tensor(splits))
    for size in reversed(shape[1:]):
        rows = RaggedTensor(rows, Tensor(np.arange(len(rows) // size + 1 if size else 1, dtype=np.int64) * size))
    return rows


def unicode_decode_with_offsets(
    input: Value,
    input_encoding: str,
    errors: str = "replace",
) -> tuple[Any, Any]:
    """The code points of strings `[B]`, and the byte at which each character begins, int64."""
    if errors != "ignore":
        raise NotImplementedError(f"errors={errors!r}")
    texts = strings_of(input)
    codes, splits, _ = _characters(texts.ravel(), "surrogateescape")
    is_broken = (codes >= _ESCAPED[0]) & (codes <= _ESCAPED[1])
    sizes = 1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000)
    sizes[is_broken] = 1
    before = splits_of(sizes)
    starts = before[:-1] - np.repeat(before[splits[:-1]], np.diff(splits))
    if is_broken.any():
        splits = splits_of(~is_broken * np.int64(1))[splits]
        codes, starts = codes[~is_broken], starts[~is_broken]
    return _by_text(Tensor(codes), splits, texts.shape), _by_text(Tensor(starts), splits, texts.shape)


def unicode_encode(input: Value, output_encoding: str, errors: str = "replace") -> Any:
    """Strings of rows of code points."""
    if isinstance(input, RaggedTensor):
        if isinstance(input.values, RaggedTensor):
            return input.with_values(unicode_encode(input.values, output_encoding, errors))
        if input.values.ndim > 1:
            return input.with_values(unicode_encode(input.values, output_encoding, errors))
        return Tensor(_encoded(input.values.array, input.row_splits.array, errors))
    codes = to_array(input)
    if codes.shape[-1] == 1:
        found = string_array([character.encode() for character in _text(codes.ravel(), errors)])
    else:
        found = _encoded(codes.ravel(), np.arange(int(np.prod(codes.shape[:-1])) + 1) * codes.shape[-1], errors)
    return Tensor(found.reshape(codes.shape[:-1]))


def _encoded(codes: np.ndarray, splits: np.ndarray, errors: str) -> np.ndarray:
    text = _text(codes, errors).encode()
    if len(text) > len(codes):
        begins = np.flatnonzero(np.frombuffer(text, np.int8) >= -0x40)
        splits = np.append(begins, len(text))[splits]
    return string_array([text[a:b] for a, b in itertools.pairwise(splits.tolist())])


def _text(codes: np.ndarray, errors: str) -> str:
    is_wrong = (codes < 0) | (codes > _LAST_CODE) | ((codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1]))
    if is_wrong.any():
        if errors != "replace":
            raise invalid("Code point is out of range for Unicode, or a noncharacter.")
        codes = np.where(is_wrong, _REPLACEMENT, codes)
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def unicode_split(input: Value, input_encoding: str, errors: str = "replace") -> Any:
    """The characters of strings, ragged with one more axis."""
    texts = strings_of(input)
    _, splits, decoded = _characters(texts.ravel(), errors)
    values = string_array([character.encode() for text in decoded for character in text])
    return _by_text(Tensor(values), splits, texts.shape)


def bytes_split(input: Value) -> Any:
    """The bytes of strings, ragged with one more axis."""
    texts = strings_of(input)
    joined = b"".join(texts.ravel().tolist())
    values = string_array([joined[place : place + 1] for place in range(len(joined))])
    return _by_text(Tensor(values), splits_of(_lengths(texts)), texts.shape)


def split(input: Value, sep: Value = None, maxsplit: int = -1) -> Any:
    """The parts of strings between separators, ragged with one more axis."""
    texts = strings_of(input)
    between = strings_of(sep or b"").item() or None
    parts = [text.split(between, maxsplit) for text in texts.ravel().tolist()]
    values = string_array(list(itertools.chain.from_iterable(parts)))
    return _by_text(Tensor(values), splits_of(np.array([*map(len, parts)], np.int64)), texts.shape)


def join(inputs: Value, separator: str = "") -> Any:
    """The strings at each place of several tensors as one."""
    if any(isinstance(part, RaggedTensor) for part in inputs):
        return map_flat(lambda *parts: join(parts, separator), *inputs)
    parts = np.broadcast_arrays(*map(strings_of, inputs))
    between = strings_of(separator).item()
    rows = zip(*(part.ravel().tolist() for part in parts), strict=True)
    return Tensor(string_array(list(map(between.join, rows))).reshape(parts[0].shape))


def reduce_join(inputs: Value, axis: Value = None, keepdims: bool = False, separator: str = "") -> Any:
    """The strings along an axis, or all, as one."""
    between = strings_of(separator).item()
    if isinstance(inputs, RaggedTensor):
        if isinstance(inputs.values, RaggedTensor):
            return inputs.with_values(reduce_join(inputs.values, -1, keepdims, separator))
        return Tensor(_joined(between, inputs.values.array, inputs.row_splits.array))
    texts = strings_of(inputs)
    if axis is None:
        return Tensor(between.join(texts.ravel().tolist()))
    texts = np.moveaxis(texts, int(axis), -1)
    splits = np.arange(int(np.prod(texts.shape[:-1])) + 1) * texts.shape[-1]
    found = _joined(between, texts.ravel(), splits).reshape(texts.shape[:-1])
    return Tensor(np.expand_dims(found, int(axis)) if keepdims else found)


def _joined(between: bytes, texts: np.ndarray, splits: np.ndarray) -> np.ndarray:
    parts = texts.tolist()
    return string_array([between.join(parts[a:b]) for a, b in itertools.pairwise(splits.tolist())])


def unsorted_segment_join(inputs: Value, segment_ids: Value, num_segments: Value, separator: str = "") -> Tensor:
    """The strings of each segment as one."""
    texts, ids = strings_of(inputs), to_array(segment_ids)
    if (np.diff(ids) < 0).any():
        order = np.argsort(ids, kind="stable")
        texts, ids = texts[order], ids[order]
    splits = np.searchsorted(ids, np.arange(int(num_segments) + 1))
    return Tensor(_joined(strings_of(separator).item(), texts, splits))


@on_values
def to_hash_bucket_fast(input: Value, num_buckets: int) -> Tensor:
    """A number below `num_buckets` for each string, int64."""
    return _mapped(lambda text: fingerprint(text) % num_buckets, strings_of(input), np.int64)


@on_values
def as_string(input: Value) -> Tensor:
    """Integers as strings."""
    array = to_array(input)
    return Tensor(string_array([str(value).encode() for value in array.ravel().tolist()]).reshape(array.shape))
