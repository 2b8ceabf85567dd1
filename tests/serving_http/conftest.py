"""A small model in two versions, and servers for it."""

import shutil
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
def start_server(tmp_path):
    """Starts `service.py` for a folder of models; stops it at the end."""
    pytest.importorskip("bentoml")
    from server_process import ServerProcess

    servers = []

    def start(models, **options):
        home = tmp_path / f"bentoml_{len(servers)}"
        home.mkdir()
        server = ServerProcess("service:TextService", SERVING, models=models, home=home, **options)
        servers.append(server)
        server.wait_until_ready()
        return server

    yield start
    for server in servers:
        server.stop()
