"""`Checkpoint`: the base class of a stored model, with a subclass per dialect."""

from __future__ import annotations

import abc
import dataclasses
import enum
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, missing, naming
from keras_bert_layers.checkpoints.files.metadata import Metadata
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.weights.table import Layout, WeightRow
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts
    from keras_bert_layers.preprocessing import BertTokenizer, BytePairTokenizer, SentencePieceTokenizer


class DoubtKind(enum.Enum):
    """What a doubt is about.

    - `LABELS`: the names of classes or tags.
    - `OUTPUTS`: what the outputs mean, where a setting or a layer of the checkpoint is not read.
    - `PROMPTS`: the texts before queries and documents.
    """

    LABELS = "labels"
    OUTPUTS = "outputs"
    PROMPTS = "prompts"


@dataclasses.dataclass(frozen=True)
class Doubt:
    """What a checkpoint's files leave unclear about a head.

    Args:
        kind: what it is about, by which code decides whether it matters.
        text: the sentence for the warning and the report.
    """

    kind: DoubtKind
    text: str


@dataclasses.dataclass(frozen=True)
class TrainedHead:
    """A task whose trained head a checkpoint holds.

    Args:
        name: the `task` of `load_task`.
        options: the arguments of the task's class besides the backbone and the preprocessor.
        rows: the head's rows in the table of weight names; empty for a task without weights of its own.
        uses_adapters: whether the backbone has all adapters of the checkpoint.
        stated: whether the files state that this is the checkpoint's task; False where only the weights fit it.
        doubts: what the files leave unclear about the head.
    """

    name: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    rows: tuple[WeightRow, ...] = ()
    uses_adapters: bool = False
    stated: bool = True
    doubts: tuple[Doubt, ...] = ()


