"""`save_google`: a model as a checkpoint that google-research/bert reads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints import weight_table
from keras_bert_layers.checkpoints._new_directory import new_directory
from keras_bert_layers.checkpoints._written_parts import check_all_weights, vocabulary_file, written_preprocessor
from keras_bert_layers.checkpoints.google_casing import KEY as CASING
from keras_bert_layers.checkpoints.google_directory import CONFIG, VOCABULARY
from keras_bert_layers.checkpoints.google_notes import OPTIONS, GoogleNotes
from keras_bert_layers.checkpoints.json_file import write_json
from keras_bert_layers.checkpoints.model_tensors import ModelTensors
from keras_bert_layers.checkpoints.notes import KEY, tokenizer_notes
from keras_bert_layers.checkpoints.tf1_checkpoint import index_checksum, write_tf1_checkpoint
from keras_bert_layers.checkpoints.weight_row import Layout, WeightRow
from keras_bert_layers.config import BertConfig
from keras_bert_layers.preprocessing import BertPreprocessor, BertTokenizer, SpanPreprocessor
from keras_bert_layers.tasks import (
    BertClassifier,
    BertCrossEncoder,
    BertMaskedLM,
    BertPretrainer,
    BertQuestionAnswerer,
    BertSentenceEncoder,
)

OWNER = "save_google"
CHECKPOINT = "bert_model.ckpt"

# The model's class -> its name as a task, and its head.
_TASKS: dict[type[Any], tuple[str | None, tuple[WeightRow, ...]]] = {
    BertBackbone: (None, ()),
    BertClassifier: ("classifier", weight_table.CLASSIFIER_ROWS),
    BertCrossEncoder: ("cross_encoder", weight_table.CLASSIFIER_ROWS),
    BertMaskedLM: ("masked_lm", weight_table.MASKED_LM_ROWS),
    BertPretrainer: ("pretrainer", (*weight_table.MASKED_LM_ROWS, *weight_table.NEXT_SENTENCE_ROWS)),
    BertQuestionAnswerer: ("question_answerer", weight_table.SPAN_ROWS),
    BertSentenceEncoder: ("sentence_encoder", ()),
}


def save_google(
    model: Any, directory: str | os.PathLike[str], *, preprocessor: BertPreprocessor | SpanPreprocessor | None = None
) -> Path:
    """Writes a model as a checkpoint that the programs of google-research/bert read.

    | here | the variables there |
    |---|---|
    | `BertBackbone`, `BertSentenceEncoder` | `bert/...`, with the pooler |
    | `BertPretrainer`, `BertMaskedLM` | and `cls/predictions/...`, `cls/seq_relationship/...`: run_pretraining.py |
    | `BertClassifier`, `BertCrossEncoder` | and `output_weights`, `output_bias`: run_classifier.py |
    | `BertQuestionAnswerer` | and `cls/squad/...`: run_squad.py |

    The directory holds `bert_config.json`, `bert_model.ckpt.index` with its file of numbers (float32) and, where there
    is a preprocessor, `vocab.txt`. It appears whole or not at all. TensorFlow is not needed, and one tensor at a time
    is in memory.

    Google's code computes GELU in its tanh form alone, and with one epsilon: from the weights of a model with the erf
    form it computes slightly other outputs. A warning then says so. Nothing is lost: what Google's files have no words
    for is noted under a key of its own in `bert_config.json`, and `load_backbone` and `load_task` give the very model
    back, bit for bit.

    Args:
        model: a `BertBackbone`, or one of the tasks above.
        directory: where to write: nothing, or an empty directory. Parents are made.
        preprocessor: whose vocabulary and `max_length` are written; a task's own if None.

    Returns:
        The directory.

    Raises:
        TypeError: the model is none of these; `preprocessor` or `directory` is of the wrong type.
        ValueError: Google has no such model: another activation, weights beside BERT's own, a token with a line end.
        CheckpointError: the directory holds something, or it cannot be written: no right to, the disk is full.

    Examples:
        >>> import pathlib, tempfile
        >>> from keras_bert_layers import BertBackbone, load_backbone, save_google
        >>> from keras_bert_layers.presets import preset_config
        >>> backbone = BertBackbone(preset_config("bert_uncased_L-2_H-128_A-2"))
        >>> directory = save_google(backbone, pathlib.Path(tempfile.mkdtemp()) / "uncased_L-2_H-128_A-2")
        >>> sorted(path.name for path in directory.iterdir())
        ['bert_config.json', 'bert_model.ckpt.data-00000-of-00001', 'bert_model.ckpt.index']
        >>> load_backbone(directory).config == backbone.config
        True

    References:
        The zip files that the README of google-research/bert names. docs/decisions/0010-gelu-in-googles-files.md.
    """
    task, head = _task(model)
    backbone = model if task is None else model.backbone
    preprocessor = written_preprocessor(OWNER, model, preprocessor)
    config: BertConfig = backbone.config
    config_values = config.to_google()
    tensors = _tensors(model, (*weight_table.backbone_rows(config), *head), config)
    vocabulary = None if preprocessor is None else _vocabulary(preprocessor.tokenizer, config)
    lost = list(_lost(model, task, config, preprocessor))
    if lost:
        warnings.warn(
            f"`{OWNER}`: Google's code has no words for {', '.join(lost)}: it computes something else from these "
            "files, or nothing. This package reads the directory exactly.",
            stacklevel=2,
        )
    with new_directory(directory, owner=OWNER) as unfinished:
        prefix = unfinished / CHECKPOINT
        write_tf1_checkpoint(prefix, tensors)
        if preprocessor is not None:
            config_values[CASING] = preprocessor.tokenizer.lowercase
        notes = _notes(model, task, config, preprocessor, weights=index_checksum(prefix))
        if lost or notes.says_more_than_the_files:
            config_values[KEY] = notes.to_dict()
        write_json(unfinished / CONFIG, config_values)
        if vocabulary is not None:
            (unfinished / VOCABULARY).write_bytes(vocabulary)
    return Path(directory)


def _task(model: Any) -> tuple[str | None, tuple[WeightRow, ...]]:
    """The model's name as a task, None for a backbone, and the rows of its head."""
    found = next((task for kind, task in _TASKS.items() if isinstance(model, kind)), None)
    if found is None:
        rule = f"be one of {', '.join(kind.__name__ for kind in _TASKS)}"
        raise TypeError(checks.message(OWNER, "model", rule, model, "Google has no such task; save `model.backbone`."))
    return found


