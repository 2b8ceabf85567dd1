"""`save_huggingface`: saves a model as a directory that transformers loads."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from keras_bert_layers._internal.tag_scheme import tag_scheme
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.new_directory import new_directory
from keras_bert_layers.checkpoints.files.safetensors_writer import write_safetensors
from keras_bert_layers.checkpoints.huggingface.forms import HuggingFaceForm, huggingface_form
from keras_bert_layers.checkpoints.huggingface.sentence_piece_writer import write_sentence_piece_tokenizer
from keras_bert_layers.checkpoints.huggingface.tokenizer_writer import write_huggingface_tokenizer
from keras_bert_layers.checkpoints.sentence_transformers.cross_encoder import write_cross_encoder
from keras_bert_layers.checkpoints.sentence_transformers.writer import checked_projections, write_sentence_transformers
from keras_bert_layers.checkpoints.weights.row import Layout
from keras_bert_layers.checkpoints.weights.table import POOLER_ROWS, dense_projection_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel
from keras_bert_layers.preprocessing import BertPreprocessor, SentencePieceTokenizer, SpanPreprocessor
from keras_bert_layers.tasks import BertCrossEncoder, BertDualEncoder, BertSentenceEncoder

OWNER = "save_huggingface"

# Settings of tasks that HuggingFace's files do not have, with the values that transformers uses.
_NOT_WRITTEN: dict[str, tuple[Any, ...]] = {"threshold": (None, 0.5), "no_answer_threshold": (None,), "stride": (None,)}
_NOT_WRITTEN |= {"aggregation": (None, "first")}


def save_huggingface(
    model: Any, directory: str | os.PathLike[str], *, preprocessor: BertPreprocessor | SpanPreprocessor | None = None
) -> Path:
    """Writes a model as a directory that HuggingFace transformers loads, with every weight and equal outputs.

    The classes are BERT's, or those of the relative that the config describes: DistilBERT without segments, ELECTRA
    with `pooler_activation="gelu_erf"`, XLM-RoBERTa with a `position_offset`.

    | Model | Class in transformers |
    |---|---|
    | `BertBackbone` | `BertModel` |
    | `BertClassifier` | `BertForSequenceClassification`, with its `problem_type` and `id2label` |
    | `BertTokenClassifier` | `BertForTokenClassification`, with `id2label` |
    | `BertQuestionAnswerer` | `BertForQuestionAnswering` |
    | `BertMultipleChoice` | `BertForMultipleChoice` |
    | `BertMaskedLM` | `BertForMaskedLM`; a token matrix that the head shares is written once |
    | `BertPretrainer` | `BertForPreTraining` |
    | `BertCrossEncoder` | `BertForSequenceClassification` with one label; `CrossEncoder` of sentence-transformers |
    | `BertSentenceEncoder` | `BertModel`; `SentenceTransformer`, with pooling, dense layer and normalization |
    | `BertDualEncoder` with one encoder | the same |

    The directory holds `config.json`, `model.safetensors` (float32) and, if there is a preprocessor, the tokenizer with
    the maximum length. It is written whole or not at all. `load_backbone`, `load_task` and the others read it back, bit
    for bit; only the pooler is not written if transformers' class has none.

    Args:
        model: a `BertBackbone` or a task.
        directory: the directory to create; it may exist if it is empty. Parents are created.
        preprocessor: the preprocessor whose tokenizer and `max_length` are written; the task's own if None.

    Returns:
        The directory.

    Raises:
        TypeError: the model is not of this package; `directory` is not a path.
        ValueError: transformers has no such model: a BERT with a narrower embedding, a conditional random field, two
            encoders, a masked LM head with its own activation, other weights than BERT's own.
        CheckpointError: the directory is not empty or cannot be written, for example because the disk is full.

    Examples:
        >>> import pathlib, tempfile
        >>> from keras_bert_layers import BertBackbone, BertConfig, load_backbone, save_huggingface
        >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> directory = save_huggingface(BertBackbone(config), pathlib.Path(tempfile.mkdtemp()) / "bert")
        >>> sorted(path.name for path in directory.iterdir())
        ['config.json', 'model.safetensors']
        >>> load_backbone(directory).config == config
        True

    References:
        `save_pretrained` of transformers 5, and of sentence-transformers 5 for its modules.
    """
    written = WrittenModel(model, Layout.HUGGINGFACE, preprocessor, owner=OWNER)
    form = huggingface_form(written)
    config_values: dict[str, Any] = {
        "architectures": [form.architecture],
        "pad_token_id": 0,
        **written.config.to_huggingface(),
        "dtype": "float32",
        **form.values,
    }
    is_sentence_encoder = isinstance(model, BertSentenceEncoder | BertDualEncoder)
    # A pooler that nothing reads is not written.
    dense_rows = dense_projection_rows(len(checked_projections(OWNER, model)))
    written.check_weights(tuple({*form.rows, *POOLER_ROWS, *dense_rows}))
    preprocessor = written.preprocessor
    max_length = None if preprocessor is None else _max_length(model, preprocessor)
    _warn_of_losses(written, form)
    with new_directory(directory, owner=OWNER) as unfinished:
        if preprocessor is not None and max_length is not None:
            config_values["pad_token_id"] = preprocessor.tokenizer.pad_id
            side = getattr(preprocessor, "truncation_side", "right")
            settings: dict[str, Any] = {"max_length": max_length, "truncation_side": side}
            if isinstance(preprocessor.tokenizer, SentencePieceTokenizer):
                write_sentence_piece_tokenizer(unfinished, preprocessor.tokenizer, **settings)
            else:
                settings["kind"] = form.family.tokenizer_class
                write_huggingface_tokenizer(unfinished, preprocessor.tokenizer, **settings)
        write_json(unfinished / "config.json", config_values)
        if is_sentence_encoder:
            write_sentence_transformers(unfinished, model, max_length=max_length)
        elif isinstance(model, BertCrossEncoder):
            write_cross_encoder(unfinished, model)
        tensors = written.tensors(form.rows, form.file_name)
        write_safetensors(unfinished / "model.safetensors", tensors)
    return Path(directory)


def _max_length(model: Any, preprocessor: Any) -> int:
    """The maximum length; for a dual encoder the larger of the two."""
    other = getattr(model, "document_preprocessor", None)
    if other is not None and other.max_length != preprocessor.max_length:
        warnings.warn(
            f"`{OWNER}`: the longest query has {preprocessor.max_length} tokens and the longest document "
            f"{other.max_length}. HuggingFace's files have one maximum length; the larger is written.",
            stacklevel=3,
        )
        return max(preprocessor.max_length, other.max_length)
    return preprocessor.max_length


def _warn_of_losses(written: WrittenModel, form: HuggingFaceForm) -> None:
    """Warns of settings that are not written."""
    model, preprocessor = written.model, written.preprocessor
    found = tag_scheme(OWNER, model.tag_names).name if hasattr(model, "tag_names") else None
    not_written = {**_NOT_WRITTEN, "scheme": (None, found)}
    if form.loses_dropout:
        not_written["dropout"] = (written.config.dropout,)
    for name, defaults in not_written.items():
        if getattr(model, name, None) not in defaults:
            warnings.warn(
                f"`{OWNER}`: {name}={getattr(model, name)!r} is not written, as HuggingFace's files have no setting "
                "for it. Give it to `load_task` again, or save a `.keras` file.",
                stacklevel=3,
            )
    if preprocessor is not None and preprocessor.tokenizer.reference != "huggingface":
        warnings.warn(
            f"`{OWNER}`: the tokenizer follows Google's reference. HuggingFace's gives other ids for a few texts: "
            "those with control characters, words of over 100 characters, or special tokens written out.",
            stacklevel=3,
        )
