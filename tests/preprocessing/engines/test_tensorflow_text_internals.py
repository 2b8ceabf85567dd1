import re
from importlib.metadata import version

import pytest

from keras_bert_layers.preprocessing.engines import tensorflow_text_internals as internals

INTERNALS = [value for name, value in vars(internals).items() if name.isupper() and isinstance(value, tuple)]


@pytest.mark.parametrize("internal", INTERNALS)
def test_this_version_of_tensorflow_text_has_them(internal):
    pytest.importorskip("tensorflow_text")
    assert callable(internals.find(internal)), f"tensorflow-text {version('tensorflow-text')} moved {internal}"


@pytest.mark.usefixtures("in_graph")
@pytest.mark.parametrize(
    "moved", [("tensorflow_text.python.ops.moved", "name"), (internals.REGEX_SPLIT[0], "gen_regex_split_ops.moved")]
)
def test_one_error_where_they_are_missing(moved):
    text = (
        f"`BertTokenizer`: tensorflow-text must have `{moved[0]}.{moved[1]}`. Received: tensorflow-text "
        f"{version('tensorflow-text')}, without it. Install a release that is known to work"
    )
    with pytest.raises(ImportError, match=re.escape(text)):
        internals.find(moved)
