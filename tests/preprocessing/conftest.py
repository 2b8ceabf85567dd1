"""What the preprocessing tests share: the plain-Python reference, real texts, and hard random ones."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SCALARS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
# The contexts `ab{c}cd`, `{c}` (with blanks around it, also ` {c} `) and `a{c}{c}b` in one text.
CONTEXTS = "ab{c}cd {c} a{c}{c}b"
# So many scalar values share a text, which spares the library a million small ones.
GROUP = 64


def _load(name):
    spec = importlib.util.spec_from_file_location(f"keras_bert_layers_tests_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def google_tokenizer():
    """The class `GoogleTokenizer`."""
    return _load("google_tokenization").GoogleTokenizer


@pytest.fixture(scope="session")
def real_texts(shared_data):
    """A function that reads every `step`-th text of the data folder."""
    texts = _load("real_texts").texts
    return lambda step: texts(shared_data, step)


@pytest.fixture(scope="session")
def hard_texts():
    """A function of a seed and a number that draws texts full of what tokenizers get wrong."""
    return _load("hard_texts").hard_texts


@pytest.fixture(scope="session")
def minilm_vocabulary(minilm):
    return (minilm / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")


@pytest.fixture(scope="session")
def rich_vocabulary(minilm_vocabulary):
    """A real vocabulary with tokens added that are easy to get wrong."""
    return list(dict.fromkeys([*minilm_vocabulary, *_load("hard_texts").HARD_TOKENS]))


@pytest.fixture(scope="session")
def differences():
    """A function that names the scalar values, out of all, for which two ways from texts to ids differ."""

    def compare(found_of, expected_of):
        different = _different([SCALARS[i : i + GROUP] for i in range(0, len(SCALARS), GROUP)], found_of, expected_of)
        alone = _different([[c] for group in different for c in group], found_of, expected_of)
        return [f"U+{ord(c):04X}" for (c,) in alone] or different

    return compare


def _different(groups, found_of, expected_of):
    texts = [" ".join(CONTEXTS.replace("{c}", c) for c in group) for group in groups]
    pairs = zip(groups, found_of(texts), expected_of(texts), strict=True)
    return [group for group, found, expected in pairs if found != expected]
