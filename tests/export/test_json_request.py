"""`json_request`: what becomes an array, and what is refused before."""

import numpy as np
import pytest

from keras_bert_layers.export import json_request
from keras_bert_layers.export.json_request import (
    RequestError,
    arrays,
    check_headers,
    check_size,
    parsed,
    predict_request,
)

SIGNATURES = {
    "serving_default": {"text": ((None,), "string")},
    "ids": {"ids": ((None, None), "int32"), "mask": ((None, 2), "int32")},
    "numbers": {"number": ((None,), "float32")},
    "vectors": {"vector": ((None, 1), "float32")},
    "flags": {"flag": ((), "bool")},
}


def test_arrays():
    (text,) = arrays("serving_default", ["é", ""], SIGNATURES).values()
    assert (text.dtype, text.tolist()) == (object, ["é".encode(), b""])
    found = arrays("ids", {"ids": [[1, 2, 3]], "mask": [[1, 0]]}, SIGNATURES)
    assert [(array.dtype, array.shape) for array in found.values()] == [(np.int32, (1, 3)), (np.int32, (1, 2))]
    assert arrays("numbers", [1, 0.5], SIGNATURES)["number"].tolist() == [1.0, 0.5]
    np.testing.assert_array_equal(arrays("numbers", [1, None], SIGNATURES)["number"], [1, np.nan])
    assert arrays("flags", True, SIGNATURES)["flag"].shape == ()


@pytest.mark.parametrize(
    ("signature", "values", "rule"),
    [
        ("serving_default", [[[["a"]]]], r"row 0 of the input 'text' must be a string. Received: \[\[\['a'\]\]\]"),
        ("serving_default", ["a", "\ud800"], "row 1 .* must be text; it holds half a surrogate pair at 0"),
        ("ids", {"ids": [[1], [2, 3]], "mask": [[1, 1]]}, "'ids' must have rows of one length"),
        ("ids", {"ids": [[1]], "mask": [[1]]}, "'mask' must have 2 entries on axis 1. Received: 1"),
        ("ids", {"ids": [[1], [True]], "mask": [[1, 1]]}, "row 1 .* an integer of 32 bits. Received: True"),
        ("ids", {"ids": [[2**31]], "mask": [[1, 1]]}, "an integer of 32 bits. Received: 2147483648"),
        ("ids", {"ids": [[1]], "mask": [[1, 1], [1, 1]]}, "the same number of rows. Received: {'ids': 1, 'mask': 2}"),
        ("ids", {"ids": [[1] * 70_000], "mask": [[1, 1]]}, "at most 65536 numbers in a row"),
        ("vectors", [[None]], "row 0 .* a number of float32. Received: None"),
        ("numbers", [float("inf")], "a number of float32. Received: inf"),
        ("numbers", [10**400], "a number of float32"),
        ("absent", [], "signature_name must be one of"),
    ],
)
def test_values_that_are_refused(signature, values, rule):
    with pytest.raises(RequestError, match=rule) as caught:
        arrays(signature, values, SIGNATURES)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"[" * 1000 + b"]" * 1000, "nested at most 32 deep"),
        (b'{"a": [' + b"[]," * 300_000 + b"[]]}", "at most 250000 lists and objects"),
        (b'{"a": 1, "a": 2}', "a key twice"),
        (b'{"a": NaN}', "JSON has no NaN"),
        (b'{"a": ' + b"1" * 5000 + b"}", "JSON Parse error: .*4300"),
        (b'{"a": "\xff"}', "invalid start byte at offset: 7"),
        (b'{"a": [', "Expecting value at offset: 7"),
        (b"[]", "must be a JSON object"),
    ],
)
def test_bodies_that_are_refused(body, rule):
    with pytest.raises(RequestError, match=rule):
        parsed(body)


def test_brackets_in_strings_are_no_levels():
    assert parsed(b'{"a": "' + b'\\"[{' * 300_000 + b'"}')["a"] == '"[{' * 300_000


@pytest.mark.parametrize("name", [[], {}, 0, None, False])
def test_a_name_is_a_string(name):
    with pytest.raises(RequestError, match="signature_name must be a string"):
        predict_request({"inputs": ["a"], "signature_name": name})


def test_sizes(monkeypatch):
    monkeypatch.setattr(json_request, "MAX_ROWS", 2)
    check_size({"text": np.array([b"a"] * 2, object)})
    with pytest.raises(RequestError, match="rows of a request must be at most 2. Received: 3"):
        check_size({"text": np.array([b"a"] * 3, object)})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json; charset=utf-16"}, 415),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_headers_that_are_refused(headers, status):
    with pytest.raises(RequestError) as caught:
        check_headers(headers)
    assert caught.value.status == status
    check_headers({"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"})
