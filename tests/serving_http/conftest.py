"""A small model in two versions, and servers for it."""

import contextlib
import io
import logging
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SERVING = Path(__file__).parents[2] / "examples" / "serving"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film night un ##happy , . ! ?".split()]

# The modules of the examples and of this folder are not in packages.
sys.path[:0] = [str(SERVING), str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def small_classifier():
    """A classifier with random weights, by its class names."""

    def make(class_names):
        import keras

        from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertPreprocessor, BertTokenizer

        keras.utils.set_random_seed(3)
        config = BertConfig(vocabulary_size=len(WORDS), hidden_dim=15, num_layers=2, num_heads=3, intermediate_dim=21)
        preprocessor = BertPreprocessor(BertTokenizer(WORDS), max_length=128)
        return BertClassifier(BertBackbone(config), class_names=class_names, preprocessor=preprocessor)

    return make


@pytest.fixture(scope="session")
def versions(tmp_path_factory, small_classifier):
    """Two exported versions, which differ in their labels."""
    folder = tmp_path_factory.mktemp("versions")
    small_classifier(["bad", "good"]).export(folder / "first")
    small_classifier(["no", "yes"]).export(folder / "second")
    return folder


@pytest.fixture
def models(tmp_path, versions):
    """A folder of models that holds `sentiment/1`."""
    shutil.copytree(versions / "first", tmp_path / "models" / "sentiment" / "1")
    return tmp_path / "models"


@pytest.fixture
def inspected(monkeypatch):
    """What a command `saved_model_cli ... | ...` prints in a folder; TensorFlow's part runs in this process."""

    def inspected(command, folder):
        from tensorflow.python.tools import saved_model_cli

        command, _, others = command.partition(" | ")
        program, *words = shlex.split(command)
        assert shutil.which(program)
        assert saved_model_cli.__name__.endswith(f".{program}")
        for flag in saved_model_cli.flags.FLAGS.flags_by_module_dict().get(saved_model_cli.__name__, ()):
            flag.unparse()  # what the command before has set
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", [program, *words])
        monkeypatch.setattr(logging.root, "handlers", logging.root.handlers[:])
        with contextlib.redirect_stdout(io.StringIO()) as shown, pytest.raises(SystemExit) as ended:
            saved_model_cli.main()
        assert not ended.value.code
        if not others:
            return shown.getvalue()
        return subprocess.run(
            ["bash", "-c", others], input=shown.getvalue(), capture_output=True, text=True, check=True
        ).stdout

    return inspected


@contextlib.contextmanager
def starting(folder):
    """A function that starts `service.py` for a folder of models; stops all at the end."""
    pytest.importorskip("bentoml")
    from server_process import ServerProcess

    servers = []

    def start(models, *, is_ready=True, **options):
        home = folder / f"bentoml_{len(servers)}"
        home.mkdir()
        server = ServerProcess("service:TextService", SERVING, models=models, home=home, **options)
        servers.append(server)
        if is_ready:
            server.wait_until_ready()
        return server

    try:
        yield start
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def start_server(tmp_path):
    """Starts servers that end with the test."""
    with starting(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_shared_server(tmp_path_factory):
    """Starts servers that end with the file: a start takes longer than most tests of one."""
    with starting(tmp_path_factory.mktemp("servers")) as start:
        yield start
