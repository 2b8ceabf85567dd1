"""Reads a checkpoint of google-research/bert: its files, its trained heads, its tensors that may be ignored."""

import re
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead, by_metadata
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, missing, naming
from keras_bert_layers.checkpoints.files.json_file import read_json_object
from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo
from keras_bert_layers.checkpoints.files.tf1_checkpoint import Tf1Checkpoint, index_checksum, index_path
from keras_bert_layers.checkpoints.files.vocabulary import check_num_tokens, read_vocabulary
from keras_bert_layers.checkpoints.google.casing import lowercases
from keras_bert_layers.checkpoints.google.config_keys import config_from_google, config_there
from keras_bert_layers.checkpoints.huggingface.adapter import ADAPTER_CONFIG
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.huggingface.heads import NEXT_SENTENCE
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.table import Layout, WeightRow
from keras_bert_layers.config import BertConfig

# The file in which tf.train.Saver names its last checkpoint.
STATE_FILE = "checkpoint"

_LAST = re.compile(r'^\s*model_checkpoint_path\s*:\s*"(?P<path>[^"]*)"', re.MULTILINE)
_MAX_STATE_BYTES = 1024 * 1024

_HEADS = {
    "cls/squad/": "a question answering head",
    "cls/": "a pretraining head",
    "output_weights": "a classification head",
    "output_bias": "a classification head",
}

# The last part of the names of the slots that an optimizer or an average has for each weight. google-research/bert,
# optimization.py: adam_m and adam_v, also for LAMB; the others are those of TensorFlow's own optimizers and averages.
_SLOTS = frozenset(
    {"adam_m", "adam_v", "lamb_m", "lamb_v", "Adam", "Adam_1", "LAMB", "LAMB_1", "Momentum", "RMSProp", "RMSProp_1"}
) | {"Adagrad", "Adadelta", "Adadelta_1", "Ftrl", "Ftrl_1", "ExponentialMovingAverage"}

_COUNTERS = frozenset({"global_step", "beta1_power", "beta2_power", "loss_scale", "good_steps", "current_loss_scale"})

# google-research/bert, run_classifier.py: the rate on the pooled output, for every config.
_CLASSIFIER_DROPOUT = 0.1
# Fine-tuning comes after pretraining, so its head was trained last.
_LATEST_FIRST = ("classifier", "question_answerer", "pretrainer", "masked_lm")

CONFIG = "bert_config.json"
VOCABULARY = "vocab.txt"

_CURE = f"Remove the entry `{KEY}` to read the directory as Google's code does"
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# This task has no weights of its own, so only the metadata names it.
_WITHOUT_HEAD = TrainedHead("sentence_encoder")


def has_checkpoint(directory: Path) -> bool:
    """Whether a directory holds the index of a TensorFlow checkpoint."""
    return bool(_names(directory))


def checkpoint_prefix(directory: Path, *, chosen: str | None = None, owner: str) -> Path:
    """The prefix of a directory's TensorFlow checkpoint: its only one, or the one that the file `checkpoint` names.

    Only the last part of the path in that file is used, as directories are moved.

    Args:
        directory: the directory.
        chosen: the prefix that the user named; it exists.
        owner: the public function that was called, for errors.

    Returns:
        A path such as `bert_model.ckpt`, without `.index`.

    Raises:
        CheckpointError: there is no checkpoint, or there are several and `checkpoint` names none of them.
    """
    if chosen is not None:
        return directory / chosen
    names = _names(directory)
    last = _last(directory / STATE_FILE)
    if last in names:
        return directory / last
    if len(names) == 1:
        return directory / names[0]
    if names:
        raise CheckpointError(
            f"`{owner}`: {directory} must hold one TensorFlow checkpoint, or a file `{STATE_FILE}` that names one of "
            f"several. Found: {', '.join(names)}. Remove all but one, or write that file: "
            f'model_checkpoint_path: "{names[-1]}"'
        )
    files = "a TensorFlow checkpoint: files such as bert_model.ckpt.index and bert_model.ckpt.data-00000-of-00001"
    raise missing(directory, files, "Copy all files of the checkpoint.", owner=owner)


def _names(directory: Path) -> list[str]:
    return sorted(path.name.removesuffix(".index") for path in directory.glob("*.index"))


def _last(path: Path) -> str:
    """The name of the last checkpoint; empty if it is not stated."""
    if not path.is_file() or path.stat().st_size > _MAX_STATE_BYTES:
        return ""
    match = _LAST.search(path.read_text(encoding="utf-8", errors="replace"))
    return "" if match is None else re.split(r"[/\\]", match["path"])[-1]


