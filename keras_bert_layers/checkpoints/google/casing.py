"""`lowercases`: whether a checkpoint of google-research/bert lower-cases its text, which its files do not state."""

import logging
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.files.json_file import check_boolean, optional_json
from keras_bert_layers.checkpoints.files.vocabulary import CASED_SHARE, cased_share

KEY = "do_lower_case"

logger = logging.getLogger("keras_bert_layers.checkpoints")

# google-research/bert, tokenization.py, `validate_case_matches_checkpoint`: uncased_L-12_H-768_A-12,
# multi_cased_L-12_H-768_A-12, chinese_L-12_H-768_A-12, multilingual_L-12_H-768_A-12, ...
_WORDS = {"uncased": True, "cased": False, "multilingual": True, "chinese": True}


def lowercases(directory: Path, values: Mapping[str, Any], vocabulary: Sequence[str]) -> bool:
    """Whether text is lower-cased, from the first of these that states it.

    1. The key `do_lower_case` of `bert_config.json`, or else of `tokenizer_config.json`.
    2. The directory's name, if it contains a word of Google's releases: "uncased", "cased", "multilingual" or
       "chinese", tried in this order. Only "cased" keeps the case.
    3. The vocabulary: case is kept if pieces with an upper-case letter are not rare, as such pieces match nothing in
       lower-cased text.

    Args:
        directory: the checkpoint.
        values: the content of `bert_config.json`.
        vocabulary: the tokens.

    Returns:
        True if text is lower-cased and its accents are stripped. A vocabulary without Latin letters decides nothing;
        the result is then True, the default of Google's programs, with a warning.

    Raises:
        CheckpointError: `do_lower_case` is not true or false.
    """
    tokenizer_file = directory / "tokenizer_config.json"
    files = {directory / "bert_config.json": values, tokenizer_file: optional_json(tokenizer_file)}
    for path, stated in files.items():
        if KEY in stated:
            return check_boolean(path, KEY, stated[KEY])
    words = re.split(r"[^a-z]+", directory.resolve().name.lower())
    for word, lowercase in _WORDS.items():
        if word in words:
            return lowercase
    return _by_vocabulary(directory, vocabulary)


def _by_vocabulary(directory: Path, vocabulary: Sequence[str]) -> bool:
    cased = cased_share(vocabulary)
    if cased is None:
        warnings.warn(
            f"{directory}: nothing states whether its text is lower-cased: no `{KEY}` in bert_config.json, no word in "
            "the directory's name, no Latin letters in the vocabulary. It is lower-cased, the default of Google's "
            f'programs. Write `"{KEY}": true` or `false` into bert_config.json to state it.',
            stacklevel=4,
        )
        return True
    lowercase = cased < CASED_SHARE
    logger.info(
        "%s: text is %s, as %.1f %% of its vocabulary's pieces with Latin letters have upper-case ones",
        *(directory, "lower-cased" if lowercase else "not lower-cased", 100 * cased),
    )
    return lowercase
