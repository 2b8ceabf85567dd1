"""`Family`: a model type of transformers, as its differences from BERT in keys, classes, tensor names and parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tensor_views import JoinedTensors, PiecesOfTensors
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts

SEQUENCE_CLASS = "BertForSequenceClassification"
CHOICE_CLASS = "BertForMultipleChoice"
ROBERTA_HEADS: dict[str, Any] = {
    "tensors": {
        "lm_head.dense.": "cls.predictions.transform.dense.",
        "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
        "lm_head.bias": "cls.predictions.bias",
        "lm_head.decoder.": "cls.predictions.decoder.",
    },
    "class_tensors": {SEQUENCE_CLASS: {"classifier.dense.": "pooler.dense.", "classifier.out_proj.": "classifier."}},
}
"""Arguments of `TensorNames` for RoBERTa's heads, which other families took over."""
BARE_CLASS = "BertModel"
READER = "config_from_huggingface"
"""The public function that errors about a `config.json` name."""
UNREAD = "unread."
"""What a name begins with if it is of a tensor that no class of transformers reads; see `unread_poolers`."""

_ENCODER, _BLOCK = "encoder.", "encoder.layer."
_BIAS = "cls.predictions.bias"
_DECODER_BIAS = "cls.predictions.decoder.bias"

_LENGTH = "max_position_embeddings"
# Far above the 8,192 of the released models.
_MOST_POSITIONS = 2**20


def _empty() -> Any:
    return dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorNames:
    """The names of tensors, as differences from transformers' BERT; the defaults are BERT's.

    Args:
        prefix: prefix of the encoder's tensors in classes with a head.
        block: beginning of the names of the blocks' tensors, before the index of the block.
        block_tensors: beginning of a name in a block -> BERT's.
        tensors: beginning of another tensor's name -> BERT's.
        class_tensors: the same of one class, by the name of BERT's class.
        is_by_class: whether a name in a head is of another weight in each class.
        has_one_bias: whether the masked language model's bias has one name, where BERT has a second for the decoder's.
        ignored: beginning of a tensor's name -> why it may be ignored.
        in_files: part of a name in files -> what transformers' modules have in its place; both are read.
        merged: part of a name in files, after that, of a tensor that is several of the modules', in this order.
        prefix_in_files: a prefix that older files have in place of `prefix`.
    """

    prefix: str = "bert."
    block: str = _BLOCK
    block_tensors: Mapping[str, str] = _empty()
    tensors: Mapping[str, str] = _empty()
    class_tensors: Mapping[str, Mapping[str, str]] = _empty()
    is_by_class: bool = False
    has_one_bias: bool = False
    ignored: Mapping[str, str] = _empty()
    in_files: Mapping[str, str] = _empty()
    merged: Mapping[str, tuple[str, ...]] = _empty()
    prefix_in_files: str = ""

    def table_name(self, name: str, bert_class: str | None = None) -> str:
        """BERT's name, without a prefix, for the name of a tensor in a file.

        Args:
            name: the name in the file.
            bert_class: the file's class, by the name of BERT's, which counts if the names are by class.

        Examples:
            >>> TensorNames(prefix="electra.").table_name("electra.encoder.layer.0.output.dense.bias")
            'encoder.layer.0.output.dense.bias'
        """
        name = name.removeprefix(self.prefix)
        if name.startswith(self.block):
            index, _, rest = name.removeprefix(self.block).partition(".")
            return f"{_BLOCK}{index}.{_renamed(rest, self.block_tensors)}"
        renames = dict(self.tensors)
        for name_of_class, more in self.class_tensors.items():
            if not self.is_by_class or name_of_class == bert_class:
                renames |= more
        return _renamed(name, renames)

    def of_modules(self, tensors: TensorFile) -> TensorFile:
        """The tensors of a file by the names of transformers' modules, which differ for `in_files` and `merged`."""
        if not (self.in_files or self.merged):
            return tensors
        pieces: dict[str, tuple[str, int, int]] = {}
        for stored, info in tensors.infos.items():
            name = _replaced(stored.removeprefix(self.prefix_in_files), self.in_files)
            part = next((part for part in self.merged if part in name), "")
            own = self.merged.get(part, (part,))
            if not info.shape or info.shape[0] % len(own):
                own = (part,)  # a tensor of another shape, which is refused under its own name
            pieces |= {name.replace(part, to, 1): (stored, index, len(own)) for index, to in enumerate(own)}
        return PiecesOfTensors(tensors, pieces)

    def of_files(self, tensors: TensorFile) -> TensorFile:
        """The inverse of `of_modules`, for tensors to write."""
        if not (self.in_files or self.merged):
            return tensors
        whole = {to: (part, index) for part, own in self.merged.items() for index, to in enumerate(own)}
        joined: dict[str, dict[int, str]] = {}
        for name in tensors.infos:
            to = next((to for to in whole if to in name), "")
            part, index = whole.get(to, ("", 0))
            stored = _replaced(name.replace(to, part, 1), _inverse(self.in_files))
            joined.setdefault(stored, {})[index] = name
        return JoinedTensors(tensors, {name: [own[index] for index in sorted(own)] for name, own in joined.items()})

    def unread_poolers(self, names: Collection[str]) -> set[str]:
        """The tensors of the encoder's pooler, if a head has a layer in its place: no class reads both."""
        poolers = {name for name in names if self.table_name(name).startswith("pooler.")}
        own = {name for name in poolers if name.removeprefix(self.prefix).startswith("pooler.")}
        return own if poolers > own else set()

    def may_have(self, bert_class: str, names: Iterable[str]) -> bool:
        """Whether tensors may be of a class with a `classifier`, by the names that only such classes have.

        Args:
            bert_class: the name of BERT's class.
            names: the tensors' names in the file.
        """
        if self.is_by_class:
            return True
        beginnings = {beginning for renames in self.class_tensors.values() for beginning in renames}
        found = {beginning for beginning in beginnings for name in names if name.startswith(beginning)}
        return found == set(self.class_tensors.get(bert_class, ()))

    def ignored_reason(self, name: str) -> str | None:
        """Why a tensor that only this family has may be ignored, by its name in the table; None if it may not."""
        if name.startswith(UNREAD):
            return "the encoder's pooler, which the head does not read"
        return next((reason for beginning, reason in self.ignored.items() if name.startswith(beginning)), None)

    def file_name(self, name: str, bert_class: str) -> str:
        """The name in a file of a class, given by the name of BERT's, for a name of the table.

        Examples:
            >>> TensorNames().file_name("pooler.dense.bias", "BertForMultipleChoice")
            'bert.pooler.dense.bias'
        """
        if name.startswith(_BLOCK):
            index, _, rest = name.removeprefix(_BLOCK).partition(".")
            own = f"{self.block}{index}.{_renamed(rest, _inverse(self.block_tensors))}"
        else:
            renames = _inverse({**self.tensors, **self.class_tensors.get(bert_class, {})})
            # Only BERT and RoBERTa have the bias of a decoder that is not tied under a second name.
            own = _renamed(
                name, {_DECODER_BIAS: renames.get(_BIAS, _BIAS), **renames} if self.has_one_bias else renames
            )
        is_head = not (name.startswith(("embeddings", _ENCODER)) or own.startswith("pooler."))
        is_head = is_head or own.startswith(tuple(self.class_tensors.get(bert_class, ())))
        return own if is_head or bert_class == BARE_CLASS else self.prefix + own


