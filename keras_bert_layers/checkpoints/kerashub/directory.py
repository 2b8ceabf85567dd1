"""Reads a KerasHub preset: the paths of its weights, its trained head, its tokenizer."""

import functools
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead, by_metadata
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.hdf5_file import Hdf5File
from keras_bert_layers.checkpoints.files.json_file import (
    check_boolean,
    check_fraction,
    check_integer,
    check_known,
    check_object,
    optional_json,
    read_json_object,
)
from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tensor_views import joined_tensors
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens, read_vocabulary
from keras_bert_layers.checkpoints.kerashub.config_keys import config_from_kerashub, config_there
from keras_bert_layers.checkpoints.kerashub.objects import tokenizer_object, tokenizer_options
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.table import Layout
from keras_bert_layers.config import BertConfig

WEIGHTS = "model.weights.h5"
TASK_WEIGHTS = "task.weights.h5"

_DENSE = ("kernel", "bias")
_NORM = ("gamma", "beta")
_TABLE = ("embeddings",)

# Layer -> its path in the file, and its weights in the order of their indices. keras_hub, models/bert/*.py and
# layers/modeling/*.py, with what `_save_state` of keras, src/saving/saving_lib.py, makes of them.
_BACKBONE = {
    "token_embedding": (f"{WEIGHTS}/layers/reversible_embedding", _TABLE),
    "position_embedding": (f"{WEIGHTS}/layers/position_embedding", _TABLE),
    "segment_embedding": (f"{WEIGHTS}/layers/embedding", _TABLE),
    "embeddings_layer_norm": (f"{WEIGHTS}/layers/layer_normalization", _NORM),
    "pooled_dense": (f"{WEIGHTS}/layers/dense", _DENSE),
}
_BLOCK = {
    "self_attention_layer/query": ("_self_attention_layer/query_dense", _DENSE),
    "self_attention_layer/key": ("_self_attention_layer/key_dense", _DENSE),
    "self_attention_layer/value": ("_self_attention_layer/value_dense", _DENSE),
    "self_attention_layer/attention_output": ("_self_attention_layer/output_dense", _DENSE),
    "self_attention_layer_norm": ("_self_attention_layer_norm", _NORM),
    "feedforward_intermediate_dense": ("_feedforward_intermediate_dense", _DENSE),
    "feedforward_output_dense": ("_feedforward_output_dense", _DENSE),
    "feedforward_layer_norm": ("_feedforward_layer_norm", _NORM),
}
_HEADS = {
    "logits": (f"{TASK_WEIGHTS}/layers/dense", _DENSE),
    "mlm_head": (f"{TASK_WEIGHTS}/layers/masked_lm_head", ("output_bias",)),
    "mlm_head/intermediate_dense": (f"{TASK_WEIGHTS}/layers/masked_lm_head/_intermediate_dense", _DENSE),
    "mlm_head/intermediate_layer_norm": (f"{TASK_WEIGHTS}/layers/masked_lm_head/_intermediate_layer_norm", _NORM),
}

_HEAD_REASONS = {"logits": "a classification head", "mlm_head": "a masked language model's head"}

# keras_hub, models/bert/bert_masked_lm.py and layers/modeling/masked_lm_head.py: no argument changes these two.
MASKED_LM_HEAD: dict[str, Any] = {"head_activation": "gelu_erf", "head_layer_norm_epsilon": 1e-5}

_FRAME = ("backbone", "preprocessor", "name", "trainable", "dtype")

CONFIG = "config.json"
TASK = "task.json"
TOKENIZER = "tokenizer.json"
PREPROCESSOR = "preprocessor.json"
METADATA = "metadata.json"
VOCABULARY = "assets/tokenizer/vocabulary.txt"

# keras_hub, models/*_preprocessor.py: the length if a preset does not state it.
_DEFAULT_LENGTH = 512


def stored_paths(num_layers: int) -> dict[str, str]:
    """The table's name of each weight -> its file and its path there.

    Args:
        num_layers: the number of encoder blocks.

    Examples:
        >>> paths = stored_paths(2)
        >>> paths["pooled_dense/bias"]
        'model.weights.h5/layers/dense/vars/1'
        >>> paths["transformer_layer_1/self_attention_layer/query/kernel"]
        'model.weights.h5/layers/transformer_encoder_1/_self_attention_layer/query_dense/vars/0'
    """
    layers = {**_BACKBONE, **_HEADS}
    for index in range(num_layers):
        block = f"{WEIGHTS}/layers/transformer_encoder" + (f"_{index}" if index else "")
        for layer, (path, weights) in _BLOCK.items():
            layers[f"transformer_layer_{index}/{layer}"] = (f"{block}/{path}", weights)
    return {
        f"{layer}/{weight}": f"{path}/vars/{number}"
        for layer, (path, weights) in layers.items()
        for number, weight in enumerate(weights)
    }