def ignored_reason(name: str) -> str | None:
    """Why a tensor without a row may be ignored; None if it may not.

    Args:
        name: the variable's name.

    Examples:
        >>> ignored_reason("bert/pooler/dense/bias/adam_m")
        "an optimizer's state"
        >>> ignored_reason("cls/seq_relationship/output_bias")
        'a pretraining head'
        >>> ignored_reason("bert/pooler/dense/scale") is None
        True
    """
    last = name.rpartition("/")[2]
    if last in _SLOTS or name in _COUNTERS:
        return "an optimizer's state"
    return next((reason for head, reason in _HEADS.items() if name.startswith(head)), None)


def google_heads(infos: Mapping[str, TensorInfo]) -> tuple[TrainedHead, ...]:
    """The tasks that a checkpoint's trained heads can serve, the last one that it was trained for first.

    Args:
        infos: the variables of the checkpoint.

    Returns:
        Heads of fine-tuning first, then those of pretraining; empty for a bare encoder.

    Examples:
        >>> infos = {"output_weights": TensorInfo("F32", (3, 8)), "output_bias": TensorInfo("F32", (3,))}
        >>> google_heads(infos)[0].name, google_heads(infos)[0].options["num_classes"]
        ('classifier', 3)
    """
    heads: list[TrainedHead] = []
    for name in _LATEST_FIRST:
        if _holds(infos, TASKS[name].head):
            heads += _classifiers(infos["output_weights"].shape) if name == "classifier" else [TASKS[name].trained()]
    if _holds(infos, NEXT_SENTENCE.rows) and not _holds(infos, TASKS["masked_lm"].head):
        heads.append(NEXT_SENTENCE)
    return tuple(heads)


def _holds(infos: Mapping[str, TensorInfo], rows: tuple[WeightRow, ...]) -> bool:
    return all(row.google is not None and row.google.name in infos for row in rows)


def _classifiers(shape: tuple[int, ...]) -> tuple[TrainedHead, ...]:
    """A head with one output is a regression, and scores pairs."""
    if shape[:1] == (1,):
        return one_output_heads(dropout=_CLASSIFIER_DROPOUT)
    return (TASKS["classifier"].trained(num_classes=shape[0] if shape else 0, dropout=_CLASSIFIER_DROPOUT),)


