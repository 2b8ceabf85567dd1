"""`save_huggingface`: saves a model as a directory that transformers and sentence-transformers load."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.new_directory import new_directory
from keras_bert_layers.checkpoints.files.safetensors_file import write_safetensors
from keras_bert_layers.checkpoints.huggingface.config_keys import config_to_huggingface
from keras_bert_layers.checkpoints.huggingface.families.family import BERT, Family
from keras_bert_layers.checkpoints.huggingface.families.roberta import ROBERTA, XLM_ROBERTA
from keras_bert_layers.checkpoints.huggingface.families.table import family_of
from keras_bert_layers.checkpoints.huggingface.tokenizer.writer import write_tokenizer
from keras_bert_layers.checkpoints.sentence_transformers.cross_encoder import config_entry, write_cross_encoder
from keras_bert_layers.checkpoints.sentence_transformers.modules import ACTIVATIONS
from keras_bert_layers.checkpoints.sentence_transformers.writer import (
    checked_projections,
    write_multi_vector_encoder,
    write_sentence_transformers,
    write_sparse_encoder,
)
from keras_bert_layers.checkpoints.weights.table import (
    QUERY_ROWS,
    Layout,
    WeightRow,
    backbone_rows,
    dense_projection_rows,
    encoder_rows,
    pooler_rows,
)
from keras_bert_layers.checkpoints.written_model import WrittenModel
from keras_bert_layers.export.onnx import write_onnx_of_ids
from keras_bert_layers.preprocessing import BertPreprocessor, BytePairTokenizer, SpanPreprocessor
from keras_bert_layers.tag_scheme import tag_scheme
from keras_bert_layers.tasks import (
    BertCrossEncoder,
    BertDualEncoder,
    BertMultipleChoice,
    BertMultiVectorEncoder,
    BertPretrainer,
    BertSentenceEncoder,
    BertSparseEncoder,
)

if TYPE_CHECKING:
    import keras

OWNER = "save_huggingface"

# Settings of tasks that HuggingFace's files do not have, with the values that transformers uses.
_NOT_WRITTEN: dict[str, tuple[Any, ...]] = {"threshold": (None, 0.5), "no_answer_threshold": (None,), "stride": (None,)}
_NOT_WRITTEN |= {"aggregation": (None, "first"), "long_texts": (None,)}
# Their config.json states it as transformers 4 does: CTranslate2 4.8 converts no other.
_STATE_POSITIONS = (BERT, XLM_ROBERTA, ROBERTA)


class HuggingFaceForm:
    """The counterpart of a model in transformers. It has a pooler if transformers' class has one.

    Args:
        written: the model.

    Attributes:
        family: the model type.
        architecture: the class of transformers.
        rows: the rows of the table of weight names for the tensors that the class saves.
        values: the keys of `config.json` except the encoder's.
        loses_dropout: whether `config.json` has no key for the head's dropout rate.

    Raises:
        ValueError: the model has parts that transformers' class does not have.
    """

    def __init__(self, written: WrittenModel):
        tokenizer = None if written.preprocessor is None else written.preprocessor.tokenizer
        is_byte_level = isinstance(tokenizer, BytePairTokenizer)
        self.family = family = family_of(written.config, written.backbone.parts, is_byte_level=is_byte_level)
        _check_parts(written, family)
        self._bert_class = written.counterpart or "BertModel"
        self.architecture = family.own_class(self._bert_class)
        is_bare = self._bert_class == "BertModel"
        pooled = family.has_pooler if is_bare else written.task is not None and written.task.pooled
        rows = (backbone_rows if pooled else encoder_rows)(written.config, written.backbone.parts)
        # A dense layer of sentence-transformers has a file of its own, and so have weights of queries.
        head = () if is_bare else [row for row in written.head if row not in QUERY_ROWS]
        self.rows: tuple[WeightRow, ...] = (*rows, *head)
        name = str(written.name)
        self.loses_dropout = name in family.dropouts and family.dropouts[name] is None
        self.values = family.head_values(name, _values(written), written.config.dropout)

    def file_name(self, name: str) -> str:
        """The name of a tensor in the file, for its name in the table."""
        return self.family.names.file_name(name, self._bert_class)


def _check_parts(written: WrittenModel, family: Family) -> None:
    """Raises ValueError for parts that transformers' class does not have."""
    model, owner = written.model, written.owner
    kind = type(model).__name__
    if written.name == "token_classifier" and model.crf is not None:
        cure = "transformers' BertForTokenClassification does not have its transitions. Save a `.keras` file."
        rule = "have no conditional random field"
        raise ValueError(checks.message(owner, "model", rule, f"{kind} with crf=True", cure))
    if written.name == "dual_encoder" and model.document_backbone is not None:
        cure = (
            "sentence-transformers has no such pair. Save each side: `BertSentenceEncoder(model.backbone, "
            "model.pooling, normalize=model.normalize, preprocessor=model.preprocessor)`, and the same with "
            "`model.document_backbone`."
        )
        rule = "have one encoder for both sides"
        raise ValueError(checks.message(owner, "model", rule, f"{kind} with a document_backbone", cure))
    pad_id = None if written.preprocessor is None else written.preprocessor.tokenizer.pad_id
    if family.counts_padding and pad_id not in (None, written.config.position_offset - 1):
        rule = f"be the model's `position_offset` less 1, {written.config.position_offset - 1}"
        raise ValueError(checks.message(owner, "preprocessor.tokenizer.pad_id", rule, pad_id))
    if written.name == "pretrainer" and not family.predicts_pairs:
        cure = f"transformers' {family.title} predicts no next sentences. Save a `BertMaskedLM`, or a `.keras` file."
        raise ValueError(checks.message(owner, "model", "be of BERT or ALBERT for pairs of sentences", kind, cure))
    if written.name == "cross_encoder":
        checks.one_of(owner, "model.activation", model.activation, list(ACTIVATIONS.values()))
    for name in ("activation", "layer_norm_epsilon") if written.name in ("masked_lm", "sparse_encoder") else ():
        own = getattr(written.config, name)
        standard = (family.masked_lm_activation if name == "activation" else None) or own
        value = getattr(model, f"head_{name}")
        if (own if value is None else value) != standard:
            rule = f"be {standard!r} or None" if own == standard else f"be {standard!r}"
            cure = f"transformers' {family.title} has no other in this head. Save a `.keras` file."
            raise ValueError(checks.message(owner, f"model.head_{name}", rule, value, cure))


