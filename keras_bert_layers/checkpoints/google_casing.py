"""Whether a checkpoint of google-research/bert lower-cases its text, which its files do not say."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.json_file import read_json_object

KEY = "do_lower_case"

logger = logging.getLogger("keras_bert_layers.checkpoints")

# google-research/bert, tokenization.py, `validate_case_matches_checkpoint`: uncased_L-12_H-768_A-12,
# multi_cased_L-12_H-768_A-12, chinese_L-12_H-768_A-12, multilingual_L-12_H-768_A-12, ...
_WORDS = {"uncased": True, "cased": False, "multilingual": True, "chinese": True}

# Of the pieces of bert-base-cased with a letter 31 % have an upper-case one, of those of bert-base-uncased none.
_CASED_SHARE = 0.01


def lowercases(directory: Path, values: Mapping[str, Any], vocabulary: Sequence[str]) -> bool:
    """Whether text is lower-cased, from the first of these that tells.

    1. The key `do_lower_case` of `bert_config.json`, or else of `tokenizer_config.json`.
    2. The directory's name, if one of its words is of Google's releases: "uncased", "cased", "multilingual",
       "chinese", tried in this order. The second means that case is kept.
    3. The vocabulary: case is kept if pieces with an upper-case letter are not rare in it, as such pieces match nothing
       in lower-cased text.

    Args:
        directory: the checkpoint.
        values: what `bert_config.json` holds.
        vocabulary: the tokens.

    Returns:
        True if it is lower-cased, accents taken off. A vocabulary without any Latin letter tells nothing; True, the
        default of Google's programs, is then given with a warning.

    Raises:
        CheckpointError: `do_lower_case` is not true or false.
    """
    tokenizer_file = directory / "tokenizer_config.json"
    files = {directory / "bert_config.json": values}
    if tokenizer_file.is_file():
        files[tokenizer_file] = read_json_object(tokenizer_file)
    for path, stated in files.items():
        if KEY in stated:
            if not isinstance(stated[KEY], bool):
                raise CheckpointError(f"{path}: `{KEY}` must be true or false. Received: {stated[KEY]!r}.")
            return stated[KEY]
    words = re.split(r"[^a-z]+", directory.resolve().name.lower())
    for word, lowercase in _WORDS.items():
        if word in words:
            return lowercase
    return _by_vocabulary(directory, vocabulary)


def _by_vocabulary(directory: Path, vocabulary: Sequence[str]) -> bool:
    words = [token for token in vocabulary if not (token.startswith("[") and token.endswith("]"))]
    words = [word for word in words if any("a" <= letter.lower() <= "z" for letter in word)]
    if not words:
        warnings.warn(
            f"{directory}: nothing says whether its text is lower-cased: no `{KEY}` in bert_config.json, no word in "
            "the directory's name, no Latin letters in the vocabulary. Lower-casing, as Google's programs do by "
            f'default. Write `"{KEY}": true` or `false` into bert_config.json to say it.',
            stacklevel=4,
        )
        return True
    num_cased = sum(word != word.lower() for word in words)
    lowercase = num_cased < _CASED_SHARE * len(words)
    logger.info(
        "%s: text is %s, as %d of its vocabulary's %d pieces with Latin letters have upper-case ones",
        *(directory, "lower-cased" if lowercase else "not lower-cased", num_cased, len(words)),
    )
    return lowercase
