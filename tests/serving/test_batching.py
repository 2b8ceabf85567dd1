"""Requests of several clients in one batch, as a server merges them, get the answers that each gets alone."""

from itertools import pairwise

import numpy as np
import pytest
from c_api.batching import BatchingError, merge, split
from c_api.cases import CASES
from c_api.comparison import assert_same
from c_api.server_process import INVALID_ARGUMENT, OK

# The same rows in products of other shapes.
TOLERANCE = 1e-5
SIZES = (1, 4, 2)
QUICK = "classifier"


def requests_of(inputs):
    """Rows of one request as several requests."""
    places = np.cumsum((0, *SIZES))
    return [{name: values[begin:end] for name, values in inputs.items()} for begin, end in pairwise(places)]


def narrowed(found, wanted):
    """An answer without the columns that only other requests of the batch needed, which must be filled up."""
    if found.shape[1:] == wanted.shape[1:]:
        return found
    inside = tuple(slice(size) for size in wanted.shape)
    rest = np.ones(found.shape, bool)
    rest[inside] = False
    assert set(found[rest].tolist()) <= {b"", -1, 0}
    return found[inside]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == QUICK else pytest.mark.exhaustive) for name in CASES],
)
def test_strings_of_several_requests(name, served_task, start, texts):
    served = served_task(name)
    signatures = [name for name in served.signatures if not name.endswith("token_ids")]
    with start(served.model, older=True) as server:
        for signature in signatures:
            requests = requests_of(served.inputs(signature, texts))
            together = server.ask(signature, merge(requests))
            assert together.message == ""
            for request, part in zip(requests, split(together.outputs, SIZES), strict=True):
                alone = server.ask(signature, request).outputs
                found = {key: narrowed(values, alone[key]) for key, values in part.items()}
                assert_same(found, alone, tolerance=TOLERANCE, hint=f"of {signature}")


def test_ids_of_several_lengths_are_refused_padded_or_not(served_task, start):
    """The reason why a server that batches must get strings: ids carry their own padding."""
    served = served_task("classifier")
    columns = [
        np.array([b"A good film."], object),
        np.array([b"A film that is a good deal longer than the other."], object),
    ]
    requests = [served.inputs("token_ids", column) for column in columns]
    with pytest.raises(BatchingError, match="Tensors with name 'token_ids' from different tasks have different shapes"):
        merge(requests)
    padded = merge(requests, pad_variable_length_inputs=True)
    assert padded["padding_mask"].all()
    with start(served.model) as server:
        answer = server.ask("token_ids", padded)
        assert answer.code == INVALID_ARGUMENT
        assert all(server.ask("token_ids", request).code == OK for request in requests)


def test_an_output_without_rows_is_refused():
    with pytest.raises(BatchingError, match="has 0 dimensions"):
        split({"y": np.zeros(2), "count": np.array(2)}, [1, 1])
    with pytest.raises(BatchingError, match="does not equal the sum"):
        split({"y": np.zeros((1, 2))}, [1, 1])
