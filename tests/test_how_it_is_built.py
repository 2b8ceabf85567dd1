"""The files that a string meets in `fit` are those that docs/explanation/how-it-is-built.md names, and no others."""

import re
import sys
from pathlib import Path

import keras
import pytest

import keras_bert_layers as kbl

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "keras_bert_layers"
# These are the model, which has a section of its own.
MODEL = ("layers/", "backbone.py")
# tf.data calls the one, where no profiler looks; the other is entered at the first use of a name of TensorFlow.
NOT_ALWAYS_SEEN = {"preprocessing/masking/random_numbers.py", "_internal/lazy.py"}


@pytest.fixture
def classifier(vocabulary):
    keras.utils.set_random_seed(1)
    sizes = {"hidden_dim": 6, "num_layers": 1, "num_heads": 3, "intermediate_dim": 5, "max_sequence_length": 9}
    backbone = kbl.BertBackbone(kbl.BertConfig(vocabulary_size=len(vocabulary), **sizes))
    preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(vocabulary), 9)
    return kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)


def entered(function):
    """The files of the package whose functions are called."""
    codes = set()

    def note(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    paths = {Path(code.co_filename) for code in codes}
    return {path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE)}


def test_the_page_names_the_files_that_fit_enters(classifier):
    pytest.importorskip("tensorflow_text")  # elsewhere, the engine of the host
    page = (ROOT / "docs" / "explanation" / "how-it-is-built.md").read_text(encoding="utf-8")
    section = page.partition("\n## fit\n")[2].partition("\n## The model\n")[0]
    named = {path for path in re.findall(r"`([\w/]+\.py)`", section) if not path.startswith(MODEL)}
    texts, labels = ["A fine film", "dull"] * 2, ["good", "bad"] * 2
    found = {path for path in entered(lambda: classifier.fit(texts, labels, verbose=0)) if not path.startswith(MODEL)}
    found |= NOT_ALWAYS_SEEN
    assert named == found, "\n".join(sorted(found ^ named))
    assert f"{len(found)} files" in section
