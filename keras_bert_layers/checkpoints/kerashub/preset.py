"""`download_preset`: downloads a KerasHub preset."""

import difflib
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.kerashub import directory as files
from keras_bert_layers.checkpoints.kerashub.directory import TASK_WEIGHTS, WEIGHTS

KERASHUB = "kerashub://"
KAGGLE = "kaggle://"
PREFIXES = (KERASHUB, KAGGLE)

_SMALL = (files.TASK, files.TOKENIZER, files.PREPROCESSOR, files.METADATA, files.VOCABULARY)
_NOT_FOUND = 404
# kagglehub's ValueError where the files of a model are mounted, as in Kaggle's notebooks. Its bad handles are
# ValueErrors too, so the text alone tells the two apart.
_NOT_MOUNTED = "is not present in the model files"


def download_preset(source: str, *, owner: str, weights: bool = True) -> Path:
    """Downloads a KerasHub preset into kagglehub's cache, if it is not there yet.

    Args:
        source: `kerashub://NAME` with a name of `keras_hub.models.BertBackbone.presets`, such as
            `kerashub://bert_tiny_en_uncased`; or `kaggle://OWNER/MODEL/keras/VARIATION`, with or without a version.
        owner: the public function that was called, for errors.
        weights: whether to download the weights too, or only the small files.

    Returns:
        The local directory. kagglehub compares what it downloads with its MD5 sum.

    Raises:
        CheckpointError: there is no such preset; it cannot be downloaded, for example without a network; keras_hub is
            not installed.

    References:
        `_download_file` in kagglehub, clients.py.
    """
    try:
        import kagglehub
        import keras_hub
    except ImportError as error:
        cure = f"Reading a preset by name needs keras_hub ({error}). Install it with `pip install keras-nlp`."
        raise CheckpointError(checks.message(owner, "source", "be a local directory here", source, cure)) from error
    handle = _handle(source, keras_hub.models.BertBackbone.presets, owner=owner)
    config = ""
    for name in (files.CONFIG, *_SMALL, *((WEIGHTS, TASK_WEIGHTS) if weights else ())):
        try:
            path = kagglehub.model_download(handle, name)
        except Exception as error:  # requests' and kagglehub's, each with classes of its own
            is_missing = _is_missing(error)
            if is_missing and name != files.CONFIG:  # optional, or reported when the directory is read
                continue
            reason = f"it has no {name}" if is_missing else f"{type(error).__name__}: {error}"
            cure = f"{reason}. Without a network, download it elsewhere and give the directory."
            rule = "be a preset that can be downloaded"
            raise CheckpointError(checks.message(owner, "source", rule, source, cure)) from error
        config = config or path
    return Path(config).parent


def _is_missing(error: Exception) -> bool:
    """Whether an error says that a model does not have a file: by the status of Kaggle's answer, if it is of one."""
    response = getattr(error, "response", None)
    if response is not None:  # a response of an error is false
        return response.status_code == _NOT_FOUND
    return isinstance(error, ValueError) and _NOT_MOUNTED in str(error)


def _handle(source: str, presets: dict[str, dict[str, str]], *, owner: str) -> str:
    """Kaggle's handle of a source."""
    if source.startswith(KAGGLE):
        return source.removeprefix(KAGGLE)
    name = source.removeprefix(KERASHUB)
    if name not in presets:
        close = difflib.get_close_matches(name, presets, n=1)
        cure = f"Did you mean {KERASHUB + close[0]!r}?" if close else f"There are {', '.join(sorted(presets))}."
        raise CheckpointError(checks.message(owner, "source", "name a BERT preset of KerasHub", source, cure))
    return presets[name]["kaggle_handle"].removeprefix(KAGGLE)