def table_name(path: str, *, num_layers: int) -> str:
    """The table's name for a tensor of the files; its own if it is not in the table.

    Older releases of Keras wrote some of a layer's attributes with a `_` before their names and others without, and
    TensorFlow 2.13 had another name for `layers`. Keras reads them all, and so does this function.

    Args:
        path: the tensor's name: file and path.
        num_layers: the number of encoder blocks.

    Examples:
        >>> table_name("model.weights.h5/layers/embedding/vars/0", num_layers=1)
        'segment_embedding/embeddings'
    """
    return _table_names(num_layers).get(_plain(path), path)


@functools.lru_cache
def _table_names(num_layers: int) -> dict[str, str]:
    return {_plain(path): name for name, path in stored_paths(num_layers).items()}


def ignored_reason(name: str) -> str | None:
    """Why a tensor without a row may be ignored; None if it may not.

    Args:
        name: the table's name, or the tensor's own if it is not in the table.

    Examples:
        >>> ignored_reason("logits/kernel")
        'a classification head'
        >>> ignored_reason("task.weights.h5/optimizer/vars/3")
        "the optimizer's state"
        >>> ignored_reason("model.weights.h5/layers/dense_1/vars/0") is None
        True
    """
    if name.startswith(f"{TASK_WEIGHTS}/optimizer/"):
        return "the optimizer's state"
    if "/seed_generator" in name:
        return "the state of a random number generator"
    return _HEAD_REASONS.get(name.partition("/")[0])


def _plain(path: str) -> str:
    """The path without the differences between releases of Keras."""
    parts = [part.removeprefix("_") for part in path.split("/")]
    return "/".join("layers" if part == "layer_checkpoint_dependencies" else part for part in parts)


