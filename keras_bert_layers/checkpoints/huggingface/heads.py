"""`HuggingFaceHeads`: chooses the task and the trained head of a HuggingFace checkpoint."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint import Doubt, DoubtKind, TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, first_names
from keras_bert_layers.checkpoints.files.json_file import check_fraction, check_one_of
from keras_bert_layers.checkpoints.huggingface.families.family import Family
from keras_bert_layers.checkpoints.huggingface.labels import labels_of, stated_labels
from keras_bert_layers.checkpoints.task_table import TASKS, one_output_heads
from keras_bert_layers.checkpoints.weights.table import (
    MASKED_LM_ROWS,
    NEXT_SENTENCE_CLASSIFIER_ROWS,
    WeightRow,
    head_rows,
    pooler_rows,
    untied,
    with_decoder_bias,
)

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts

_PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")
# The label 0 means that the second text follows the first: transformers, modeling_bert.py,
# BertForNextSentencePrediction; google-research/bert, run_pretraining.py.
NEXT_SENTENCE = TrainedHead(
    "classifier",
    {"class_names": ["is_next", "not_next"], "pairs": True, "dropout": 0.0},
    NEXT_SENTENCE_CLASSIFIER_ROWS,
)
# transformers' classes of a BERT with a head -> our task. The first three have a head named `classifier`, and no tensor
# shows what it classifies.
_CLASSIFIERS = {TASKS[name].huggingface: name for name in ("classifier", "token_classifier", "multiple_choice")}
_OTHERS = {TASKS[name].huggingface: name for name in ("question_answerer", "pretrainer", "masked_lm")}
_NEXT_SENTENCE = "BertForNextSentencePrediction"
_CLASSES = {**_CLASSIFIERS, **_OTHERS, _NEXT_SENTENCE: "classifier"}
# The same head. A decoder's attention has another mask, which the config states and `BertConfig` refuses.
_SAME_HEAD = {"BertLMHeadModel": "BertForMaskedLM"}

# How the names of a task's head begin. A head that begins so and is not the task's own is never replaced silently.
_BEGINNINGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("classifier", "cross_encoder", "multiple_choice", "token_classifier"), ("classifier.",)),
    **dict.fromkeys(("masked_lm", "pretrainer", "sparse_encoder"), ("cls.predictions.", "lm_head.")),
    "question_answerer": ("qa_outputs.",),
}
_LABELS = {"classifier": "class_names", "token_classifier": "tag_names"}
_NAMES_IN_AN_ERROR = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceHeads:
    """The heads of a HuggingFace checkpoint.

    1. The tensors decide which heads there are: `_fits`.
    2. `architectures` in the config decides what they cannot: what a `classifier` classifies, and which of several
       heads is the checkpoint's own. These are first, and `stated`.
    3. Labels, dropout and other options come from the config: `_heads_of`.
    4. A new head takes its labels from the config, and never replaces a stored head silently: `new_options`.

    Args:
        folder: the directory of `config.json`.
        family: its model type.
        config: its content.
        shapes: the tensors' shapes, by their names in the table of weight names.
        stored: the tensors' names in the file.
        activation: the encoder's activation.
        parts: the encoder's parts; None for BERT's own.
        decoder_is_embedding: whether the masked language model's decoder is the token embedding, if both are stored.
    """

    folder: Path
    family: Family
    config: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    stored: Collection[str]
    activation: str
    parts: EncoderParts | None
    decoder_is_embedding: Callable[[], bool]

    @cached_property
    def _values(self) -> dict[str, Any]:
        """The config with the names of BERT."""
        return self.family.bert_values("load_task", self.config)

    @property
    def _path(self) -> Path:
        return self.folder / "config.json"

    @cached_property
    def _stated(self) -> list[str]:
        """The classes with heads that the config names, without the TF or Flax before them."""
        names = self._values.get("architectures") or ()
        plain = [name.removeprefix("TF").removeprefix("Flax") for name in names]
        return [name for name in dict.fromkeys(_SAME_HEAD.get(name, name) for name in plain) if name in _CLASSES]

    def trained(self) -> tuple[TrainedHead, ...]:
        """The tasks whose trained head the tensors hold, those that the config states first.

        Returns:
            The tasks; empty for a bare encoder and for heads of other kinds.

        Raises:
            CheckpointError: transformers has no such `problem_type`.
        """
        classifiers = [name for name in self._stated if name in _CLASSIFIERS] or _CLASSIFIERS
        heads: list[TrainedHead] = []
        for name in dict.fromkeys([*self._stated, *classifiers, *_OTHERS, _NEXT_SENTENCE]):
            if not self.family.refused_head("load_task", name, self.config) and self._fits(name):
                heads += [self._completed(head, is_stated=name in self._stated) for head in self._heads_of(name)]
        return tuple(heads)

    def _fits(self, name: str) -> bool:
        """Whether the head of a class is there, and all that it reads unless the config states the class."""
        task, is_stated = TASKS[_CLASSES[name]], name in self._stated
        if not self._has(NEXT_SENTENCE.rows if name == _NEXT_SENTENCE else head_rows(task.head, self.parts)):
            return False
        if task.huggingface in _CLASSIFIERS and not self.family.names.may_have(task.huggingface, self.stored):
            return False
        if name == _NEXT_SENTENCE and not is_stated and self._has(MASKED_LM_ROWS):
            return False  # a pretrained model's, which nobody means by a classifier
        number = self._classifier_outputs
        if name in _CLASSIFIERS and (number is None or (task.name == "multiple_choice" and number != 1)):
            return False
        if task.name == "token_classifier":
            return is_stated or number != 1
        return is_stated or not task.pooled or self._has(pooler_rows(self.parts))

    def _has(self, rows: tuple[WeightRow, ...]) -> bool:
        """Whether every row has its tensor."""
        cells = [row.huggingface for row in rows]
        return all(cell is not None and (cell.name in self.shapes or cell.alias in self.shapes) for cell in cells)

    @property
    def _classifier_outputs(self) -> int | None:
        """The number of outputs of `classifier`; None if it is not a dense layer on the encoder's outputs."""
        weight, bias = self.shapes.get("classifier.weight", ()), self.shapes.get("classifier.bias", ())
        width = self.shapes.get("encoder.layer.0.attention.output.dense.weight", (0, 0))[-1]
        return weight[0] if len(weight) == 2 and weight[1] == width and bias == weight[:1] else None

    def _heads_of(self, name: str) -> tuple[TrainedHead, ...]:
        """The tasks that the head of a class of transformers serves."""
        if name == _NEXT_SENTENCE:
            return (NEXT_SENTENCE,)
        task = TASKS[_CLASSES[name]]
        match task.name:
            case "classifier":
                return self._sequence_classification()
            case "token_classifier":
                tags, doubts = labels_of(self._values, self.shapes["classifier.weight"][0], self._path)
                if any(name.startswith("crf.") for name in self.shapes):
                    text = f"{self.folder}: the conditional random field `crf` is not read; tags are of logits alone."
                    doubts.append(Doubt(DoubtKind.OUTPUTS, text))
                head = task.trained(tag_names=tags, **self._dropout)
                return (dataclasses.replace(head, doubts=tuple(doubts)),)
            case "multiple_choice":
                return (task.trained(**self._dropout),)
            case "masked_lm" | "pretrainer":
                tied = self._is_tied()
                rows = with_decoder_bias(task.head) if tied else untied(task.head)
                return (dataclasses.replace(task.trained(**({} if tied else {"tie_weights": False})), rows=rows),)
        return (task.trained(),)

    def _is_tied(self) -> bool:
        """Whether a masked language model's decoder is the token embedding."""
        both = {"cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"} <= self.shapes.keys()
        # transformers does not tie two matrices that differ, whatever the config states: `tie_weights` in
        # modeling_utils.py.
        may_be_tied = self._values.get("tie_word_embeddings", True) is not False
        return may_be_tied and (not both or self.decoder_is_embedding())

    def _sequence_classification(self) -> tuple[TrainedHead, ...]:
        number = self.shapes["classifier.weight"][0]
        problem = self._values.get("problem_type") or _PROBLEMS[0]
        check_one_of(self._path, "problem_type", problem, _PROBLEMS)
        if number == 1:
            tasks = one_output_heads(**self._dropout)
            if problem == _PROBLEMS[1]:
                text = (
                    f"{self._path}: `problem_type` is {problem}, of one label: the score of a regression is its logit."
                )
                doubt = Doubt(DoubtKind.OUTPUTS, text)
                tasks = (dataclasses.replace(tasks[0], doubts=(doubt,)), tasks[1])
            # sentence-transformers' CrossEncoder writes this key.
            return tasks[::-1] if "sentence_transformers" in self._values else tasks
        labels, doubts = labels_of(self._values, number, self._path)
        options = {"num_classes": number, "class_names": labels, "problem_type": problem, **self._dropout}
        return (dataclasses.replace(TASKS["classifier"].trained(**options), doubts=tuple(doubts)),)

    @property
    def _dropout(self) -> dict[str, Any]:
        """The head's own rate. Without one, the task uses the encoder's, like transformers."""
        rate = self._values.get("classifier_dropout")
        return {} if rate is None else {"dropout": check_fraction(self._path, "classifier_dropout", rate)}

    def _completed(self, head: TrainedHead, *, is_stated: bool) -> TrainedHead:
        """The head with the options in which its model type differs from BERT."""
        own = self.family.head_options(head.name, self.config, self.activation)
        rows = head_rows(head.rows, self.parts)
        return dataclasses.replace(head, options={**head.options, **own}, rows=rows, stated=is_stated)

    def lacks(self) -> str:
        """The class in the config whose head the tensors lack, as the end of a sentence; "" if there is none.

        Raises:
            CheckpointError: there is a head of another kind.
        """
        if not self._stated:
            return ""
        self._check_stored(_CLASSES[self._stated[0]])
        return f": its config names {self._stated[0]}, whose head the weights lack"

    def new_options(self, task: str) -> dict[str, Any]:
        """The arguments of a new head by the config: its labels.

        Args:
            task: the task, of which the checkpoint has no trained head.

        Returns:
            `class_names` or `tag_names`; nothing if the config states none, or another kind of head.

        Raises:
            CheckpointError: the tensors are a head of this kind that cannot be read: of several layers, on other
                inputs, or incomplete.
        """
        row = TASKS[task]
        if self._is_of_another(task):
            return {}
        if not self._check_stored(task) and row.head and row.huggingface in self._stated:
            warnings.warn(
                f"{self.folder}: the config's `architectures` names {row.huggingface}, and the weights hold no such "
                "head. The head is new and has to be trained.",
                stacklevel=4,
            )
        labels = stated_labels(self._values) if task in _LABELS else None
        return {} if labels is None else {_LABELS[task]: labels}

    def _is_of_another(self, task: str) -> bool:
        """Whether the config states that the tensor `classifier` is of another task."""
        if TASKS[task].huggingface not in _CLASSIFIERS or TASKS[task].huggingface in self._stated:
            return False
        return any(name in _CLASSIFIERS for name in self._stated)

    def _check_stored(self, task: str) -> bool:
        """Refuses to put a new head in place of a stored one, unless that one is complete and is for something else.

        Returns:
            Whether there are tensors with the names of such a head.

        Raises:
            CheckpointError: see `new_options`.
        """
        row = TASKS[task]
        names = [name for name in self.shapes if name.startswith(_BEGINNINGS.get(task, ()))]
        if not names or self._is_of_another(task):
            return False
        found = f"{self.folder}: the weights hold a head that is not a {row.class_name}'s: " + first_names(
            [f"{name} {self.shapes[name]}" for name in names], _NAMES_IN_AN_ERROR
        )
        cure = f"To train a new head instead: `{row.class_name}(load_backbone(source), ...)`."
        if refused := self.family.refused_head("load_task", row.huggingface or "", self.config):
            raise CheckpointError(f"{found}. {refused} {cure}")
        is_classifier = row.huggingface in _CLASSIFIERS
        if is_classifier and self._classifier_outputs is not None and len(names) == 2:
            if row.pooled and not self._has(pooler_rows(self.parts)):
                raise CheckpointError(
                    f"{found}. It would read the pooled output, and the weights lack the pooler. {cure}"
                )
            return True
        missing = [
            str(part.huggingface.name)
            for part in head_rows(row.head, self.parts)
            if part.huggingface and not self._has((part,))
        ]
        if not is_classifier and missing:
            raise CheckpointError(f"{found}. It lacks {', '.join(missing)}. {cure}")
        raise CheckpointError(f"{found}. {self._in_keras(row.pooled, names)} {cure}")

    def _in_keras(self, is_pooled: bool, names: list[str]) -> str:
        """How to add the stored dense layers in Keras."""
        layers = [self.shapes[name][0] for name in names if len(self.shapes[name]) == 2]
        dense = [f'keras.layers.Dense({width}, activation="tanh")' for width in layers[:-1]]
        dense += [f"keras.layers.Dense({width})" for width in layers[-1:]]
        inputs = 'backbone.output["sequence_output"]'
        if is_pooled:
            inputs = 'backbone.output["pooled_output"]' if self._has(pooler_rows(self.parts)) else f"{inputs}[:, 0]"
        return (
            f"Add it in Keras: `backbone = load_backbone(source)` and `keras.Model(backbone.input, keras.Sequential(["
            f"{', '.join(dense)}])({inputs}))`, with the activations that it was trained with, which no file states, "
            "and with these tensors as its weights, kernels transposed."
        )
