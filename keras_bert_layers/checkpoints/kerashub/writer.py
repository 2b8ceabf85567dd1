"""`save_kerashub`: saves a model as a preset that KerasHub reads."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.files.hdf5_file import write_hdf5
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.metadata import KEY
from keras_bert_layers.checkpoints.files.new_directory import new_directory
from keras_bert_layers.checkpoints.files.vocabulary import vocabulary_bytes
from keras_bert_layers.checkpoints.kerashub import directory as files
from keras_bert_layers.checkpoints.kerashub import objects
from keras_bert_layers.checkpoints.kerashub.config_keys import config_there, config_to_kerashub
from keras_bert_layers.checkpoints.kerashub.directory import MASKED_LM_HEAD, TASK_WEIGHTS, WEIGHTS, stored_paths
from keras_bert_layers.checkpoints.weights.table import Layout, backbone_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel
from keras_bert_layers.preprocessing import BertPreprocessor
from keras_bert_layers.preprocessing.tokens.markers import MASK

OWNER = "save_kerashub"

_OTHER_TOKENS = (
    "KerasHub's own tokenizer gives other ids for some texts, such as those with accents, capitals outside of ASCII or "
    "rare whitespace: compare the two on your texts, or send it ids. "
)
_CLASSIFIER_OPTIONS = ("class_names", "problem_type", "threshold", "pairs")
# Options that are kept beside KerasHub's own where they differ from these.
_PROMPTS = {"prompts": None, "default_prompt": None}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "cross_encoder": {"activation": "sigmoid", **_PROMPTS},
    "sentence_encoder": {"truncate_dim": None, **_PROMPTS},
}
# keras_hub, models/bert/bert_text_embedder.py.
_POOLINGS = ("mean", "cls", "max")
# keras_hub, models/text_classifier.py and models/masked_lm.py, `compile`: Adam's number of steps and its learning rate.
_NEW_OPTIMIZER = (np.int64(0), np.float32(5e-5))
_BACKBONE_TASKS = ["MaskedLM", "TextClassifier", "TextEmbedder"]


def save_kerashub(
    model: keras.Model, directory: str | os.PathLike[str], *, preprocessor: BertPreprocessor | None = None
) -> Path:
    """Writes a model into a new directory that KerasHub's `from_preset` reads.

    | Model | Class in KerasHub |
    |---|---|
    | `BertBackbone` | `keras_hub.models.BertBackbone` |
    | `BertClassifier`, `BertCrossEncoder` | `keras_hub.models.BertTextClassifier`, which gives the same logits |
    | `BertMaskedLM` | `keras_hub.models.BertMaskedLM` |
    | `BertSentenceEncoder` | `keras_hub.models.BertTextEmbedder` |

    KerasHub's BERT has the tanh form of GELU and one epsilon, and no argument for either, so it computes different
    outputs from the weights of a model with the erf form. A warning reports this. Its tokenizer gives other ids for
    some texts, whatever the model. Nothing is lost: settings that KerasHub does not have are kept in `metadata.json`,
    and `load_backbone` and `load_task` return the same model.

    Args:
        model: an encoder, or one of the tasks above.
        directory: the directory to create; it may exist if it is empty. Parents are created. It is written
            atomically.
        preprocessor: the preprocessor whose vocabulary and `max_length` are written; the task's own if None. KerasHub
            tokenises with rules of its own; see the guide.

    Returns:
        The directory.

    Raises:
        TypeError: the model is not one of these, or `preprocessor` is not a `BertPreprocessor`.
        ValueError: KerasHub has no such model: a narrower embedding, an activation other than GELU, a sentence encoder
            with a dense layer, other weights than BERT's own. Or it cannot read the vocabulary, which has no [MASK].
        CheckpointError: the directory is not empty or cannot be written, for example because the disk is full.

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
    cure = "KerasHub has no such task; save `model.backbone`."
    written = WrittenModel(model, Layout.KERASHUB, preprocessor, owner=OWNER, cure=cure)
    _check_parts(written)
    options = _options(written)
    contents = _contents(written, options)
    weights = {WEIGHTS: backbone_rows(written.config), TASK_WEIGHTS: written.head}
    written.check_weights([row for rows in weights.values() for row in rows])
    also = "" if written.preprocessor is None else _OTHER_TOKENS
    written.warn_of_differences("KerasHub", _settings(written, options), also)
    paths = stored_paths(written.config.num_layers)
    with new_directory(directory, owner=OWNER) as unfinished:
        for file, rows in weights.items():
            if rows:
                write_hdf5(unfinished / file, written.tensors(rows, lambda name: paths[name].partition("/")[2]))
        if written.head:
            _write_new_optimizer(unfinished / TASK_WEIGHTS)
        for name, values in contents.items():
            write_json(unfinished / name, values)
        if written.preprocessor is not None:
            (unfinished / files.VOCABULARY).parent.mkdir(parents=True)
            (unfinished / files.VOCABULARY).write_bytes(vocabulary_bytes(written.vocabulary))
    return Path(directory)


