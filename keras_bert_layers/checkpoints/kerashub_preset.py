"""`download_preset`: from the name of a KerasHub preset to a directory on this machine."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints import kerashub_directory as files
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.kerashub_names import TASK_WEIGHTS, WEIGHTS
from keras_bert_layers.checkpoints.kerashub_notes import METADATA_FILE

KERASHUB = "kerashub://"
KAGGLE = "kaggle://"
PREFIXES = (KERASHUB, KAGGLE)

_SMALL = (files.TASK, files.TOKENIZER, files.PREPROCESSOR, METADATA_FILE, files.VOCABULARY)


def download_preset(source: str, *, owner: str, weights: bool = True) -> Path:
    """The local directory of a KerasHub preset, downloaded by keras_hub into its cache where it is not there yet.

    Args:
        source: `kerashub://NAME` with a name of `keras_hub.models.BertBackbone.presets`, as
            `kerashub://bert_tiny_en_uncased`; or `kaggle://OWNER/MODEL/keras/VARIATION`, with or without a version.
        owner: the public function that was called, for errors.
        weights: whether the weights are wanted; without them only the small files are downloaded.

    Returns:
        The directory. What comes from Kaggle was checked against its MD5 sum by kagglehub.

    Raises:
        CheckpointError: there is no such preset; it cannot be downloaded, say without a network; keras_hub is not
            installed.

    References:
        `get_file` in keras_hub, src/utils/preset_utils.py; `_download_file` in kagglehub, clients.py.
    """
    get_file = _downloader(source, owner)
    preset = source.removeprefix(KERASHUB)
    config = Path(_fetched(get_file, preset, files.CONFIG, source=source, owner=owner))
    for name in (*_SMALL, *((WEIGHTS, TASK_WEIGHTS) if weights else ())):
        try:
            _fetched(get_file, preset, name, source=source, owner=owner)
        except FileNotFoundError:  # a bare encoder has no task; who reads the directory knows what must be there
            continue
    return config.parent


def _downloader(source: str, owner: str) -> Callable[[str, str], str]:
    """keras_hub's own function, which knows its presets, its cache and the users' accounts."""
    try:
        import keras_hub
        from keras_hub.src.utils.preset_utils import get_file
    except ImportError as error:
        cure = f"Reading a preset by name needs keras_hub ({error}). Install it with `pip install keras-nlp`."
        raise CheckpointError(checks.message(owner, "source", "be a local directory here", source, cure)) from error
    presets = keras_hub.models.BertBackbone.presets
    name = source.removeprefix(KERASHUB)
    if source.startswith(KERASHUB) and name not in presets:
        close = difflib.get_close_matches(name, presets, n=1)
        cure = f"Did you mean {KERASHUB + close[0]!r}?" if close else f"There are {', '.join(sorted(presets))}."
        raise CheckpointError(checks.message(owner, "source", "name a BERT preset of KerasHub", source, cure))
    return get_file


def _fetched(get_file: Any, preset: str, name: str, *, source: str, owner: str) -> str:
    """The local path of one file; FileNotFoundError if the preset has no such file."""
    try:
        return get_file(preset, name)
    except FileNotFoundError:
        if name != files.CONFIG:
            raise
        reason = f"it has no {name}"
    except Exception as error:  # requests', kagglehub's and keras_hub's own, each with classes of its own
        reason = f"{type(error).__name__}: {error}"
    cure = f"{reason}. Without a network, download it elsewhere and give the directory."
    raise CheckpointError(checks.message(owner, "source", "be a preset that can be downloaded", source, cure))
