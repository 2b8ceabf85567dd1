"""`HuggingFaceDirectory`: a checkpoint of HuggingFace transformers or of sentence-transformers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, naming
from keras_bert_layers.checkpoints.files.json_file import check_object, is_there, optional_json, read_json_object, shown
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tensor_views import joined_tensors
from keras_bert_layers.checkpoints.huggingface.adapter import (
    ADAPTER_CONFIG,
    AdaptedTensors,
    adapter_values,
    merged_adapter,
    missing_base,
    warn_of_other_base,
)
from keras_bert_layers.checkpoints.huggingface.config_keys import ignored_keys, read_fields
from keras_bert_layers.checkpoints.huggingface.families.family import BERT, SEQUENCE_CLASS, UNREAD, Family, stated_names
from keras_bert_layers.checkpoints.huggingface.families.table import default_tokenizer, stated_family
from keras_bert_layers.checkpoints.huggingface.heads import HuggingFaceHeads
from keras_bert_layers.checkpoints.huggingface.named_adapters import NamedAdapters
from keras_bert_layers.checkpoints.huggingface.quantization import without_quantization
from keras_bert_layers.checkpoints.huggingface.tokenizer.reader import (
    stated_max_length,
    tokenizer_options,
    truncation_side,
)
from keras_bert_layers.checkpoints.huggingface.weight_files import open_adapter, open_weights
from keras_bert_layers.checkpoints.sentence_transformers import modules
from keras_bert_layers.checkpoints.sentence_transformers.cross_encoder import cross_encoder_heads, is_cross_encoder
from keras_bert_layers.checkpoints.sentence_transformers.modules import DenseTensors, encoder_heads
from keras_bert_layers.checkpoints.sentence_transformers.multi_vector_encoder import (
    is_multi_vector_encoder,
    multi_vector_heads,
    with_prefix_tokens,
)
from keras_bert_layers.checkpoints.sentence_transformers.sparse_encoder import is_sparse_encoder, sparse_encoder_heads
from keras_bert_layers.checkpoints.weights.table import EMBEDDING_ROWS, MASKED_LM_ROWS, Layout
from keras_bert_layers.config import BertConfig
from keras_bert_layers.tasks.serving.prompts import RETRIEVAL

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts

# The prefix of the encoder's tensors in every BertFor...; BertModel has none.
PREFIX = "bert."

_BUFFERS = {
    "embeddings.position_ids": "a buffer: the integers 0, 1, 2, ...",
    "embeddings.token_type_ids": "a buffer: zeros",
}
_HEADS = {
    "cls.": "a pretraining head",
    "classifier.": "a classification head",
    "qa_outputs.": "a question answering head",
    "dense.": "the dense layer of a sentence encoder",
}
# Tensors that other programs store beside a BERT, after or outside its encoder.
_OTHERS = {
    "crf.": "a conditional random field over the tags",
    "fit_dense": "a layer of TinyBERT's distillation",
    "lm_head.": "another model's language modelling head",
    "logit_scale": "a scale of contrastive training",
    "loss_fct.": "a weight of the loss",
}
# The rule for tensors about which nothing is known: what stands inside the encoder, and what by its name is added to
# its layers, changes what the encoder computes. All others can only come after it.
_INSIDE = (PREFIX, "embeddings.", "encoder.", "pooler.")
_ADDED = re.compile(r"lora_|adapter|(^|[._])ia3|prefix_|prompt|distance_embedding|rotary|relative_")


# PEFT's types of tasks that a head belongs to.
_ADAPTER_CLASSES = {"SEQ_CLS": SEQUENCE_CLASS, "TOKEN_CLS": "BertForTokenClassification"}


def table_name(name: str) -> str:
    """The table's name for a tensor of a file: without the prefix `bert.`, and not `gamma` and `beta`.

    Examples:
        >>> table_name("bert.embeddings.LayerNorm.gamma")
        'embeddings.LayerNorm.weight'
    """
    # Checkpoints converted from TF1 before 2019 keep TensorFlow's names for the two.
    name = name.removeprefix(PREFIX)
    for old, new in (("gamma", "weight"), ("beta", "bias")):
        if name.endswith(f".LayerNorm.{old}"):
            return name.removesuffix(old) + new
    return name


def ignored_reason(name: str) -> str | None:
    """Why a tensor without a row may be ignored; None if it may not.

    Args:
        name: the table's name.

    Examples:
        >>> ignored_reason("cls.seq_relationship.bias")
        'a pretraining head'
        >>> ignored_reason("encoder.layer.0.adapter.weight") is None
        True
    """
    if _ADDED.search(name):
        return None
    if name in _BUFFERS:
        return _BUFFERS[name]
    return next((reason for head, reason in {**_HEADS, **_OTHERS}.items() if name.startswith(head)), None)


def changes_numbers(stored: str) -> bool:
    """Whether an unknown tensor could be part of the encoder's computation, by its name in the file.

    Examples:
        >>> changes_numbers("bert.encoder.layer.0.output.adapters.en.down.weight"), changes_numbers("mlp.dense.weight")
        (True, False)
    """
    return stored.startswith(_INSIDE) or _ADDED.search(stored) is not None


class HuggingFaceDirectory(Checkpoint):
    """A checkpoint in HuggingFace's layout.

    `config.json` and the weights are in the directory itself or, in old sentence-transformers checkpoints, in the
    folder that `modules.json` names. Nothing outside the directory is read.
    """

    layout = Layout.HUGGINGFACE

    def __init__(self, source: Path, *, owner: str, weights_file: str | None = None):
        super().__init__(source, owner=owner, weights_file=weights_file)
        self.folder = self.root / (modules.transformer_folder(self.root) if weights_file is None else "")

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def is_sentence_transformers(self) -> bool:
        """Whether the directory is a sentence encoder of sentence-transformers: it has a `modules.json`."""
        return (self.root / modules.MODULES_FILE).is_file() and not is_cross_encoder(self.root)

    @cached_property
    def config_values(self) -> dict[str, Any]:
        """The content of `config.json`."""
        has_config = is_there(self.folder / "config.json")
        if not has_config and is_there(self.folder / ADAPTER_CONFIG):
            raise missing_base(self.folder)
        cure = "Give the directory that `save_pretrained` wrote."
        if not has_config and [*self.folder.glob("saved_model.pb"), *self.folder.glob("*/saved_model.pb")]:
            cure = "A SavedModel is a program and not a checkpoint. Load the `.keras` file, or what it was made from."
        return read_json_object(self.existing(self.folder, "config.json", cure))

    @cached_property
    def config(self) -> BertConfig:
        """`config.json` as a `BertConfig`; `ignored_keys` has the keys that it does not know."""
        path = self.folder / "config.json"
        values = without_quantization(path, self.config_values)
        with naming(path):
            return BertConfig(**read_fields(values))

    @cached_property
    def parts(self) -> EncoderParts | None:
        """The parts of the model type."""
        with naming(self.folder / "config.json"):
            return self.family.parts.read(self.config_values, self.config)

    def ignored_keys(self) -> dict[str, str]:
        """The keys of `config.json` that transformers itself does not write."""
        return ignored_keys(self.config_values)

    @cached_property
    def family(self) -> Family:
        """The model type by `config.json`; BERT if there is none, or an unknown one, which `config` refuses."""
        has_config = (self.folder / "config.json").is_file()
        return (stated_family(self.config_values) if has_config else None) or BERT

    @property
    def heads(self) -> HuggingFaceHeads:
        """The heads that the tensors hold."""
        infos = self.weights.infos
        return HuggingFaceHeads(
            folder=self.folder,
            family=self.family,
            config=self.config_values,
            shapes={name: infos[stored].shape for name, stored in self.stored_names(infos).items()},
            stored=infos,
            activation=self.config.activation,
            parts=self.parts,
            decoder_is_embedding=self._decoder_is_embedding,
        )

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The encoders of sentence-transformers, and the heads whose tensors are there."""
        hidden_dim = self.config.hidden_dim  # refuses other models before their heads are read
        if not self.is_sentence_transformers:
            heads = cross_encoder_heads(self.root, self.config_values, self.heads.trained())
            encoders = self._with_prompts((TrainedHead("sentence_encoder", stated=False),))
            return (*heads, *(head for head in encoders if head.uses_adapters))
        if is_sparse_encoder(self.root):
            return sparse_encoder_heads(self.root, self.heads.trained())
        if is_multi_vector_encoder(self.root):
            return multi_vector_heads(self.root, self.heads.trained(), hidden_dim=hidden_dim)
        encoders = self._with_prompts(encoder_heads(self.root, hidden_dim=hidden_dim))
        return (*encoders, *(dataclasses.replace(head, stated=False) for head in self.heads.trained()))

    def lacks(self) -> str:
        """The class in `config.json` whose head the weights lack; CheckpointError if they have one of another kind."""
        return self.heads.lacks()

    def new_head_options(self, task: str) -> dict[str, Any]:
        """The labels of `config.json` for a new head, if it does not state another kind of head."""
        if self.is_sentence_transformers and task == "dual_encoder":  # `encoder_heads` has none
            raise CheckpointError(
                f"{self.root}: the vectors have a dense layer or are cut, which a BertDualEncoder does not have. Load "
                'the task "sentence_encoder", whose `encode_queries` and `encode_documents` are the same.'
            )
        if task == "pretrainer" and not self.family.predicts_pairs:
            title = self.family.title
            raise CheckpointError(f"{self}: {title} predicts no next sentences. Give task='masked_lm', or use a BERT.")
        return self.heads.new_options(task)

    def _decoder_is_embedding(self) -> bool:
        """Whether the weights that a masked language model stores twice are equal."""
        names = self.stored_names(self.weights.infos)
        cells = [row.huggingface for row in (EMBEDDING_ROWS[0], MASKED_LM_ROWS[-1])]
        pairs = [(names.get(cell.name), names.get(str(cell.alias))) for cell in cells if cell is not None]
        read = self.weights.read
        return all(np.array_equal(read(one), read(other)) for one, other in pairs if one and other)

    def table_name(self, name: str) -> str:
        """See `Checkpoint`."""
        return table_name(self.family.names.table_name(name, self._bert_class))

    @cached_property
    def _bert_class(self) -> str:
        """The class of the head, by BERT's name of it: an adapter's, `config.json`'s, or else that of classifiers."""
        adapter = optional_json(self.folder / ADAPTER_CONFIG)
        mapping = adapter.get("auto_mapping")
        own = mapping.get("base_model_class") if isinstance(mapping, dict) else None
        task = _ADAPTER_CLASSES.get(str(adapter.get("task_type")))
        names = stated_names(self.config_values) if (self.folder / "config.json").is_file() else []
        return task or next(
            (self.family.bert_class(name) for name in (own, *names) if isinstance(name, str)), SEQUENCE_CLASS
        )

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """See `Checkpoint`; a pooler that no class of transformers reads stays under a name of its own."""
        names = list(names)
        unread = self.family.names.unread_poolers(names)
        read = super().stored_names(name for name in names if name not in unread)
        return {**read, **{UNREAD + name: name for name in sorted(unread)}}

    def ignored_reason(self, name: str) -> str | None:
        """Heads and buffers may be ignored."""
        return self.family.names.ignored_reason(name) or ignored_reason(name)

    def changes_numbers(self, stored: str) -> bool:
        """See `changes_numbers`."""
        return changes_numbers(stored) or stored.startswith((self.family.names.prefix, self.family.names.block))

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments by the files, with `reference="huggingface"`; the config is not needed either."""
        values = self.config_values if (self.folder / "config.json").is_file() else {}
        options = tokenizer_options(self.folder, self._tokenizer_config, values, default_tokenizer(values))
        return with_prefix_tokens(self.root, options)

    def max_length(self) -> int:
        """The maximum length by the files, or the number of positions; see `stated_max_length`."""
        positions = self.config.max_sequence_length
        return stated_max_length(self.folder, self._tokenizer_config, positions=positions)

    def truncation_side(self) -> str:
        """Where texts that are too long lose tokens, by the tokenizer's files."""
        return truncation_side(self.folder, self._tokenizer_config)

    @cached_property
    def _tokenizer_config(self) -> dict[str, Any]:
        return optional_json(self.folder / "tokenizer_config.json")

    def open_weights(self) -> TensorFile:
        """Opens the checkpoint's tensors; see `find_weights` for which file, if there are several.

        Raises:
            CheckpointError: there is no file of weights, or it is damaged; see the readers in `files`.
        """
        folders = modules.dense_folders(self.root) if self.is_sentence_transformers else {}
        tensors = self._encoder_tensors()
        if not folders:
            return tensors
        layers: list[tuple[str, TensorFile]] = []
        for name, folder in folders.items():
            dense, notes = open_weights(folder, owner=self.owner)
            self.note(*(f"{folder.name}: {note}" for note in notes))
            layers.append((f"{name}.", DenseTensors(dense)))
        return joined_tensors([("", tensors), *layers])

    def _encoder_tensors(self) -> TensorFile:
        """The tensors of the encoder and its head, with the adapter that is beside them."""
        stored, notes = open_weights(self.folder, self.weights_file, owner=self.owner)
        self.note(*notes)
        tensors = self._adapters.base(stored)
        path = self.folder / ADAPTER_CONFIG
        if is_there(path):
            with naming(path):
                values = adapter_values(path)
                warn_of_other_base(path, values)
                adapter = open_adapter(self.folder, owner=self.owner)
                tensors = merged_adapter(path, values, tensors, adapter, self.table_name)
            self.note(f"the LoRA adapter of {ADAPTER_CONFIG} {tensors.changes}")
        self._base = tensors
        if self.adapter is not None:
            tensors = self._adapted(self.adapter)
            self.note(f"the adapter {self.adapter!r} {tensors.changes}")
        elif self.adapters:
            rule = (
                "which the prompts of a sentence encoder choose, or `adapter`; else the weights are those without one"
            )
            self.note(f"the adapters {list(self.adapters)}, {rule}")
        return tensors

    @cached_property
    def _adapters(self) -> NamedAdapters:
        config = self.config_values if is_there(self.folder / "config.json") else {}
        return NamedAdapters(self.folder, config, self.family, owner=self.owner)

    @property
    def adapters(self) -> dict[str, Any]:
        """See `Checkpoint`."""
        return {name: partial(self._adapted, name) for name in self._adapters.names}

    def _adapted(self, name: str) -> AdaptedTensors:
        return self._adapters.merged(name, self._base, self.table_name)

    def _with_prompts(self, heads: tuple[TrainedHead, ...]) -> tuple[TrainedHead, ...]:
        """Encoders of texts whose prompts, or sides, choose an adapter of the same name."""
        if not self.family.adapters or not self.adapters or self.adapter is not None:
            return heads
        path, texts = self.folder / "config.json", self.config_values.get("task_instructions") or {}
        stated = {**check_object(path, "task_instructions", texts), **heads[0].options.get("prompts", {})}
        if not all(isinstance(text, str) for text in stated.values()):
            raise CheckpointError(f"{path}: `task_instructions` must be strings. Received: {shown(texts)}.")
        prompts = {"sentence_encoder": dict.fromkeys(self.adapters, "") | stated}
        prompts["dual_encoder"] = {side: stated[name] for side, name in RETRIEVAL.items() if stated.get(name)}
        return tuple(
            dataclasses.replace(head, options={**head.options, "prompts": prompts[head.name]}, uses_adapters=True)
            for head in heads
        )
