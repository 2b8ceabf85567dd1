"""Servers without Python, and what they serve."""

import warnings

import numpy as np
import pytest
from c_api.installation import Installation


@pytest.fixture(scope="session")
def installation():
    """The TensorFlow that the tests run on."""
    return Installation.of_this_process()


@pytest.fixture(scope="session")
def serve(installation, tmp_path_factory):
    """The command that starts a server: the C program, or where there is no C compiler, its stand-in in Python."""
    command = installation.compile_server(tmp_path_factory.mktemp("serve"))
    if command is None:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("No C compiler is found: Python stands in for the server in C.", stacklevel=1)
        command = installation.stand_in()
    return command


@pytest.fixture(scope="session")
def start(serve, installation):
    """Starts a server: `start(model, older=True)` with the operations of an older one; options of `ServerProcess`."""
    from c_api.server_process import ServerProcess

    def start(model, *, older=False, command=serve, **options):
        return ServerProcess(command, model, libraries=installation.text_libraries(older=older), **options)

    return start


@pytest.fixture(scope="session")
def served_task(minilm, tmp_path_factory):
    """`served_task(name)`: a task of `c_api.cases` with its SavedModel, made once."""
    from c_api.cases import MAX_LENGTH, ServedTask

    import keras_bert_layers as kbl

    folder = tmp_path_factory.mktemp("models")
    preprocessor = kbl.load_preprocessor(minilm, max_length=MAX_LENGTH)
    made: dict[str, ServedTask] = {}

    def served_task(name):
        if name not in made:
            made[name] = ServedTask(name, preprocessor, folder)
        return made[name]

    return served_task


@pytest.fixture(scope="session")
def texts():
    from c_api.cases import texts

    return texts()


@pytest.fixture(scope="session")
def assert_same():
    """Strings and integers are equal, floats within a tolerance; gives the largest difference of floats."""

    def assert_same(found, expected, *, tolerance, hint=""):
        assert set(found) == set(expected), hint
        largest = 0.0
        for name, values in expected.items():
            assert found[name].shape == values.shape, f"{name} {hint}"
            if values.dtype.kind != "f":
                np.testing.assert_array_equal(found[name], values, err_msg=f"{name} {hint}")
                continue
            np.testing.assert_allclose(found[name], values, rtol=tolerance, atol=tolerance, err_msg=f"{name} {hint}")
            largest = max(largest, float(np.abs(found[name] - values).max(initial=0)))
        return largest

    return assert_same