def _renamed(name: str, renames: Mapping[str, str]) -> str:
    """The name with another beginning, if one of them is its own."""
    for old, new in renames.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def _replaced(name: str, parts: Mapping[str, str]) -> str:
    """The name with others in place of parts of it, wherever they stand."""
    for old, new in parts.items():
        name = name.replace(old, new, 1)
    return name


def _inverse(renames: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in renames.items()}


class PartsForm:
    """How a model type's `config.json` states the parts of the encoder; this one is BERT's, which are never stated."""

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        """The parts by the content of a `config.json`; None for BERT's own."""
        return None

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        """The keys of `config.json` that state these parts; None if the model type has no such parts."""
        return {} if parts.are_of_bert else None


def described(part: object) -> Any:
    """What parts compute with, to compare them: their configs without names, dtypes and initial values."""
    config = {field: getattr(part, field) for field in getattr(part, "__dataclass_fields__", ())}
    if not config and hasattr(part, "get_config"):
        given = part.get_config().keys() - {"name", "dtype", "trainable", "initializer_range", "max_sequence_length"}
        config = {"kind": type(part).__name__, **{name: getattr(part, name) for name in given}}
    return {name: described(value) for name, value in config.items()} if config else part


@dataclasses.dataclass(frozen=True, kw_only=True)
class Family:
    """A model type of transformers, as its differences from transformers' BERT; the defaults are BERT's.

    Each family has a file of its own beside this one, and its place in `table.FAMILIES`; none imports another.

    A reader converts the content of `config.json` and the names of tensors to BERT's, and then reads a BERT; a writer
    converts them back.

    Args:
        title: the name in errors.
        model_types: values of `model_type`; the first is written.
        class_prefixes: beginnings of the names of the classes; the first is written.
        other_classes: classes whose head is not that of BERT's class of the same name.
        names: the names of the tensors.
        keys: key of `config.json` -> BERT's key.
        constants: key of BERT that these files do not have -> its value.
        unread: other keys that change nothing.
        only: key that is read with these values only; the first is written.
        head_only: name of BERT's class with a head, or "" for all of them -> the same for the keys of that head.
        has_pooler: whether the bare encoder has a pooler.
        has_projection: whether the embedding may be narrower than the hidden states.
        may_lack_segments: whether there are encoders without segments, which state that they have 0.
        predicts_pairs: whether the pretrained model has a head on pairs of texts, as BERT's next sentences.
        pooler_activation: activation of the pooler, or of the layer in its place in heads.
        pooler_key: the key of the pooler's activation; "" where it is always `pooler_activation`.
        masked_lm_activation: activation of the masked language model's head; None for the encoder's own.
        dropouts: task -> key and default of its head's dropout rate; None for the encoder's rate. Other tasks have
            BERT's `classifier_dropout`.
        counts_padding: whether positions begin after the id of padding, as in RoBERTa.
        pad_id: the id of padding that is written for a model without a tokenizer.
        token_ids: a key of the config for the id of a token -> the token's role.
        tokenizer_class: the class of transformers that reads the WordPiece files that are written.
        adapters: the names of the adapters, of which a prompt of the same name chooses one.
        default_tokenizers: `model_type` -> the class that `AutoTokenizer` of transformers 5 takes where no file names
            one.
        parts: how `config.json` states the parts that are not BERT's.
        todays: what makes the content of a `config.json` of today's form of one of an older form.
    """

    title: str = "BERT"
    model_types: tuple[str, ...] = ("bert",)
    class_prefixes: tuple[str, ...] = ("Bert",)
    other_classes: frozenset[str] = frozenset()
    names: TensorNames = dataclasses.field(default_factory=TensorNames)
    keys: Mapping[str, str] = _empty()
    constants: Mapping[str, Any] = _empty()
    unread: frozenset[str] = frozenset()
    only: Mapping[str, tuple[Any, ...]] = _empty()
    head_only: Mapping[str, Mapping[str, tuple[Any, ...]]] = _empty()
    has_pooler: bool = True
    has_projection: bool = False
    may_lack_segments: bool = False
    predicts_pairs: bool = False
    pooler_activation: str = "tanh"
    pooler_key: str = ""
    masked_lm_activation: str | None = None
    dropouts: Mapping[str, tuple[str, float | None] | None] = _empty()
    counts_padding: bool = False
    pad_id: int = 0
    token_ids: Mapping[str, str] = _empty()
    tokenizer_class: str = "BertTokenizer"
    adapters: tuple[str, ...] = ()
    default_tokenizers: Mapping[str, str] = _empty()
    parts: PartsForm = dataclasses.field(default_factory=PartsForm)
    todays: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict

    def bert_class(self, name: str) -> str:
        """The name of BERT's class for one of the family's; any other name stays.

        Examples:
            >>> Family(class_prefixes=("Electra",)).bert_class("ElectraForMaskedLM")
            'BertForMaskedLM'
        """
        plain = name.removeprefix("TF").removeprefix("Flax")
        for prefix in self.class_prefixes:
            if plain.startswith((f"{prefix}For", f"{prefix}Model")) and plain not in self.other_classes:
                return "Bert" + plain.removeprefix(prefix)
        return name

    def own_class(self, bert_class: str) -> str:
        """The name of the family's class for one of BERT's."""
        return self.class_prefixes[0] + bert_class.removeprefix("Bert")

    def bert_values(self, owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The content of a `config.json` of the family with BERT's keys and classes; unknown keys stay.

        Args:
            owner: the public function that was called, for errors.
            values: the content of the file.

        Raises:
            ValueError: a key is missing, or has a value that is not implemented.
        """
        values = self.todays(values)
        stated = stated_names(values)
        keys.check_only(owner, values, self.only)
        read = values.keys() - self.unread
        required = (key for key, name in self.keys.items() if not name.endswith("_prob") and name not in read)
        keys.check_present(owner, values, list(required))
        skipped = {*self.unread, *self.only, *self._head_keys, *self.constants, *self._dropout_keys, self.pooler_key}
        result = {self.keys.get(key, key): value for key, value in values.items() if key not in skipped}
        if stated:
            result["architectures"] = [self.bert_class(name) for name in stated]
        if isinstance(result.get(_LENGTH), int):
            result[_LENGTH] -= self.position_offset(owner, values)
        return {**result, **self.constants, "model_type": "bert"}

    def own_values(self, owner: str, values: Mapping[str, Any], config: BertConfig) -> dict[str, Any]:
        """The encoder's keys of a `config.json` of the family.

        Args:
            owner: the public function that was called, for errors.
            values: the same with BERT's keys.
            config: the encoder's config.

        Raises:
            ValueError: the family has no such model.
        """
        self._check(owner, config)
        own = {name: key for key, name in self.keys.items()}
        result = {own.get(key, key): value for key, value in values.items() if key not in self.constants}
        if self.has_projection:
            result["embedding_size"] = config.embedding_dim or config.hidden_dim
        else:
            del result["embedding_size"]
        if self.counts_padding:
            result |= {_LENGTH: values[_LENGTH] + config.position_offset, "pad_token_id": config.position_offset - 1}
        result |= {key: allowed[0] for key, allowed in {**self.only, **self._head_keys}.items()}
        return {"model_type": self.model_types[0], **result}

    def _check(self, owner: str, config: BertConfig) -> None:
        """ValueError for a config that the family's `config.json` cannot express."""
        cure = f"transformers' {self.title} has no other. Save a `.keras` file."
        rules: dict[str, tuple[Any, Any]] = {}
        if not self.pooler_key:
            rules["pooler_activation"] = self.pooler_activation, config.pooler_activation
        if "layer_norm_eps" in self.constants:
            rules["layer_norm_epsilon"] = self.constants["layer_norm_eps"], config.layer_norm_epsilon
        if not self.has_projection:
            rules["embedding_dim"] = None, config.embedding_dim
        for name, (expected, value) in rules.items():
            if value != expected:
                rule = f"be {expected!r} for HuggingFace's {self.title}"
                raise ValueError(checks.message(owner, name, rule, value, cure))
        if not (config.num_segments or self.may_lack_segments or "type_vocab_size" in self.constants):
            rule = f"be at least 1 for HuggingFace's {self.title}"
            raise ValueError(checks.message(owner, "num_segments", rule, config.num_segments, cure))

    def position_offset(self, owner: str, values: Mapping[str, Any]) -> int:
        """The position of the first token: 0, or in a family that counts padding the number after its id."""
        if not self.counts_padding:
            return 0
        return checks.whole_number(owner, "pad_token_id", values.get("pad_token_id", 1)) + 1

    def head_options(self, task: str, values: Mapping[str, Any], activation: str) -> dict[str, Any]:
        """The options of a task with the trained head, where they are not those of a BERT.

        Args:
            task: the task's name.
            values: the content of the family's `config.json`.
            activation: the encoder's activation.
        """
        if task == "masked_lm" and self.masked_lm_activation not in (None, activation):
            return {"head_activation": self.masked_lm_activation}
        rate = self.dropouts.get(task)
        if rate is not None:
            return {"dropout": values.get(*rate)}
        return {"dropout": None} if task in self.dropouts else {}

    def head_values(self, task: str, values: Mapping[str, Any], encoder_rate: float) -> dict[str, Any]:
        """The head's keys of a `config.json` of the family, for those of a BERT; the inverse of `head_options`.

        A key of the family's own has no value for the encoder's dropout rate, so that the rate is written.
        """
        if task not in self.dropouts:
            return dict(values)
        rate = self.dropouts[task]
        others = {key: value for key, value in values.items() if key != "classifier_dropout"}
        given = values["classifier_dropout"]
        return others if rate is None else {**others, rate[0]: encoder_rate if given is None else given}

    def refused_head(self, owner: str, bert_class: str, values: Mapping[str, Any]) -> str:
        """Why the head of one of BERT's classes cannot be read, by the keys of the family; "" if it can."""
        try:
            for name in ("", bert_class):
                keys.check_only(owner, values, self.head_only.get(name, {}))
        except ValueError as error:
            return str(error)
        return ""

    @property
    def _head_keys(self) -> dict[str, tuple[Any, ...]]:
        return {key: allowed for rules in self.head_only.values() for key, allowed in rules.items()}

    @property
    def _dropout_keys(self) -> set[str]:
        return {rate[0] for rate in self.dropouts.values() if rate is not None}


def check_positions(key: str, number: Any) -> None:
    """ValueError for too many rotary positions: no tensor has them, so that its shape would refuse the number.

    What is no integer is left to the check of the whole config.
    """
    if isinstance(number, int) and number > _MOST_POSITIONS:
        raise ValueError(checks.message(READER, key, f"be at most {_MOST_POSITIONS}", number))


def stated_names(values: Mapping[str, Any]) -> list[str]:
    """The classes that a `config.json` names.

    Examples:
        >>> stated_names({"architectures": ["BertModel"]}), stated_names({"architectures": None})
        (['BertModel'], [])
    """
    names = values.get("architectures") or ()
    return [names] if isinstance(names, str) else [str(name) for name in names]


BERT = Family(predicts_pairs=True, default_tokenizers={"bert": "BertTokenizer"})
