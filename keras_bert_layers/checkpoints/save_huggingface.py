"""`save_huggingface`: a model as a directory that transformers loads."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints._new_directory import new_directory
from keras_bert_layers.checkpoints._written_parts import check_all_weights, written_preprocessor
from keras_bert_layers.checkpoints.huggingface_forms import HuggingFaceForm, huggingface_form
from keras_bert_layers.checkpoints.huggingface_names import file_name
from keras_bert_layers.checkpoints.huggingface_tokenizer import write_huggingface_tokenizer
from keras_bert_layers.checkpoints.json_file import write_json
from keras_bert_layers.checkpoints.model_tensors import ModelTensors
from keras_bert_layers.checkpoints.safetensors_writer import write_safetensors
from keras_bert_layers.checkpoints.sentence_transformers_writer import check_projection, write_sentence_transformers
from keras_bert_layers.checkpoints.weight_row import Layout
from keras_bert_layers.checkpoints.weight_table import DENSE_PROJECTION_ROWS, POOLER_ROWS
from keras_bert_layers.preprocessing import BertPreprocessor, SpanPreprocessor
from keras_bert_layers.tasks import BertDualEncoder, BertSentenceEncoder

OWNER = "save_huggingface"

# What a task answers by and HuggingFace's files have no word for, with the values that are theirs.
_UNSAID: dict[str, tuple[Any, ...]] = {"threshold": (None, 0.5), "no_answer_threshold": (None,), "stride": (None,)}


def save_huggingface(
    model: Any, directory: str | os.PathLike[str], *, preprocessor: BertPreprocessor | SpanPreprocessor | None = None
) -> Path:
    """Writes a model as a directory that HuggingFace transformers loads, with every weight and equal outputs.

    | here | there |
    |---|---|
    | `BertBackbone` | `BertModel` |
    | `BertClassifier` | `BertForSequenceClassification`, with its `problem_type` and `id2label` |
    | `BertTokenClassifier` | `BertForTokenClassification`, with `id2label` |
    | `BertQuestionAnswerer` | `BertForQuestionAnswering` |
    | `BertMultipleChoice` | `BertForMultipleChoice` |
    | `BertMaskedLM` | `BertForMaskedLM`; the token matrix, which the head shares, is written once, as there |
    | `BertPretrainer` | `BertForPreTraining` |
    | `BertCrossEncoder` | `BertForSequenceClassification` with one label; `CrossEncoder` of sentence-transformers |
    | `BertSentenceEncoder` | `BertModel`; `SentenceTransformer`, with pooling, dense layer and normalisation |
    | `BertDualEncoder` with one encoder | the same |

    The directory holds `config.json`, `model.safetensors` (float32) and, where there is a preprocessor, the tokenizer
    with the longest text. It appears whole or not at all. `load_backbone`, `load_task` and the others read it back, bit
    for bit; only the pooler is left out where transformers' class has none.

    Args:
        model: a `BertBackbone` or a task.
        directory: where to write: nothing, or an empty directory. Parents are made.
        preprocessor: whose tokenizer and `max_length` are written; a task's own if None.

    Returns:
        The directory.

    Raises:
        TypeError: the model is none of this package's; `directory` is not a path.
        ValueError: transformers has no such model: a narrower embedding, a conditional random field, two encoders, a
            masked LM head with its own activation, weights beside BERT's own.
        CheckpointError: the directory cannot be written: it holds something, it is closed to writers, the disk is full.

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
    form = huggingface_form(OWNER, model)
    config_values = _config_values(form)
    is_sentence_encoder = isinstance(model, BertSentenceEncoder | BertDualEncoder)
    check_projection(OWNER, model)
    _check_weights(model, form)
    preprocessor = written_preprocessor(OWNER, model, preprocessor)
    max_length = None if preprocessor is None else _max_length(model, preprocessor)
    _warn_of_losses(model, preprocessor)
    with new_directory(directory, owner=OWNER) as unfinished:
        if preprocessor is not None and max_length is not None:
            config_values["pad_token_id"] = preprocessor.tokenizer.pad_id
            write_huggingface_tokenizer(unfinished, preprocessor.tokenizer, max_length=max_length)
        write_json(unfinished / "config.json", config_values)
        if is_sentence_encoder:
            write_sentence_transformers(unfinished, model, max_length=max_length)
        write_safetensors(unfinished / "model.safetensors", _tensors(model, form))
    return Path(directory)


def _config_values(form: HuggingFaceForm) -> dict[str, Any]:
    """The content of `config.json`."""
    values = form.backbone.config.to_huggingface()
    return {"architectures": [form.architecture], **values, "dtype": "float32", "pad_token_id": 0, **form.values}


def _tensors(model: Any, form: HuggingFaceForm) -> ModelTensors:
    return ModelTensors(
        form.backbone if form.is_bare else model,
        form.rows,
        Layout.HUGGINGFACE,
        num_heads=form.backbone.config.num_heads,
        rename=str if form.is_bare else file_name,
    )


def _check_weights(model: Any, form: HuggingFaceForm) -> None:
    """Refuses a model that would lose weights: every one is written, or is a pooler that nothing reads."""
    rows = {*form.rows, *POOLER_ROWS}
    if getattr(model, "projection_dim", None) is not None:
        rows.update(DENSE_PROJECTION_ROWS)
    check_all_weights(OWNER, model, tuple(rows))


def _max_length(model: Any, preprocessor: Any) -> int:
    """The longest text; of a dual encoder's two, the longer."""
    other = getattr(model, "document_preprocessor", None)
    if other is not None and other.max_length != preprocessor.max_length:
        warnings.warn(
            f"`{OWNER}`: the longest query has {preprocessor.max_length} tokens and the longest document "
            f"{other.max_length}. HuggingFace's files say one number; the larger is written.",
            stacklevel=3,
        )
        return max(preprocessor.max_length, other.max_length)
    return preprocessor.max_length


def _warn_of_losses(model: Any, preprocessor: Any) -> None:
    """Says what the directory does not hold."""
    for name, unsaid in _UNSAID.items():
        if getattr(model, name, None) not in unsaid:
            warnings.warn(
                f"`{OWNER}`: {name}={getattr(model, name)!r} is not written, as HuggingFace's files have no word for "
                "it. Give it to `load_task` again, or save a `.keras` file.",
                stacklevel=3,
            )
    if preprocessor is not None and preprocessor.tokenizer.reference != "huggingface":
        warnings.warn(
            f"`{OWNER}`: the tokenizer follows Google's reference. HuggingFace's gives other ids for a few texts: "
            "those with control characters, words of over 100 characters, or special tokens written out.",
            stacklevel=3,
        )