def _tensors(model: Any, rows: tuple[WeightRow, ...], config: BertConfig) -> ModelTensors:
    """The model's weights under Google's names; every one is written."""
    check_all_weights(OWNER, model, rows)
    return ModelTensors(model, rows, Layout.GOOGLE, num_heads=config.num_heads)


def _vocabulary(tokenizer: BertTokenizer, config: BertConfig) -> bytes:
    """The content of `vocab.txt`: a token a line."""
    tokens: list[str] = tokenizer.get_config()["vocabulary"]
    if len(tokens) > config.vocabulary_size:
        rule = f"have at most the model's {config.vocabulary_size} tokens"
        raise ValueError(checks.message(OWNER, "preprocessor.tokenizer", rule, len(tokens)))
    broken = [token for token in tokens if "\n" in token or token.endswith("\r")]
    if broken:
        rule = "have no token with the end of a line"
        raise ValueError(checks.message(OWNER, "preprocessor.tokenizer", rule, broken[0]))
    return vocabulary_file(tokenizer)


def _notes(model: Any, task: str | None, config: BertConfig, preprocessor: Any, *, weights: int) -> GoogleNotes:
    options = model.get_config() if task else {}
    return GoogleNotes(
        weights,
        config,
        tokenizer_notes(preprocessor),
        None if preprocessor is None else preprocessor.max_length,
        task,
        {name: options[name] for name in OPTIONS.get(task or "", {})},
    )


def _lost(model: Any, task: str | None, config: BertConfig, preprocessor: Any) -> Iterator[str]:
    """What of the model Google's code computes otherwise, and how."""
    there = BertConfig.from_google(config.to_google()).to_dict()
    pairs = [(name, value, there[name]) for name, value in config.to_dict().items()]
    pairs.append(("embedding_dim", config.embedding_dim, None))
    if task == "masked_lm":
        for name in ("activation", "layer_norm_epsilon"):
            value = getattr(model, f"head_{name}")
            pairs.append((f"head_{name}", value, there[name] if value is not None else None))
    if preprocessor is not None:
        tokenizer = preprocessor.tokenizer
        pairs.append(("reference", tokenizer.reference, "google"))
        pairs.append(("split_chinese", tokenizer.split_chinese, True))
        pairs.append(("strip_accents", tokenizer.strip_accents in (None, tokenizer.lowercase), True))
    for name, ours, theirs in pairs:
        if ours != theirs:
            yield f"{name}={ours!r} (there {theirs!r})"
