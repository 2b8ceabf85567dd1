"""Every signature of every task over HTTP, beside Keras; each task is the next version of one model."""

import contextlib
import time

import numpy as np
import pytest
from c_api.cases import CASES, MAX_LENGTH, ServedTask
from c_api.cases import texts as texts_with_any_bytes
from c_api.comparison import assert_equals_keras

pytestmark = [pytest.mark.serving, pytest.mark.exhaustive]

SECONDS_TO_LOAD = 120
# What fills up an answer where another row of its request has more.
FILLS = {"O": "", "i": -1, "f": -1.0}


class OverHttp:
    """A `ServedTask` that is queried over HTTP, with strings as JSON has them."""

    def __init__(self, served, client, texts):
        self.name, self.signatures = served.name, served.signatures
        self.inputs, self.meaningful = served.inputs, served.meaningful
        self._served, self._client, self._texts = served, client, texts

    def ask_keras(self, signature, texts):
        return {name: as_text(values) for name, values in self._served.ask_keras(signature, texts).items()}

    def ask(self, signature, inputs):
        expected = self.ask_keras(signature, self._texts)
        found = self._client.predict({name: as_text(values).tolist() for name, values in inputs.items()}, signature)
        if set(found) == {"output"}:  # an only output has no name
            found = dict.fromkeys(expected, found["output"])
        return {name: as_array(values, expected[name]) for name, values in found.items()}


def as_text(values):
    """Strings as JSON holds them: a cut character becomes the replacement character."""
    if values.dtype != object:
        return values
    texts = np.empty(values.shape, object)
    for place in np.ndindex(values.shape):
        texts[place] = values[place].decode("utf-8", "replace")
    return texts


def as_array(found, expected):
    """An output as wide as Keras's: over HTTP, columns that only fill up are left out."""
    wanted = np.full(expected.shape, FILLS[expected.dtype.kind], expected.dtype)

    def fill(place, values):
        if isinstance(values, list):
            for number, value in enumerate(values):
                fill((*place, number), value)
        else:
            wanted[place] = values

    fill((), found)
    assert len(found) == len(expected)
    return wanted


@pytest.fixture(scope="module")
def texts():
    """The texts of `tests/serving`, without what is not text."""
    return np.array([text.decode("utf-8", "replace").encode() for text in texts_with_any_bytes()], object)


@pytest.fixture(scope="module")
def served_task(minilm, tmp_path_factory):
    import keras_bert_layers as kbl

    folder = tmp_path_factory.mktemp("made")
    preprocessor = kbl.load_preprocessor(minilm, max_length=MAX_LENGTH)
    return lambda name: ServedTask(name, preprocessor, folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for a folder of versions that is empty yet."""
    pytest.importorskip("bentoml")
    from conftest import SERVING
    from server_process import ServerProcess

    folder = tmp_path_factory.mktemp("server")
    (folder / "models" / "task").mkdir(parents=True)
    server = ServerProcess("service:TextService", SERVING, models=folder / "models", home=folder, name="task")
    server.folder = folder / "models" / "task"
    yield server
    server.stop()


def wait_for_version(client, number):
    from rest_client import ServingError

    end, states = time.monotonic() + SECONDS_TO_LOAD, {}
    while states.get(number) != "AVAILABLE":
        assert time.monotonic() < end, states
        with contextlib.suppress(ServingError):  # it starts
            states = client.versions()
        time.sleep(0.2)


@pytest.mark.parametrize("name", CASES)
def test_equals_keras(name, served_task, server, texts):
    served, client = served_task(name), server.client()
    number = 1 + len(list(server.folder.iterdir()))
    served.model.rename(server.folder / str(number))
    wait_for_version(client, number)
    over_http = OverHttp(served, client, texts)
    assert_equals_keras(over_http, over_http.ask, texts, runtime="HTTP")
