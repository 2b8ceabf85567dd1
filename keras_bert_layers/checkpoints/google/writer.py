"""`save_google`: saves a model as a checkpoint that google-research/bert reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.metadata import KEY, OPTIONS
from keras_bert_layers.checkpoints.files.new_directory import new_directory
from keras_bert_layers.checkpoints.files.tf1_checkpoint import index_checksum, write_tf1_checkpoint
from keras_bert_layers.checkpoints.files.vocabulary import vocabulary_bytes
from keras_bert_layers.checkpoints.google.casing import KEY as CASING
from keras_bert_layers.checkpoints.google.config_keys import config_there, config_to_google
from keras_bert_layers.checkpoints.google.directory import CONFIG, VOCABULARY
from keras_bert_layers.checkpoints.weights.table import Layout, backbone_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel
from keras_bert_layers.preprocessing import BertPreprocessor, SpanPreprocessor

if TYPE_CHECKING:
    import keras

OWNER = "save_google"
CHECKPOINT = "bert_model.ckpt"


def save_google(
    model: keras.Model,
    directory: str | os.PathLike[str],
    *,
    preprocessor: BertPreprocessor | SpanPreprocessor | None = None,
) -> Path:
    """Writes a model as a checkpoint that the programs of google-research/bert read.

    | Model | Variables |
    |---|---|
    | `BertBackbone`, `BertSentenceEncoder` | `bert/...`, with the pooler |
    | `BertPretrainer`, `BertMaskedLM` | and `cls/predictions/...`, `cls/seq_relationship/...`: run_pretraining.py |
    | `BertClassifier`, `BertCrossEncoder` | and `output_weights`, `output_bias`: run_classifier.py |
    | `BertQuestionAnswerer` | and `cls/squad/...`: run_squad.py |

    The directory holds `bert_config.json`, `bert_model.ckpt.index` with its data file (float32) and, if there is a
    preprocessor, `vocab.txt`. It is written atomically. TensorFlow is not needed, and one tensor at a time is
    in memory.

    Google's code has only the tanh form of GELU and one epsilon, so it computes slightly different outputs from the
    weights of a model with the erf form. A warning reports this. Nothing is lost: settings that Google's files do not
    have are kept under a key of their own in `bert_config.json`, and `load_backbone` and `load_task` return the same
    model, bit for bit.

    Args:
        model: a `BertBackbone`, or one of the tasks above.
        directory: the directory to create; it may exist if it is empty. Parents are created.
        preprocessor: the preprocessor whose vocabulary and `max_length` are written; the task's own if None.

    Returns:
        The directory.

    Raises:
        TypeError: the model is not one of these; `preprocessor` or `directory` is of the wrong type.
        ValueError: Google has no such model: another activation, other weights than BERT's own, a token with a line
            end.
        CheckpointError: the directory is not empty or cannot be written, for example because the disk is full.

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
    cure = "Google has no such task; save `model.backbone`."
    written = WrittenModel(model, Layout.GOOGLE, preprocessor, owner=OWNER, cure=cure)
    config_values = config_to_google(written.config)
    rows = (*backbone_rows(written.config), *written.head)
    written.check_weights(rows)
    vocabulary = None if written.preprocessor is None else _vocabulary(written)
    lost = written.warn_of_differences("Google's code", _settings(written))
    options = {name: getattr(model, name) for name in OPTIONS.get(written.name or "", {})}
    max_length = getattr(written.preprocessor, "max_length", None)
    with new_directory(directory, owner=OWNER) as unfinished:
        prefix = unfinished / CHECKPOINT
        write_tf1_checkpoint(prefix, written.tensors(rows))
        if written.preprocessor is not None:
            config_values[CASING] = written.preprocessor.tokenizer.lowercase
        metadata = written.metadata(options, weights=index_checksum(prefix), max_length=max_length)
        if lost or metadata.has_task_settings:
            config_values[KEY] = metadata.to_dict()
        write_json(unfinished / CONFIG, config_values)
        if vocabulary is not None:
            (unfinished / VOCABULARY).write_bytes(vocabulary)
    return Path(directory)


def _vocabulary(written: WrittenModel) -> bytes:
    """The content of `vocab.txt`: one token per line."""
    tokens, most = written.vocabulary, written.config.vocabulary_size
    if len(tokens) > most:
        rule = f"have at most the model's {most} tokens"
        raise ValueError(checks.message(OWNER, "preprocessor.tokenizer", rule, len(tokens)))
    broken = [token for token in tokens if "\n" in token or token.endswith("\r")]
    if broken:
        rule = "have no token with the end of a line"
        raise ValueError(checks.message(OWNER, "preprocessor.tokenizer", rule, broken[0]))
    return vocabulary_bytes(tokens)


def _settings(written: WrittenModel) -> Iterator[tuple[str, Any, Any]]:
    """Name, our value and the value in Google's code."""
    there = {**config_there(written.config).to_dict(), "embedding_dim": None}
    yield from ((name, value, there[name]) for name, value in written.config.to_dict().items())
    if written.name == "masked_lm":
        for name in ("activation", "layer_norm_epsilon"):
            value = getattr(written.model, f"head_{name}")
            yield f"head_{name}", value, there[name] if value is not None else None
    if written.preprocessor is not None:
        tokenizer = written.preprocessor.tokenizer
        yield "reference", tokenizer.reference, "google"
        yield "split_chinese", tokenizer.split_chinese, True
        yield "num_pair_separators", tokenizer.num_pair_separators, 1
        yield "strip_accents", tokenizer.strip_accents in (None, tokenizer.lowercase), True
