"""The files that sentence-transformers adds to a BERT: the chain of modules, the pooling, the maximum length."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file

MODULES_FILE = "modules.json"
_MODEL_FILE = "config_sentence_transformers.json"

# A class is written as its import path, which changed between releases: sentence_transformers.models.Pooling up to
# 5.3, sentence_transformers.sentence_transformer.modules.pooling.Pooling from 5.4. Only its last part is stable.
_PACKAGE = "sentence_transformers."
_CHAINS = tuple(["Transformer", "Pooling", *rest] for rest in ([], ["Normalize"], ["Dense"], ["Dense", "Normalize"]))
# sentence_transformers/models/Dense.py writes the import path of a class of torch.nn; these are its last parts.
DENSE_ACTIVATIONS = {
    **{name: name.lower() for name in ("Tanh", "ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid")},
    **{"Identity": "linear", "GELU": "gelu_erf"},
}

# sentence_transformer/modules/pooling.py: one flag for each mode up to 5.3, the key `pooling_mode` from 5.4.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_POOLINGS = ("cls", "mean", "max")


def is_cross_encoder(root: Path) -> bool:
    """Whether sentence-transformers 5.4 or later wrote the directory of a `CrossEncoder`, a model with a head."""
    return json_file.optional_json(root / _MODEL_FILE).get("model_type") == "CrossEncoder"


def transformer_folder(root: Path) -> str:
    """The folder of `config.json` and the weights, relative to the checkpoint's root.

    Args:
        root: the checkpoint's directory.

    Returns:
        "" for the root itself: without a `modules.json`, and in every layout but the oldest.

    Raises:
        CheckpointError: `modules.json` is damaged or points outside the directory.
    """
    return next((folder for kind, folder in _modules(root) if kind == "Transformer"), "")


def sentence_encoder_options(root: Path, *, hidden_dim: int) -> dict[str, Any]:
    """The arguments of a `BertSentenceEncoder` for a sentence-transformers checkpoint.

    Args:
        root: the checkpoint's directory; it has a `modules.json`.
        hidden_dim: the encoder's width, which the pooling must have too.

    Returns:
        `pooling` and `normalize`; with a dense layer also `projection_dim` and `projection_activation`.

    Raises:
        CheckpointError: `BertSentenceEncoder` does not have this chain of modules or this pooling.
    """
    _check_model_type(root)
    modules = _modules(root)
    kinds, folders = [kind for kind, _ in modules], dict(modules)
    if kinds not in _CHAINS:
        raise CheckpointError(
            f"{root / MODULES_FILE}: the modules must be {' or '.join(str(chain) for chain in _CHAINS)}. "
            f"Received: {kinds}. Load the encoder alone with `load_backbone`, and add the rest in Keras."
        )
    pooling = _pooling(root / folders["Pooling"] / "config.json", hidden_dim)
    if "Normalize" in folders:
        _check_names(root / folders["Normalize"] / "config.json")
    projection = _projection(root / folders["Dense"] / "config.json", hidden_dim) if "Dense" in folders else {}
    return {"pooling": pooling, "normalize": "Normalize" in kinds, **projection}


def dense_folder(root: Path) -> Path | None:
    """The folder of the dense layer after the pooling; None if there is none."""
    folders = dict(_modules(root))
    return root / folders["Dense"] if "Dense" in folders else None


def _modules(root: Path) -> list[tuple[str, str]]:
    """Class name and folder of each module, in order; none without a `modules.json`."""
    path = root / MODULES_FILE
    modules = json_file.read_json(path) if path.is_file() else []
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise CheckpointError(f"{path}: must hold a JSON list of modules.")
    found = []
    for module in modules:
        kind, folder = module.get("type"), module.get("path", "")
        if not isinstance(kind, str) or not kind.startswith(_PACKAGE):
            raise CheckpointError(
                f"{path}: a module's type must be a class of sentence_transformers. Received: {kind!r}. "
                "A checkpoint's own code is never run."
            )
        if not json_file.is_file_name(folder):
            raise CheckpointError(f"{path}: a module's path must be a folder of the checkpoint. Received: {folder!r}.")
        found.append((kind.rpartition(".")[2], folder))
    return found


def _module_config(path: Path, module: str) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{path}: the {module}'s config is missing. Copy all files of the checkpoint.")
    return json_file.read_json_object(path)


def _pooling(path: Path, hidden_dim: int) -> str:
    values = _module_config(path, "pooling")
    width = values.get("embedding_dimension", values.get("word_embedding_dimension", hidden_dim))
    json_file.check_one_of(path, "embedding_dimension", width, (hidden_dim,), "It is the encoder's width.")
    flags = [mode for flag, mode in POOLING_FLAGS.items() if values.get(flag)]
    modes = values.get("pooling_mode", flags or ["mean"])
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in _POOLINGS:
        raise CheckpointError(f"{path}: the pooling must be one of {list(_POOLINGS)}. Received: {modes}.")
    return modes[0]


def _projection(path: Path, hidden_dim: int) -> dict[str, Any]:
    """Width and activation of a dense layer."""
    values = _module_config(path, "dense layer")
    _check_names(path)
    json_file.check_one_of(path, "use_residual", bool(values.get("use_residual")), (False,))
    json_file.check_one_of(path, "in_features", values.get("in_features"), (hidden_dim,), "It is the encoder's width.")
    width = json_file.check_integer(path, "out_features", values.get("out_features"), least=1)
    activation = str(values.get("activation_function", "Tanh")).rpartition(".")[2]
    json_file.check_one_of(path, "activation_function", activation, list(DENSE_ACTIVATIONS))
    return {"projection_dim": width, "projection_activation": DENSE_ACTIVATIONS[activation]}


def _check_names(path: Path) -> None:
    """Refuses a module that reads or writes something else than the vector."""
    values = json_file.optional_json(path)
    for key in ("module_input_name", "module_output_name"):
        if values.get(key) is not None:
            json_file.check_one_of(path, key, values[key], ("sentence_embedding",))


def _check_model_type(root: Path) -> None:
    """Refuses models that are not sentence encoders; warns that a default prompt is not applied."""
    path = root / _MODEL_FILE
    values = json_file.optional_json(path)
    json_file.check_one_of(
        path, "model_type", values.get("model_type", "SentenceTransformer"), ("SentenceTransformer",)
    )
    prompts, name = values.get("prompts") or {}, values.get("default_prompt_name")
    prompt = prompts.get(name) if isinstance(prompts, dict) else None
    if prompt:
        warnings.warn(
            f"{path}: sentence-transformers puts the prompt {prompt!r} before every text of this model. "
            "Put it there yourself; `BertSentenceEncoder` takes texts as they are.",
            stacklevel=5,
        )


def text_settings(folder: Path) -> tuple[int | None, bool]:
    """The settings for texts in `sentence_bert_config.json`.

    Args:
        folder: the folder of `config.json`.

    Returns:
        The maximum length in tokens, [CLS] and [SEP] included, or None if it is not stated (from release 5.4 on it is
        `model_max_length` in `tokenizer_config.json` only); and whether text is lower-cased before tokenization.

    Raises:
        CheckpointError: a value of the wrong type.
    """
    path = folder / "sentence_bert_config.json"
    values = json_file.optional_json(path)
    length, lowercase = values.get("max_seq_length"), values.get("do_lower_case", False)
    if length is not None:
        json_file.check_integer(path, "max_seq_length", length, least=3)
    return length, json_file.check_boolean(path, "do_lower_case", lowercase)