class Checkpoint(abc.ABC):
    """A checkpoint of any dialect. `str(checkpoint)` is its name in errors and reports.

    Files are read when they are needed. All methods raise `CheckpointError` for files that are missing or damaged, or
    that need something that is not implemented here.

    Args:
        source: an existing directory.
        owner: the public function that was called, for errors.
        weights_file: the file in it that holds the weights, or for TensorFlow's checkpoints the files' prefix; None
            for the dialect's own choice.
    """

    layout: Layout

    def __init__(self, source: Path, *, owner: str, weights_file: str | None = None):
        self.owner = owner
        self.root = source
        self.weights_file = weights_file
        #: The adapter that is added to the weights, one of `adapters`; None for the base's own.
        self.adapter: str | None = None
        self._notes: dict[str, None] = {}

    @property
    def adapters(self) -> Mapping[str, Callable[[], Any]]:
        """The adapters of which one may be chosen: name -> what gives the tensors with it, once `weights` are open."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen or changed while reading, for the report."""
        return tuple(self._notes)

    def note(self, *lines: str) -> None:
        """Adds lines to the notes; the same line only once, as files may be opened again."""
        self._notes.update(dict.fromkeys(lines))

    def __str__(self) -> str:
        return str(self.root)

    def existing(self, folder: Path, name: str, cure: str) -> Path:
        """The path of a file in a folder; CheckpointError, with the cure, if there is no such file."""
        if not (folder / name).is_file():
            raise missing(folder, name, cure, owner=self.owner)
        return folder / name

    @property
    @abc.abstractmethod
    def config(self) -> BertConfig:
        """The encoder's config; every key of the file is honoured or refused."""

    @property
    def parts(self) -> EncoderParts | None:
        """The parts of the encoder that are not BERT's; None where all are."""
        return None

    @abc.abstractmethod
    def open_weights(self) -> TensorFile:
        """Opens and checks the tensors, by their names in the file, without reading their values."""

    @cached_property
    def weights(self) -> TensorFile:
        """What `open_weights` returned at the first use."""
        return self.open_weights()

    def table_name(self, name: str) -> str:
        """The name of a stored tensor in the table of weight names; the same by default."""
        return name

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """The table's name -> the file's name, for every tensor of the file, in the file's order."""
        stored: dict[str, str] = {}
        for name in names:
            known = self.table_name(name)
            if known in stored:
                raise CheckpointError(f"{self}: the tensors {stored[known]!r} and {name!r} are the same weight.")
            stored[known] = name
        return stored

    @abc.abstractmethod
    def ignored_reason(self, name: str) -> str | None:
        """Why a tensor without a row may be ignored, by its name in the table; None if it may not."""

    def changes_numbers(self, stored: str) -> bool:
        """Whether an unknown tensor of the file could change what the encoder computes, so that it is an error."""
        return True

    def ignored_keys(self) -> dict[str, str]:
        """The config's keys that are not read, and why; without those that every checkpoint of the layout has."""
        return {}

    @abc.abstractmethod
    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments of the tokenizer, of which `scores` or `merges` name the class. The weights are not needed."""

    def tokenizer(self) -> BertTokenizer | SentencePieceTokenizer | BytePairTokenizer:
        """The tokenizer of the files."""
        from keras_bert_layers.preprocessing import BertTokenizer, BytePairTokenizer, SentencePieceTokenizer

        with naming(self):
            options = self.tokenizer_options()
            if "merges" in options:
                return BytePairTokenizer(**options)
            return SentencePieceTokenizer(**options) if "scores" in options else BertTokenizer(**options)

    @abc.abstractmethod
    def max_length(self) -> int:
        """The maximum length of texts in tokens, special tokens included."""

    def truncation_side(self) -> str:
        """Where texts that are too long lose tokens: `"right"` or `"left"`."""
        return "right"

    @abc.abstractmethod
    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """Every task that the trained heads can serve, the checkpoint's own first; empty without a head."""

    def lacks(self) -> str:
        """The head that the files name and the weights lack, as the end of a sentence; "" if there is none."""
        return ""

    def new_head_options(self, task: str) -> dict[str, Any]:
        """What the files state about a new head, such as its classes, where they hold no trained head of this task.

        Raises:
            CheckpointError: the files hold a head of this kind, which cannot be read.
        """
        return {}


def plain_name(name: str) -> str:
    """The name of an adapter as folders have it.

    Examples:
        >>> plain_name("retrieval.query"), plain_name("text-matching")
        ('retrieval_query', 'text_matching')
    """
    return re.sub(r"[^0-9A-Za-z]", "_", name)


def by_metadata(
    heads: tuple[TrainedHead, ...], metadata: Metadata | None, disagreement: CheckpointError
) -> tuple[TrainedHead, ...]:
    """The heads with the metadata's task first, and with the options of the metadata.

    Args:
        heads: the heads by the other files.
        metadata: the metadata; None if there is none.
        disagreement: the error if no head is of the metadata's task.
    """
    if metadata is None or metadata.task is None:
        return heads
    same = next((head for head in heads if head.name == metadata.task), None)
    if same is None:
        raise disagreement
    first = dataclasses.replace(same, options={**same.options, **metadata.options})
    return (first, *(head for head in heads if head is not same))


def check_plain_bert(owner: str, config: BertConfig, dialect: str) -> None:
    """ValueError for the fields in which BERT's relatives differ.

    Args:
        owner: the public function that was called.
        config: the encoder's config.
        dialect: whose BERT it is, for the error.
    """
    cure = "This is a relative of BERT: save it in HuggingFace's layout, or a `.keras` file."
    for name, is_plain, rule in (
        ("num_segments", config.num_segments > 0, "be at least 1"),
        ("position_offset", config.position_offset == 0, "be 0"),
        ("pooler_activation", config.pooler_activation == "tanh", "be 'tanh'"),
    ):
        if not is_plain:
            raise ValueError(checks.message(owner, name, f"{rule} for {dialect}", getattr(config, name), cure))