def _check_parts(written: WrittenModel) -> None:
    """Refuses what KerasHub could not read at all."""
    projection_dim = getattr(written.model, "projection_dim", None)
    if projection_dim is not None:
        cure = "KerasHub has no sentence encoder with a dense layer; save `model.backbone`."
        raise ValueError(checks.message(OWNER, "model.projection_dim", "be None", projection_dim, cure))
    if written.name == "sentence_encoder":
        checks.one_of(OWNER, "model.pooling", written.model.pooling, _POOLINGS, "Save `model.backbone`.")
    if (long_texts := getattr(written.model, "long_texts", None)) is not None:
        cure = "KerasHub cuts long texts. Save a `.keras` file."
        raise ValueError(checks.message(OWNER, "model.long_texts", "be None", long_texts, cure))
    preprocessor = written.preprocessor
    if preprocessor is None:
        return
    if not isinstance(preprocessor, BertPreprocessor):
        raise TypeError(checks.message(OWNER, "preprocessor", "be a BertPreprocessor", preprocessor))
    if MASK not in written.vocabulary:
        cure = "KerasHub's tokenizer requires it."
        raise ValueError(checks.message(OWNER, "preprocessor.tokenizer", f"know {MASK}", preprocessor.tokenizer, cure))
    for name, value, most in (
        ("tokenizer.vocabulary_size()", len(written.vocabulary), written.config.vocabulary_size),
        ("max_length", preprocessor.max_length, written.config.max_sequence_length),
    ):
        if value > most:
            rule = f"be at most the model's {most}"
            raise ValueError(checks.message(OWNER, f"preprocessor.{name}", rule, value))


def _contents(written: WrittenModel, options: dict[str, Any]) -> dict[str, Any]:
    """The JSON files by name."""
    contents: dict[str, Any] = {files.CONFIG: config_to_kerashub(written.config)}
    if written.preprocessor is not None:
        contents[files.PREPROCESSOR] = objects.preprocessor_object(written)
        contents[files.TOKENIZER] = contents[files.PREPROCESSOR]["config"]["tokenizer"]
    if written.task is not None:
        parts = {"backbone": contents[files.CONFIG], "preprocessor": contents.get(files.PREPROCESSOR)}
        contents[files.TASK] = objects.task_object(written, parts)
    contents[files.METADATA] = {
        "keras_version": keras.__version__,
        "parameter_count": written.backbone.count_params(),
        "tasks": _BACKBONE_TASKS,
        KEY: written.metadata(options).to_dict(),
    }
    return contents


def _options(written: WrittenModel) -> dict[str, Any]:
    """The task's options that KerasHub does not have."""
    if written.name == "classifier":
        options = {option: getattr(written.model, option) for option in _CLASSIFIER_OPTIONS}
        return {option: value for option, value in options.items() if value is not None}
    if written.name == "masked_lm":
        head = written.model.get_layer("masked_lm_head")
        return {"head_activation": head.activation, "head_layer_norm_epsilon": head.layer_norm_epsilon}
    defaults = _DEFAULTS.get(written.name or "", {})
    options = {option: getattr(written.model, option) for option in defaults}
    return {option: value for option, value in options.items() if value != defaults[option]}


def _write_new_optimizer(path: Path) -> None:
    """Writes the state of a new optimizer, as KerasHub compiles a task. Without it, Keras warns on loading."""
    with h5py.File(path, "a") as file:
        for number, value in enumerate(_NEW_OPTIMIZER):
            file[f"optimizer/vars/{number}"] = value


def _settings(written: WrittenModel, options: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, our value and the value in KerasHub."""
    there = {**config_there(written.config).to_dict(), **MASKED_LM_HEAD}
    # The score of a cross-encoder is not an output of KerasHub's, whose outputs are the logits too.
    ours = {**written.config.to_dict(), **{name: value for name, value in options.items() if name != "activation"}}
    there.update({"truncate_dim": None, "default_prompt": None})
    yield from ((name, value, there[name]) for name, value in ours.items() if name in there)
    if written.preprocessor is not None:
        yield "split_chinese", written.preprocessor.tokenizer.split_chinese, True
        yield "num_pair_separators", written.preprocessor.tokenizer.num_pair_separators, 1
        yield "truncation", written.preprocessor.truncation, "longest_first"
        yield "truncation_side", written.preprocessor.truncation_side, "right"
        yield "tokens that end in whitespace", [token for token in written.vocabulary if token != token.rstrip()], []
