"""`save_kerashub`: a model into a directory that KerasHub reads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints import kerashub_directory as files
from keras_bert_layers.checkpoints import kerashub_objects as objects
from keras_bert_layers.checkpoints._new_directory import new_directory
from keras_bert_layers.checkpoints._written_parts import check_all_weights, vocabulary_file
from keras_bert_layers.checkpoints.hdf5_writer import write_hdf5
from keras_bert_layers.checkpoints.json_file import write_json
from keras_bert_layers.checkpoints.kerashub_names import TASK_WEIGHTS, WEIGHTS, stored_places
from keras_bert_layers.checkpoints.kerashub_notes import METADATA_FILE, KerasHubNotes
from keras_bert_layers.checkpoints.kerashub_tasks import MASKED_LM_HEAD
from keras_bert_layers.checkpoints.model_tensors import ModelTensors
from keras_bert_layers.checkpoints.notes import KEY, tokenizer_notes
from keras_bert_layers.checkpoints.weight_row import Layout, WeightRow
from keras_bert_layers.checkpoints.weight_table import CLASSIFIER_ROWS, MASKED_LM_ROWS, backbone_rows
from keras_bert_layers.config import BertConfig
from keras_bert_layers.preprocessing import BertPreprocessor
from keras_bert_layers.preprocessing.vocabulary import MASK

OWNER = "save_kerashub"

_HEAD_ROWS: dict[str | None, tuple[WeightRow, ...]] = {
    "classifier": CLASSIFIER_ROWS,
    "cross_encoder": CLASSIFIER_ROWS,
    "masked_lm": MASKED_LM_ROWS,
}
_CLASSIFIER_OPTIONS = ("class_names", "problem_type", "threshold", "pairs")
# keras_hub, models/text_classifier.py and models/masked_lm.py, `compile`: Adam's count of steps and its rate.
_FRESH_OPTIMIZER = (np.int64(0), np.float32(5e-5))
_BACKBONE_TASKS = ["MaskedLM", "TextClassifier", "TextEmbedder"]


def save_kerashub(
    model: Any, directory: str | os.PathLike[str], *, preprocessor: BertPreprocessor | None = None
) -> Path:
    """Writes a model into a new directory that KerasHub's `from_preset` reads.

    | Model | Read there with |
    |---|---|
    | `BertBackbone` | `keras_hub.models.BertBackbone` |
    | `BertClassifier`, `BertCrossEncoder` | `keras_hub.models.BertTextClassifier`, which gives the same logits |
    | `BertMaskedLM` | `keras_hub.models.BertMaskedLM` |
    | `BertSentenceEncoder` | `keras_hub.models.BertTextEmbedder` |

    KerasHub's BERT has the tanh form of GELU and one epsilon, and no argument for either: it computes other outputs
    from the weights of a model with the erf form. A warning then says so. Nothing is lost: what KerasHub has no words
    for is noted beside its own files, and `load_backbone` and `load_task` give the very model back.

    Args:
        model: an encoder, or one of the tasks above.
        directory: where to write: nothing, or an empty directory. Parents are made. It appears whole or not at all.
        preprocessor: what makes the model's inputs; the task's own if None. Its vocabulary and its `max_length` are
            written. KerasHub tokenises by rules of its own; see the guide.

    Returns:
        The directory.

    Raises:
        TypeError: the model is none of these, or `preprocessor` is no `BertPreprocessor`.
        ValueError: KerasHub has no such model: a narrower embedding, a function other than GELU, a sentence encoder
            with a dense layer, weights beside BERT's own. Or it cannot read the vocabulary, which has no [MASK].
        CheckpointError: the directory cannot be written: it holds something, it is closed to writers, the disk is full.

    Examples:
        >>> import tempfile
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(
        ...     vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7, activation="gelu_tanh"
        ... )
        >>> directory = save_kerashub(kbl.BertBackbone(config), Path(tempfile.mkdtemp()) / "preset")
        >>> sorted(path.name for path in directory.iterdir())
        ['config.json', 'metadata.json', 'model.weights.h5']
        >>> kbl.load_backbone(directory).config == config
        True
    """
    kinds: tuple[type, ...] = (BertBackbone, *objects.TASKS)
    if type(model) not in kinds:
        names = ", ".join(kind.__name__ for kind in kinds)
        cure = "KerasHub has no such task; save `model.backbone`."
        raise TypeError(checks.message(OWNER, "model", f"be one of {names}", model, cure))
    backbone = model if isinstance(model, BertBackbone) else model.backbone
    preprocessor = getattr(model, "preprocessor", None) if preprocessor is None else preprocessor
    _check_parts(model, backbone.config, preprocessor)
    contents = _contents(model, backbone, preprocessor)
    weights = {WEIGHTS: backbone_rows(backbone.config), TASK_WEIGHTS: _HEAD_ROWS.get(objects.task_name(model), ())}
    check_all_weights(OWNER, model, [row for rows in weights.values() for row in rows])
    lost = list(_lost(model, backbone.config, preprocessor))
    if lost:
        warnings.warn(
            f"`{OWNER}`: KerasHub has no words for {', '.join(lost)}: it computes something else from these weights. "
            "This package reads the directory exactly.",
            stacklevel=2,
        )
    with new_directory(directory, owner=OWNER) as unfinished:
        for name, rows in weights.items():
            if rows:
                write_hdf5(unfinished / name, _tensors(model, rows, file=name, config=backbone.config))
        if (unfinished / TASK_WEIGHTS).is_file():
            _write_fresh_optimizer(unfinished / TASK_WEIGHTS)
        for name, values in contents.items():
            write_json(unfinished / name, values)
        if preprocessor is not None:
            _write_vocabulary(unfinished / files.VOCABULARY, preprocessor)
    return Path(directory)


def _check_parts(model: Any, config: BertConfig, preprocessor: Any) -> None:
    """Refuses what KerasHub could not read at all."""
    if getattr(model, "projection_dim", None) is not None:
        cure = "KerasHub has no sentence encoder with a dense layer; save `model.backbone`."
        raise ValueError(checks.message(OWNER, "model.projection_dim", "be None", model.projection_dim, cure))
    if preprocessor is None:
        return
    if not isinstance(preprocessor, BertPreprocessor):
        raise TypeError(checks.message(OWNER, "preprocessor", "be a BertPreprocessor", preprocessor))
    vocabulary = preprocessor.tokenizer.get_config()["vocabulary"]
    if MASK not in vocabulary:
        cure = "KerasHub's tokenizer reads no vocabulary without it."
        raise ValueError(checks.message(OWNER, "preprocessor.tokenizer", f"know {MASK}", preprocessor.tokenizer, cure))
    for name, value, most in (
        ("tokenizer.vocabulary_size()", len(vocabulary), config.vocabulary_size),
        ("max_length", preprocessor.max_length, config.max_sequence_length),
    ):
        if value > most:
            rule = f"be at most the model's {most}"
            raise ValueError(checks.message(OWNER, f"preprocessor.{name}", rule, value))


def _contents(model: Any, backbone: BertBackbone, preprocessor: Any) -> dict[str, Any]:
    """The JSON files by name."""
    contents: dict[str, Any] = {files.CONFIG: backbone.config.to_kerashub()}
    if preprocessor is not None:
        contents[files.PREPROCESSOR] = objects.preprocessor_object(model, preprocessor)
        contents[files.TOKENIZER] = contents[files.PREPROCESSOR]["config"]["tokenizer"]
    if model is not backbone:
        contents[files.TASK] = objects.task_object(model, contents[files.CONFIG], contents.get(files.PREPROCESSOR))
    contents[METADATA_FILE] = {
        "keras_version": keras.__version__,
        "parameter_count": backbone.count_params(),
        "tasks": _BACKBONE_TASKS,
        KEY: _notes(model, backbone.config, preprocessor).to_dict(),
    }
    return contents


def _notes(model: Any, config: BertConfig, preprocessor: Any) -> KerasHubNotes:
    task = objects.task_name(model)
    options: dict[str, Any] = {}
    if task == "classifier":
        options = {name: getattr(model, name) for name in _CLASSIFIER_OPTIONS}
        options = {name: value for name, value in options.items() if value is not None}
    elif task == "masked_lm":
        options = _masked_lm_head(model)
    return KerasHubNotes(config, tokenizer_notes(preprocessor), task, options)


def _masked_lm_head(model: Any) -> dict[str, Any]:
    head = model.get_layer("masked_lm_head")
    return {"head_activation": head.activation, "head_layer_norm_epsilon": head.layer_norm_epsilon}


def _tensors(model: Any, rows: tuple[WeightRow, ...], *, file: str, config: BertConfig) -> ModelTensors:
    """The model's weights that go into a file, under their places there."""
    places = stored_places(config.num_layers)
    return ModelTensors(
        model,
        rows,
        Layout.KERASHUB,
        num_heads=config.num_heads,
        rename=lambda name: places[name].removeprefix(f"{file}/"),
    )


