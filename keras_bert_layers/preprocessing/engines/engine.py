"""Chooses the text engine: tensorflow-text, or the host where tensorflow-text is not installed."""

import functools
import importlib
from types import ModuleType


@functools.cache
def text_engine() -> ModuleType:
    """The module `tensorflow_text` where tensorflow-text is installed, otherwise `host`; both define the same names.

    - `IN_GRAPH`: whether a graph holds all that the engine does, so that it can be exported;
    - `CharacterReplacer(model)`: replaces characters by a table of `character_table`;
    - `WordPieceModel(tokens, max_word_length=, unknown=, splits_texts=)`: WordPiece ids of words, or of texts;
    - `SentencePieces(vocabulary, scores, unknown_id=)`: SentencePiece ids of words;
    - `split(texts, boundary, kept_boundary)`: spans of texts, int64 starts, ends and row splits.
    """
    try:
        importlib.import_module("tensorflow_text")
    except ModuleNotFoundError as error:
        if error.name != "tensorflow_text":  # it is installed, and something that it needs is not
            raise
        return importlib.import_module("keras_bert_layers.preprocessing.engines.host")
    return importlib.import_module("keras_bert_layers.preprocessing.engines.tensorflow_text")
