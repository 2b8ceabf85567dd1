"""What sentence-transformers writes beside a BERT: the chain of modules, the pooling, the longest text."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.json_file import read_json, read_json_object

MODULES_FILE = "modules.json"
_MODEL_FILE = "config_sentence_transformers.json"

# A class is written as its import path, which changed between releases: sentence_transformers.models.Pooling up to
# 5.3, sentence_transformers.sentence_transformer.modules.pooling.Pooling from 5.4. Only its last part stayed.
_PACKAGE = "sentence_transformers."
_CHAINS = tuple(["Transformer", "Pooling", *rest] for rest in ([], ["Normalize"], ["Dense"], ["Dense", "Normalize"]))
# sentence_transformers/models/Dense.py keeps the import path of a class of torch.nn; its last part says which.
DENSE_ACTIVATIONS = {
    "Tanh": "tanh",
    "Identity": "linear",
    "ReLU": "relu",
    "ReLU6": "relu6",
    "GELU": "gelu_erf",
    "SiLU": "silu",
    "Mish": "mish",
    "Sigmoid": "sigmoid",
}

# The longest name that a common file system has, in bytes; a longer one cannot be looked for.
_MAX_NAME_LENGTH = 255

# sentence_transformer/modules/pooling.py: one flag a mode up to 5.3, the key `pooling_mode` from 5.4.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_POOLINGS = ("cls", "mean", "max")


@dataclasses.dataclass(frozen=True)
class SentenceEncoderSettings:
    """How a sentence-transformers checkpoint turns hidden states into a vector.

    Args:
        pooling: "cls", "mean" or "max".
        normalize: whether the vector is scaled to Euclidean length 1.
        projection_dim: the width of a dense layer between the two; None for none.
        projection_activation: that layer's activation.
    """

    pooling: str
    normalize: bool
    projection_dim: int | None = None
    projection_activation: str = "tanh"


def is_cross_encoder(root: Path) -> bool:
    """Whether sentence-transformers 5.4 or later wrote the directory of a `CrossEncoder`, a model with a head."""
    path = root / _MODEL_FILE
    return path.is_file() and read_json_object(path).get("model_type") == "CrossEncoder"


def transformer_folder(root: Path) -> str:
    """The folder of `config.json` and the weights, relative to the checkpoint's root.

    Args:
        root: the checkpoint's directory.

    Returns:
        "" for the root itself: without a `modules.json`, and in every layout but the oldest.

    Raises:
        CheckpointError: `modules.json` is damaged or points outside the directory.
    """
    path = root / MODULES_FILE
    if not path.is_file():
        return ""
    return next((folder for kind, folder in _modules(path) if kind == "Transformer"), "")


def sentence_encoder_settings(root: Path, *, hidden_dim: int) -> SentenceEncoderSettings:
    """Pooling and normalisation of a sentence-transformers checkpoint.

    Args:
        root: the checkpoint's directory; it has a `modules.json`.
        hidden_dim: the encoder's width, which the pooling must state too.

    Returns:
        The settings.

    Raises:
        CheckpointError: the chain of modules, or the pooling, is one that `BertSentenceEncoder` does not have.
    """
    _check_model_type(root)
    modules = _modules(root / MODULES_FILE)
    kinds = [kind for kind, _ in modules]
    folders = dict(modules)
    if kinds not in _CHAINS:
        raise CheckpointError(
            f"{root / MODULES_FILE}: the modules must be {' or '.join(str(chain) for chain in _CHAINS)}. "
            f"Received: {kinds}. Load the encoder alone with `load_backbone`, and add the rest in Keras."
        )
    pooling = _pooling(root / folders["Pooling"] / "config.json", hidden_dim)
    if "Normalize" in folders:
        _check_names(root / folders["Normalize"] / "config.json")
    projection = _projection(root / folders["Dense"] / "config.json", hidden_dim) if "Dense" in folders else {}
    return SentenceEncoderSettings(pooling, normalize="Normalize" in kinds, **projection)


def dense_folder(root: Path) -> Path | None:
    """The folder of the dense layer behind the pooling; None where there is none."""
    folders = dict(_modules(root / MODULES_FILE))
    return root / folders["Dense"] if "Dense" in folders else None


def _modules(path: Path) -> list[tuple[str, str]]:
    """Class name and folder of each module, in order."""
    modules = read_json(path)
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
        if not isinstance(folder, str) or not _is_bare_name(folder):
            raise CheckpointError(f"{path}: a module's path must be a folder of the checkpoint. Received: {folder!r}.")
        found.append((kind.rpartition(".")[2], folder))
    return found


def _is_bare_name(folder: str) -> bool:
    """Whether a path stays in its directory: "" or one name, which a file system can have."""
    if len(folder.encode(errors="replace")) > _MAX_NAME_LENGTH:
        return False
    return Path(folder).name == folder and folder != ".." and "\\" not in folder and "\0" not in folder


def _pooling(path: Path, hidden_dim: int) -> str:
    if not path.is_file():
        raise CheckpointError(f"{path}: the pooling's config is missing. Copy all files of the checkpoint.")
    values = read_json_object(path)
    width = values.get("embedding_dimension", values.get("word_embedding_dimension", hidden_dim))
    if width != hidden_dim:
        raise CheckpointError(
            f"{path}: the embedding dimension must equal the encoder's {hidden_dim}. Received: {width!r}."
        )
    flags = [mode for flag, mode in POOLING_FLAGS.items() if values.get(flag)]
    modes = values.get("pooling_mode", flags or ["mean"])
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in _POOLINGS:
        raise CheckpointError(f"{path}: the pooling must be one of {list(_POOLINGS)}. Received: {modes}.")
    return modes[0]


def _projection(path: Path, hidden_dim: int) -> dict[str, Any]:
    """Width and activation of a dense layer."""
    if not path.is_file():
        raise CheckpointError(f"{path}: the dense layer's config is missing. Copy all files of the checkpoint.")
    _check_names(path)
    values = read_json_object(path)
    if values.get("use_residual"):
        raise CheckpointError(f"{path}: `use_residual` must be false. Received: {values['use_residual']!r}.")
    width, activation = values.get("out_features"), str(values.get("activation_function", "Tanh")).rpartition(".")[2]
    if values.get("in_features") != hidden_dim or isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise CheckpointError(
            f"{path}: must lead from the encoder's {hidden_dim} features to a positive number of them. Received: "
            f"in_features={values.get('in_features')!r}, out_features={width!r}."
        )
    if activation not in DENSE_ACTIVATIONS:
        raise CheckpointError(
            f"{path}: `activation_function` must be one of {list(DENSE_ACTIVATIONS)}. Received: {activation!r}."
        )
    return {"projection_dim": width, "projection_activation": DENSE_ACTIVATIONS[activation]}


def _check_names(path: Path) -> None:
    """A module between others that reads or writes something else than the vector."""
    values = read_json_object(path) if path.is_file() else {}
    for key in ("module_input_name", "module_output_name"):
        if values.get(key) not in (None, "sentence_embedding"):
            raise CheckpointError(f"{path}: `{key}` must be 'sentence_embedding'. Received: {values[key]!r}.")


def _check_model_type(root: Path) -> None:
    """Refuses models that are not sentence encoders; says that a default prompt is not applied."""
    path = root / _MODEL_FILE
    values: dict[str, Any] = read_json_object(path) if path.is_file() else {}
    kind = values.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise CheckpointError(f"{path}: `model_type` must be 'SentenceTransformer'. Received: {kind!r}.")
    prompts, name = values.get("prompts") or {}, values.get("default_prompt_name")
    prompt = prompts.get(name) if isinstance(prompts, dict) else None
    if prompt:
        warnings.warn(
            f"{path}: sentence-transformers puts the prompt {prompt!r} before every text of this model. "
            "Put it there yourself; `BertSentenceEncoder` takes texts as they are.",
            stacklevel=5,
        )


def text_settings(folder: Path) -> tuple[int | None, bool]:
    """What `sentence_bert_config.json` says of texts.

    Args:
        folder: the folder of `config.json`.

    Returns:
        The longest text in tokens, [CLS] and [SEP] included, or None where it is not said (from release 5.4 on it is
        `model_max_length` in `tokenizer_config.json` alone); and whether text is lower-cased ahead of the tokenizer.

    Raises:
        CheckpointError: a value of the wrong type.
    """
    path = folder / "sentence_bert_config.json"
    values = read_json_object(path) if path.is_file() else {}
    length, lowercase = values.get("max_seq_length"), values.get("do_lower_case", False)
    if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 3):
        raise CheckpointError(f"{path}: `max_seq_length` must be an integer of at least 3. Received: {length!r}.")
    if not isinstance(lowercase, bool):
        raise CheckpointError(f"{path}: `do_lower_case` must be true or false. Received: {lowercase!r}.")
    return length, lowercase