class GoogleDirectory(Checkpoint):
    """A checkpoint in the layout of google-research/bert: Google's releases of BERT, and what its code trains.

    The directory holds `bert_config.json`, `vocab.txt` and the files of a TensorFlow checkpoint, such as
    `bert_model.ckpt.index` and `bert_model.ckpt.data-00000-of-00001`. TensorFlow is not needed to read them. No file
    states whether text is lower-cased: see `lowercases`. `save_google` also writes metadata, so its directories
    are read exactly.
    """

    layout = Layout.GOOGLE

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory has this layout: a `bert_config.json` or a TensorFlow checkpoint, and no `config.json`.

        HuggingFace's directories that were converted from Google's hold a `bert_config.json` too.
        """
        if (source / "config.json").is_file():
            return False
        return (source / CONFIG).is_file() or has_checkpoint(source)

    @cached_property
    def _values(self) -> dict[str, Any]:
        return read_json_object(self._from_training(CONFIG))

    def _from_training(self, name: str) -> Path:
        return self.existing(self.root, name, "Copy it from the checkpoint from which training started.")

    @cached_property
    def config(self) -> BertConfig:
        """`bert_config.json`, every key honoured or refused, with the GELU and the epsilon of the metadata."""
        return self._stated_config if self._metadata is None else self._metadata.config

    @cached_property
    def _stated_config(self) -> BertConfig:
        values = {key: value for key, value in self._values.items() if key != KEY}
        with naming(self.root / CONFIG):
            return config_from_google(values)

    @cached_property
    def _metadata(self) -> Metadata | None:
        """The metadata, if it belongs to this config and to these weights.

        google-research/bert sets every key of the file as an attribute and reads those that it knows, so one more key
        changes nothing there. After training with Google's code the directory has other weights, and the metadata is
        ignored.

        References:
            `BertConfig.from_dict` in google-research/bert, modeling.py. docs/decisions/0010-gelu-in-googles-files.md.
        """
        if KEY not in self._values:
            return None
        path = self.root / CONFIG
        metadata = Metadata.from_dict(path, self._values[KEY], has_weights=True)
        if not metadata.agrees(self._stated_config, config_there):
            raise CheckpointError(
                f"{path}: the config under `{KEY}` must agree with the other keys, which were changed later. {_CURE}."
            )
        if has_checkpoint(self.root) and index_checksum(self._prefix) != metadata.weights:
            warnings.warn(
                f"{path}: the settings under `{KEY}` belong to other weights than {index_path(self._prefix).name}, so "
                f"the directory is read as Google's code does. Remove the entry `{KEY}` to silence this.",
                stacklevel=2,
            )
            return None
        return metadata

    @cached_property
    def _prefix(self) -> Path:
        return checkpoint_prefix(self.root, chosen=self.weights_file, owner=self.owner)

    def open_weights(self) -> TensorFile:
        """Opens the variables of the checkpoint; see `checkpoint_prefix` for which, if there are several.

        Raises:
            CheckpointError: there is no checkpoint, or it is damaged, see `Tf1Checkpoint`; it is of TensorFlow 2, whose
                names are paths in a program's objects.
        """
        checkpoint = Tf1Checkpoint(self._prefix)
        if _OBJECT_GRAPH in checkpoint.infos:
            raise CheckpointError(
                f"{checkpoint.path}: must have variables with Google's names, as tf.train.Saver writes them. Found: "
                "objects of TensorFlow 2 (tf.train.Checkpoint), which only the program that wrote them can read."
            )
        return checkpoint

    ignored_reason = staticmethod(ignored_reason)

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The heads by the variables' names, with the options of the metadata."""
        heads = google_heads(self.weights.infos)
        task = None if self._metadata is None else self._metadata.task
        if task == _WITHOUT_HEAD.name:
            heads = (_WITHOUT_HEAD, *heads)
        rule = f"must agree with the weights, which hold no head of a {task}"
        error = CheckpointError(f"{self.root / CONFIG}: the task under `{KEY}` {rule}. {_CURE}.")
        return by_metadata(heads, self._metadata, error)

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments by the files, with `reference="google"`, or by the metadata."""
        path = self._from_training(VOCABULARY)
        vocabulary = read_vocabulary(path, _named_lines)
        check_num_tokens(path, len(vocabulary), self.config.vocabulary_size, f"{CONFIG}'s vocab_size")
        options: dict[str, Any] = {"strip_accents": None, "split_chinese": True, "reference": "google"}
        if self._metadata is None or self._metadata.tokenizer is None:
            return {"vocabulary": vocabulary, "lowercase": lowercases(self.root, self._values, vocabulary), **options}
        return {"vocabulary": vocabulary, **options, **self._metadata.tokenizer}

    def max_length(self) -> int:
        """The number of positions of the encoder, or the maximum length of the metadata."""
        stated = None if self._metadata is None else self._metadata.max_length
        return min(stated or self.config.max_sequence_length, self.config.max_sequence_length)


def _named_lines(path: Path) -> list[str] | Path:
    """The tokens of a `vocab.txt` with empty lines in it; the path if it has none.

    SimBERT's has one. For Google's code it is a token that no text can contain; here it gets a name that no text can
    contain.
    """
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    if all(line.rstrip(b"\r") for line in lines):
        return path
    tokens = [line.decode().removesuffix("\r") for line in lines]
    return [token or f"[empty line {number}]" for number, token in enumerate(tokens, start=1)]


class GoogleHubDirectory(HuggingFaceDirectory):
    """A HuggingFace directory whose weights are a TensorFlow checkpoint with Google's names.

    The repositories `google/bert_uncased_L-..._H-..._A-...` hold a `config.json`, `bert_model.ckpt.*` and a pickle of
    the same weights. Config and tokenizer are read as transformers reads them, so that the outputs are equal: "gelu" is
    the erf form, although Google trained with the tanh form. The weights come from the checkpoint, which holds tensors
    only and needs neither torch nor TensorFlow.

    References:
        Turc et al. 2019, https://arxiv.org/abs/1908.08962; files as in https://huggingface.co/google.
    """

    layout = Layout.GOOGLE

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory holds a `config.json` and a TensorFlow checkpoint, no safetensors and no adapter."""
        others = (*source.glob("*.safetensors"), *source.glob(ADAPTER_CONFIG))
        return (source / "config.json").is_file() and has_checkpoint(source) and not others

    def open_weights(self) -> TensorFile:
        """Opens the variables of the checkpoint.

        Raises:
            CheckpointError: see `checkpoint_prefix` and `Tf1Checkpoint`.
        """
        return Tf1Checkpoint(checkpoint_prefix(self.root, chosen=self.weights_file, owner=self.owner))

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The heads by the variables' names."""
        return google_heads(self.weights.infos)

    # The table has Google's names.
    table_name = Checkpoint.table_name

    ignored_reason = staticmethod(ignored_reason)
