"""`Family`: a checkpoint that people use, as the files of its directory on the hub, with small sizes."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Family:
    """The directory of a checkpoint, and the expected result of loading it.

    Args:
        name: the name on the hub.
        config: the content of `config.json`, with small sizes; `vocab_size` is filled in where it is None.
        makes: the class of transformers whose random weights are written; empty for no file of weights.
        task: the task that `load_task` gives; None for the encoder alone.
        asks: whether the task must be given, because the files do not state it.
        reference: the class of transformers that is compared with; None for the automatic class of the task.
        theirs: the keys of `config.json` that this class needs, where it cannot read those of the directory.
        vocabulary: the name of a vocabulary; see `vocabularies.py`.
        files: other files, each path with the content of its JSON.
        has_tokenizer_json: whether there is a `tokenizer.json`.
        weights_file: name of the file of weights.
        renames: pairs of a regular expression and what replaces it in the names of tensors.
        dropped: a regular expression of the names of tensors that are not stored.
        extra: other tensors that are stored: shape by name.
        has_positions: whether the buffer of positions is stored, as transformers did until 4.30.
        has_decoder: whether the matrix that is tied to the embedding is stored a second time.
        dtype: the dtype of the stored weights.
        labels: the names of classes or tags that the task must have.
        activation: what turns the logit of a cross-encoder into its score.
        warns: a regular expression for warnings that are expected.
        refused: a regular expression for the error that loading must raise; None if it must load.
        refused_by: the functions that must raise it.
        refused_text: the same for the tokenizer alone: the weights load, for ids.
        note: what is special about it, for the documentation.
    """

    name: str
    config: dict[str, Any]
    makes: str = "BertModel"
    task: str | None = None
    asks: bool = False
    reference: str | None = None
    theirs: dict[str, Any] = dataclasses.field(default_factory=dict)
    vocabulary: str | None = "uncased"
    files: dict[str, Any] = dataclasses.field(default_factory=dict)
    has_tokenizer_json: bool = True
    weights_file: str = "model.safetensors"
    renames: tuple[tuple[str, str], ...] = ()
    dropped: str = "(?!)"
    extra: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    has_positions: bool = False
    has_decoder: bool = False
    dtype: str = "float32"
    labels: tuple[str, ...] | None = None
    activation: str | None = None
    warns: str | None = None
    refused: str | None = None
    refused_by: tuple[str, ...] = ("load_backbone", "load_task")
    refused_text: str | None = None
    note: str = ""
