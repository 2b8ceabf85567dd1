"""The stand-in for the C server, in Python, gives the same answers as the server in C."""

import pytest
from c_api.comparison import assert_same
from c_api.server_process import INVALID_ARGUMENT, NOT_FOUND

# The same operations, summed by other threads.
TOLERANCE = 1e-5


@pytest.mark.exhaustive
def test_answers_are_those_of_the_server_in_c(served_task, start, installation, texts):
    served = served_task("token_classifier")
    requests = [(name, served.inputs(name, texts)) for name in served.signatures]
    requests += [("serve", {"text": texts}), ("serving_default", {"texts": texts})]
    with (
        start(served.model, older=True) as server,
        start(served.model, older=True, command=installation.stand_in()) as other,
    ):
        for name, inputs in requests:
            found, wanted = other.ask(name, inputs, repeats=2), server.ask(name, inputs, repeats=2)
            assert (found.code, found.message) == (wanted.code, wanted.message)
            assert len(found.seconds) == len(wanted.seconds)
            assert_same(found.outputs, wanted.outputs, tolerance=TOLERANCE, hint=f"of {name}")
        assert found.code == INVALID_ARGUMENT
        assert other.ask("serve", {"text": texts}).code == NOT_FOUND
        assert other.version == server.version