def _write_fresh_optimizer(path: Path) -> None:
    """The state of the optimizer with which KerasHub compiles a task: no step yet. Without, Keras warns of its lack."""
    with h5py.File(path, "a") as file:
        for number, value in enumerate(_FRESH_OPTIMIZER):
            file[f"optimizer/vars/{number}"] = value


def _write_vocabulary(path: Path, preprocessor: BertPreprocessor) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(vocabulary_file(preprocessor.tokenizer))


def _lost(model: Any, config: BertConfig, preprocessor: Any) -> Iterator[str]:
    """What of the model KerasHub computes otherwise, and how."""
    there = BertConfig.from_kerashub(config.to_kerashub()).to_dict()
    pairs = [(name, value, there[name]) for name, value in config.to_dict().items()]
    if objects.task_name(model) == "masked_lm":
        pairs += [(name, value, MASKED_LM_HEAD[name]) for name, value in _masked_lm_head(model).items()]
    if preprocessor is not None:
        pairs.append(("split_chinese", preprocessor.tokenizer.split_chinese, True))
        pairs.append(("truncation", preprocessor.truncation, "longest_first"))
        blank = [token for token in preprocessor.tokenizer.get_config()["vocabulary"] if token != token.rstrip()]
        pairs.append(("tokens that end in a blank", blank, []))
    for name, ours, theirs in pairs:
        if ours != theirs:
            yield f"{name}={ours!r} (there {theirs!r})"