def _values(written: WrittenModel) -> dict[str, Any]:
    """The head's keys of `config.json`."""
    model = written.model
    match written.name:
        case "classifier":
            # The numbers of a regression have no names, which is transformers' default.
            beginning = "LABEL_" if model.problem_type == "regression" else ""
            labels = _labels(model.class_names or [f"{beginning}{index}" for index in range(model.num_classes)])
            return {"problem_type": model.problem_type, "classifier_dropout": model.dropout, **labels}
        case "cross_encoder":
            entry = {"sentence_transformers": config_entry(model)}
            return {"classifier_dropout": model.dropout, **_labels(["LABEL_0"]), **entry}
        case "token_classifier":
            return {"classifier_dropout": model.dropout, **_labels(model.tag_names)}
        case "multiple_choice":
            return {"classifier_dropout": model.dropout}
        case "masked_lm" | "pretrainer" | "sparse_encoder":
            return {} if model.tie_weights else {"tie_word_embeddings": False}
    return {}


def _labels(names: Sequence[str]) -> dict[str, Any]:
    """The class names in `config.json`, by index and by name."""
    return {
        "id2label": {str(index): name for index, name in enumerate(names)},
        "label2id": {name: index for index, name in enumerate(names)},
    }


def save_huggingface(
    model: keras.Model,
    directory: str | os.PathLike[str],
    *,
    preprocessor: BertPreprocessor | SpanPreprocessor | None = None,
    onnx: bool = False,
) -> Path:
    """Writes a model as a directory that HuggingFace transformers loads, with every weight and equal outputs.

    The classes are BERT's, or those of the relative that the config describes: DistilBERT without segments, ELECTRA
    with `pooler_activation="gelu_erf"`, XLM-RoBERTa with a `position_offset`, RoBERTa with a `BytePairTokenizer` too.

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
    | `BertMultiVectorEncoder` | `BertModel`; `MultiVectorEncoder` of sentence-transformers, with its dense layer |
    | `BertSparseEncoder` | `BertForMaskedLM`; `SparseEncoder` of sentence-transformers |

    The directory holds `config.json`, `model.safetensors` (float32) and, if there is a preprocessor, the tokenizer with
    the maximum length. It is written atomically. `load_backbone`, `load_task` and the others read it back, bit
    for bit; only the pooler is not written if transformers' class has none.

    Args:
        model: a `BertBackbone` or a task.
        directory: the directory to create; it may exist if it is empty. Parents are created.
        preprocessor: the preprocessor whose tokenizer and `max_length` are written; the task's own if None.
        onnx: whether to write ONNX files of ids too, `onnx/model.onnx` and, with weights of 8 bits,
            `onnx/model_quantized.onnx`, as transformers.js reads them. Not for multiple choice and pretraining.

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
    form = HuggingFaceForm(written)
    if onnx and isinstance(model, BertMultipleChoice | BertPretrainer):
        raise ValueError(checks.message(OWNER, "onnx", "be False for multiple choice and pretraining", type(model)))
    config_values = _config_values(written, form)
    # A pooler that nothing reads is not written.
    dense_rows = written.head or dense_projection_rows(len(checked_projections(OWNER, model)))
    written.check_weights(tuple({*form.rows, *pooler_rows(written.backbone.parts), *dense_rows}))
    preprocessor = written.preprocessor
    max_length = None if preprocessor is None else _max_length(model, preprocessor)
    _warn_of_losses(written, form)
    with new_directory(directory, owner=OWNER) as unfinished:
        if preprocessor is not None and max_length is not None:
            roles = {"pad_token_id": "pad", **form.family.token_ids}
            config_values.update({key: getattr(preprocessor.tokenizer, f"{role}_id") for key, role in roles.items()})
            write_tokenizer(
                unfinished,
                preprocessor.tokenizer,
                max_length=max_length,
                kind=form.family.tokenizer_class,
                truncation_side=getattr(preprocessor, "truncation_side", "right"),
            )
        write_json(unfinished / "config.json", config_values)
        if isinstance(model, BertSentenceEncoder | BertDualEncoder):
            write_sentence_transformers(unfinished, model, max_length=max_length)
        elif isinstance(model, BertMultiVectorEncoder):
            write_multi_vector_encoder(unfinished, model, max_length=max_length)
        elif isinstance(model, BertSparseEncoder):
            write_sparse_encoder(unfinished, model, max_length=max_length)
        elif isinstance(model, BertCrossEncoder):
            write_cross_encoder(unfinished, model)
        tensors = form.family.names.of_files(written.tensors(form.rows, form.file_name))
        write_safetensors(unfinished / "model.safetensors", tensors)
        if onnx:
            _write_onnx(unfinished / "onnx", model)
    return Path(directory)


def _config_values(written: WrittenModel, form: HuggingFaceForm) -> dict[str, Any]:
    """The content of `config.json`, without the ids of the tokenizer's tokens."""
    return {
        "architectures": [form.architecture],
        "pad_token_id": form.family.pad_id,
        **config_to_huggingface(written.config, written.backbone.parts),
        "dtype": "float32",
        "model_type": form.family.model_types[0],
        **({"position_embedding_type": "absolute"} if form.family in _STATE_POSITIONS else {}),
        **form.values,
    }


def _write_onnx(folder: Path, model: keras.Model) -> None:
    """Writes the ONNX files of ids, with weights of 32 and of 8 bits; a backbone's gives one vector per text."""
    folder.mkdir()
    task = BertSentenceEncoder(model) if isinstance(model, BertBackbone) else model
    for dtype, name in (("float32", "model.onnx"), ("int8", "model_quantized.onnx")):
        write_onnx_of_ids(folder / name, task, dtype=dtype)


def _max_length(model: keras.Model, preprocessor: Any) -> int:
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
