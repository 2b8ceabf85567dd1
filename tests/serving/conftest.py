"""Fixtures of the serving tests: servers without Python, and the tasks that they serve."""

import warnings

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


@pytest.fixture
def asked_as_keras(texts):
    """`asked_as_keras(served, server, runtime)` asks a server every signature of a task, and compares with Keras."""
    from c_api.comparison import assert_equals_keras

    def asked_as_keras(served, server, runtime):
        def ask(signature, inputs):
            answer = server.ask(signature, inputs)
            assert answer.message == ""
            return answer.outputs

        assert_equals_keras(served, ask, texts, runtime=runtime)

    return asked_as_keras