def kerashub_heads(path: Path, values: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    """The tasks that a preset's trained head can serve, its own class first.

    Args:
        path: the file, for errors.
        values: its content: the task as Keras serializes it; empty without a file.

    Returns:
        The tasks; empty for a bare encoder and for an unknown class.

    Raises:
        CheckpointError: the file has a key or a value that our task does not have.
    """
    reader = _READERS.get(str(values.get("class_name")))
    if reader is None:
        return ()
    arguments = check_object(path, "config", values.get("config"))
    return reader(path, {key: value for key, value in arguments.items() if key not in _FRAME})


def _text_classifier(path: Path, arguments: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    """The problem type follows from the activation of KerasHub's logits; our outputs stay logits."""
    check_known(path, arguments, ("num_classes", "activation", "dropout"))
    num_classes = check_integer(path, "num_classes", arguments.get("num_classes"), least=1)
    activation = arguments.get("activation") or "linear"
    if activation not in ("linear", "softmax", "sigmoid") or (num_classes, activation) == (1, "softmax"):
        raise CheckpointError(
            f"{path}: `activation` must be 'linear', 'sigmoid' or, of several classes, 'softmax'. "
            f"Received: {activation!r}. Load the encoder with `load_backbone`, and add the head in Keras."
        )
    rate = arguments.get("dropout")
    dropout = {} if rate is None else {"dropout": check_fraction(path, "dropout", rate)}
    if num_classes > 1:
        problem = "multi_label_classification" if activation == "sigmoid" else "single_label_classification"
        return (TASKS["classifier"].trained(num_classes=num_classes, problem_type=problem, **dropout),)
    # Ours computes the sigmoid of one logit.
    return (TASKS["cross_encoder"].trained(**dropout),) if activation == "sigmoid" else one_output_heads(**dropout)


def _masked_lm(path: Path, arguments: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    check_known(path, arguments, ())
    return (TASKS["masked_lm"].trained(**MASKED_LM_HEAD),)


def _text_embedder(path: Path, arguments: Mapping[str, Any]) -> tuple[TrainedHead, ...]:
    check_known(path, arguments, ("pooling_mode", "normalize"))
    normalize = check_boolean(path, "normalize", arguments.get("normalize", True))
    options = {"pooling": arguments.get("pooling_mode", "mean"), "normalize": normalize}
    return TrainedHead("sentence_encoder", options), TrainedHead("dual_encoder", options)


_READERS: dict[str, Callable[[Path, Mapping[str, Any]], tuple[TrainedHead, ...]]] = {
    "BertClassifier": _text_classifier,  # the older name
    str(TASKS["classifier"].kerashub): _text_classifier,
    str(TASKS["masked_lm"].kerashub): _masked_lm,
    str(TASKS["sentence_encoder"].kerashub): _text_embedder,
}
CLASSES = tuple(_READERS)


class KerasHubDirectory(Checkpoint):
    """A KerasHub preset: the files that `save_to_preset` of a `BertBackbone` or of one of its tasks wrote.

    The weights are read from Keras's files: neither keras_hub nor a second model is needed. `save_kerashub` also writes
    metadata, so its presets are read exactly.
    """

    layout = Layout.KERASHUB

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory holds a preset: its `config.json` is an object as Keras serializes it."""
        path = source / CONFIG
        return path.is_file() and "registered_name" in read_json_object(path)

    @cached_property
    def config(self) -> BertConfig:
        """`config.json`, every key honoured or refused, with the activation and the epsilon of the metadata."""
        path = self.root / CONFIG
        with naming(path):
            stated = config_from_kerashub(read_json_object(path))
        if self._metadata is None:
            return stated
        if not self._metadata.agrees(stated, config_there):
            raise self._disagreement("config", CONFIG)
        return self._metadata.config

    @cached_property
    def _metadata(self) -> Metadata | None:
        """The metadata in `metadata.json`, a file that KerasHub writes and does not read.

        It writes a new one whenever it saves a model into the directory, so the metadata is removed when the weights
        that it belongs to change.

        References:
            `_save_metadata` in keras_hub, src/utils/preset_utils.py. docs/decisions/0011-what-kerashub-cannot-say.md.
        """
        path = self.root / METADATA
        values = optional_json(path).get(KEY)
        return None if values is None else Metadata.from_dict(path, values)

    def _disagreement(self, part: str, file: str) -> CheckpointError:
        return CheckpointError(
            f"{self.root / METADATA}: the {part} under `{KEY}` must agree with {file}, which was changed later. "
            f"Remove the entry `{KEY}` to read the directory as KerasHub does."
        )

    def open_weights(self) -> TensorFile:
        """Opens the tensors of the encoder's file, and of the head's if there is one.

        Raises:
            CheckpointError: there is no file of weights, or one is damaged; see `Hdf5File`.
        """
        cure = "Copy all files of the preset; weights in several files cannot be read."
        paths = self.existing(self.root, WEIGHTS, cure), self.root / TASK_WEIGHTS
        return joined_tensors((f"{path.name}/", Hdf5File(path)) for path in paths if path.is_file())

    def table_name(self, name: str) -> str:
        """See `Checkpoint`."""
        return table_name(name, num_layers=self.config.num_layers)

    def ignored_reason(self, name: str) -> str | None:
        """Heads and optimizer states may be ignored, and all tensors of an unknown task."""
        kind = self._task.get("class_name")
        if name.startswith(f"{TASK_WEIGHTS}/") and kind not in CLASSES:
            return f"the head of a {kind}"
        return ignored_reason(name)

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The heads by `task.json`, with the options of the metadata."""
        heads = kerashub_heads(self.root / TASK, self._task)
        return by_metadata(heads, self._metadata, self._disagreement("task", TASK))

    @cached_property
    def _task(self) -> dict[str, Any]:
        return optional_json(self.root / TASK)

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments by the files, or by the metadata; see `objects.tokenizer_options`."""
        cure = "A preset has a tokenizer if one was saved with the model."
        tokenizer = self.existing(self.root, TOKENIZER, cure)
        path = self.existing(self.root, VOCABULARY, cure)
        vocabulary = read_vocabulary(path)
        check_num_tokens(path, len(vocabulary), self.config.vocabulary_size, "config.json's vocabulary_size")
        values = read_json_object(tokenizer)
        options = tokenizer_options(tokenizer, values, vocabulary)
        if self._metadata is not None and self._metadata.tokenizer is not None:
            options |= self._metadata.tokenizer
            written = tokenizer_object(options)["config"]
            if any(values["config"].get(key, value) != value for key, value in written.items() if key != "name"):
                raise self._disagreement("tokenizer", TOKENIZER)
        return {"vocabulary": vocabulary, **options}

    def max_length(self) -> int:
        """`sequence_length` of `preprocessor.json` or KerasHub's default; at most the number of positions."""
        path = self.root / PREPROCESSOR
        arguments = optional_json(path).get("config", {})
        length = arguments.get("sequence_length", _DEFAULT_LENGTH) if isinstance(arguments, dict) else None
        return min(check_integer(path, "sequence_length", length, least=3), self.config.max_sequence_length)
