"""Functions of tensorflow-text that it does not export, found in one place.

Two of the public ones do the same but cost too much: `regex_split_with_offsets` adds a dozen assertions, half of the
time to trace a tokenizer; `FastWordpieceTokenizer` makes a Python list of the model's bytes, which takes longer than
building them.
"""

import importlib
import operator
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

#: Modules of tensorflow-text, and where in them the functions are. Tested with 2.20.1 and 2.21.1.
REGEX_SPLIT = "tensorflow_text.python.ops.regex_split_ops", "gen_regex_split_ops.regex_split_with_offsets"
BUILD_WORDPIECE_MODEL = (
    "tensorflow_text.core.pybinds.pywrap_fast_wordpiece_tokenizer_model_builder",
    "build_fast_wordpiece_model",
)
_SENTENCE_PIECE_OPS = "tensorflow_text.python.ops.sentencepiece_tokenizer"
SENTENCE_PIECE_MODEL = _SENTENCE_PIECE_OPS, "gen_sentencepiece_tokenizer.sentencepiece_op"
SENTENCE_PIECES = _SENTENCE_PIECE_OPS, "gen_sentencepiece_tokenizer.sentencepiece_tokenize_with_offsets_op"
SENTENCE_PIECE_IDS = _SENTENCE_PIECE_OPS, "gen_sentencepiece_tokenizer.sentencepiece_string_to_id_op"


def find(internal: tuple[str, str]) -> Callable[..., Any]:
    """The function at one of the addresses above.

    Raises:
        ImportError: the installed tensorflow-text does not have it.
    """
    module, path = internal
    try:
        return operator.attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"`BertTokenizer`: tensorflow-text must have `{module}.{path}`. Received: tensorflow-text "
            f"{version('tensorflow-text')}, without it. Install a release that is known to work: "
            '`pip install "tensorflow-text>=2.20.1,<2.22"`.'
        ) from error
