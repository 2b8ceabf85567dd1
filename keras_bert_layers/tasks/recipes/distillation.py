"""`distill`: a small task learns from a large one, from raw text, by Keras's own `Distiller`."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers._internal.types import Labels, Outputs, Rows, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export.text_task import refuse_columns
from keras_bert_layers.layers.self_attention import SelfAttention
from keras_bert_layers.optimizers import adamw
from keras_bert_layers.preprocessing.tokenizer import Tokenizer
from keras_bert_layers.tasks.classifier import BertClassifier
from keras_bert_layers.tasks.cross_encoder import BertCrossEncoder
from keras_bert_layers.tasks.feeding.columns import check_takes_text
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder
from keras_bert_layers.tasks.feeding.keras_batches import for_keras
from keras_bert_layers.tasks.graphs.hidden_states import checked_layers
from keras_bert_layers.tasks.graphs.hidden_states import hidden_states as states_of
from keras_bert_layers.tasks.sentence_encoder import BertSentenceEncoder
from keras_bert_layers.tasks.task import Task

_OWNER = "distill"
# What both models return while the student trains, in this order, as far as it is compared; Keras tracks the losses of
# a dictionary, and then takes it for another structure.
_OUTPUTS, _MASK, _FIRST_FEATURE = range(3)

# Options of tokenizers that ids do not depend on, and those that the ids of most texts depend on.
_NOT_IN_IDS = ("vocabulary", "name", "dtype", "trainable", "trim_offsets", "word_boundaries")
_IN_MOST_IDS = ("class", "lowercase", "strip_accents")

Layers = Mapping[int, int]


class MaskedStates(keras.distillation.DistillationLoss):
    """The mean squared difference of hidden states `[B, layers, S, H]`, the output `index`, over real tokens."""

    def __init__(self, index: int):
        self.index = index

    def compute_loss(self, teacher_outputs: Tensor, student_outputs: Tensor, **_: Any) -> Any:
        """The loss, a scalar."""
        difference = teacher_outputs[self.index] - student_outputs[self.index]
        return _mean(ops.mean(ops.square(difference), axis=(1, 3)), teacher_outputs[_MASK])


class MaskedRelations(MaskedStates):
    """The divergence of relations `[B, layers, 3, heads, S, S]`, logarithms of probabilities, over real tokens."""

    def compute_loss(self, teacher_outputs: Tensor, student_outputs: Tensor, **_: Any) -> Any:
        """The loss, a scalar."""
        teacher = teacher_outputs[self.index]
        divergence = ops.sum(ops.exp(teacher) * (teacher - student_outputs[self.index]), axis=-1)
        return _mean(ops.mean(divergence, axis=(1, 2, 3)), teacher_outputs[_MASK])


class SoftLabels(keras.distillation.DistillationLoss):
    """The divergence of softened probabilities, or the squared difference of numbers and vectors."""

    def __init__(self, temperature: float, problem_type: str):
        self.temperature, self.problem_type = temperature, problem_type

    def compute_loss(self, teacher_outputs: Tensor, student_outputs: Tensor, **_: Any) -> Any:
        """The loss, a scalar."""
        teacher, student = teacher_outputs[_OUTPUTS], student_outputs[_OUTPUTS]
        if self.problem_type == "regression":
            return ops.mean(ops.square(teacher - student))
        teacher, student = teacher / self.temperature, student / self.temperature
        if self.problem_type == "single_label_classification":
            log_ratio = ops.log_softmax(teacher, axis=-1) - ops.log_softmax(student, axis=-1)
            return self.temperature**2 * ops.mean(ops.sum(ops.softmax(teacher, axis=-1) * log_ratio, axis=-1))
        entropy = ops.binary_crossentropy(ops.sigmoid(teacher), student, from_logits=True)
        return self.temperature**2 * ops.mean(entropy)


def distill(
    teacher: Task,
    student: Task,
    x: Rows,
    y: Labels | None = None,
    *,
    hidden_states: Layers | None = None,
    relations: Layers | None = None,
    temperature: float = 2.0,
    student_loss_weight: float | None = None,
    feature_weight: float = 1.0,
    optimizer: str | keras.optimizers.Optimizer = "auto",
    batch_size: int = 32,
    epochs: int = 1,
    verbose: str | int = "auto",
    callbacks: Sequence[keras.callbacks.Callback] | None = None,
) -> keras.callbacks.History:
    """Trains a small task, the student, to answer as a large one, the teacher, does (knowledge distillation).

    The loss is that of `keras.distillation.Distiller`: a share of it compares the student with the labels, the rest
    with the teacher's outputs and, if asked for, with its hidden states or relations. A student made by
    `reduce_layers` starts from the teacher's weights.

    Args:
        teacher: a trained `BertClassifier`, `BertCrossEncoder` or `BertSentenceEncoder`; it stays as it is.
        student: a task of the same class with a preprocessor, which is trained. Both read the ids that its preprocessor
            makes, so the tokenizers must be equal, the casing too. Classes are compared by their names, in whatever
            order, and by their position where one of the two has no names.
        x: texts, or a tuple of two lists for pairs, as in `fit`.
        y: their labels; None if there are none, and for a sentence encoder.
        hidden_states: which hidden state of the student learns which one of the teacher, such as `{1: 2, 2: 4}`; 0 is
            the output of the embedding, -1 that of the last block. Both models must have the same width.
        relations: which block of the student learns the relations of queries, keys and values of which block of the
            teacher, such as `{-1: -1}`, counted from 0; the widths may differ (MiniLM).
        temperature: divides logits before they are compared; larger values show more of what the teacher thinks of
            wrong classes. Not for numbers and vectors.
        student_loss_weight: the share of the labels in the loss, in [0, 1]; None is 0.5, or 0 without labels.
        feature_weight: the weight of hidden states and of relations beside the outputs, which have the weight 1.
        optimizer: as in `compile`; `"auto"` is `optimizers.adamw()`.
        batch_size: texts per step.
        epochs: how often all texts are read.
        verbose: as in `fit`.
        callbacks: as in `fit`.

    Returns:
        Keras's `History`, with `loss`, `student_loss` and `distillation_loss`.

    Raises:
        TypeError: tasks of other or different classes.
        ValueError: different tokenizers, classes or outputs; layers that a model does not have; widths that differ.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=16)
        >>> preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bad", "good"]))
        >>> teacher = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=preprocessor)
        >>> student = kbl.tasks.reduce_layers(teacher, 1)
        >>> history = distill(teacher, student, ["good", "bad"], hidden_states={1: 2}, verbose=0)
        >>> sorted(history.history)
        ['distillation_loss', 'loss', 'student_loss', 'total_loss']

    References:
        Hinton et al. 2015, arXiv:1503.02531; Sanh et al. 2019, DistilBERT, arXiv:1910.01108; Wang et al. 2020,
        MiniLMv2, arXiv:2012.15828, equations 4 to 6.
    """
    _check_tasks(teacher, student)
    checks.positive_number(_OWNER, "temperature", temperature)
    checks.positive_number(_OWNER, "feature_weight", feature_weight)
    weight = (0.5 if y is not None else 0.0) if student_loss_weight is None else student_loss_weight
    if checks.share(_OWNER, "student_loss_weight", weight) and y is None:
        raise ValueError(checks.message(_OWNER, "student_loss_weight", "be 0 without labels", weight))
    views = _views(teacher, student, hidden_states, relations)
    kind = getattr(teacher, "problem_type", "multi_label" if isinstance(teacher, BertCrossEncoder) else "regression")
    losses: list[Any] = [SoftLabels(temperature, kind)]
    for compared, layers in ((MaskedStates, hidden_states), (MaskedRelations, relations)):
        losses += [compared(_FIRST_FEATURE + len(losses) - 1)] if layers else []
    weights = [1.0, *[feature_weight] * (len(losses) - 1)]
    num_features = len(views[0].output) - 1
    with _frozen_teacher(teacher, student):
        distiller = keras.distillation.Distiller(
            views[1], views[0], losses, distillation_loss_weights=weights, student_loss_weight=weight
        )
        loss = (_loss_of(student), *[_no_loss] * num_features)
        distiller.compile(adamw() if optimizer == "auto" else optimizer, loss, jit_compile=False)
        with student.pipeline.fitting(x):
            seed, turns = int(np.random.randint(2**31)), itertools.count()  # of `keras.utils.set_random_seed`
            order = Epochs(RowOrder.SHUFFLED, lambda: (seed, next(turns), 0))
            batches = student.pipeline.batches(x, y, batch_size=batch_size, epochs=order)
            batches = for_keras(batches.map(lambda ids, labels=0.0: (ids, (labels, *[0.0] * num_features))))
            return distiller.fit(batches, epochs=epochs, shuffle=False, verbose=verbose, callbacks=callbacks)


def _views(
    teacher: keras.Model, student: keras.Model, hidden_states: Layers | None, relations: Layers | None
) -> list[keras.Model]:
    """The student and the teacher as models from the same ids to what is compared."""
    sizes = [task.backbone.config for task in (student, teacher)]
    if hidden_states and sizes[0].hidden_dim != sizes[1].hidden_dim:
        cure = "Use `relations`, which do not depend on the width."
        rule = "be None where the widths of the models differ"
        raise ValueError(checks.message(_OWNER, "hidden_states", rule, dict(hidden_states), cure))
    return [
        _view(task.backbone, outputs, states or (), blocks or (), sizes[0].num_heads)
        for task, outputs, states, blocks in (
            (student, student.output, hidden_states and list(hidden_states), relations and list(relations)),
            (
                teacher,
                _in_order_of(teacher, student),
                hidden_states and list(hidden_states.values()),
                relations and list(relations.values()),
            ),
        )
    ]


def _in_order_of(teacher: Task, student: Task) -> Any:
    """The teacher's outputs, the columns of its classes in the order of the student's."""
    theirs, ours = (getattr(task, "class_names", None) for task in (teacher, student))
    if theirs is None or ours is None or theirs == ours:
        return teacher.output
    return ops.take(teacher.output, [theirs.index(name) for name in ours], axis=-1)


@contextlib.contextmanager
def _frozen_teacher(teacher: Task, student: Task) -> Iterator[None]:
    """The context in which Keras freezes the teacher; then what is trainable in both is as before."""
    pooler = student.backbone.get_layer("pooler")
    trainable = [(layer, layer.trainable) for layer in (*all_layers(teacher), pooler)]
    try:
        if not student.reads_pooled_output:
            pooler.trainable = False
        yield
    finally:
        for layer, value in trainable:
            layer.trainable = value
        student.forget_traces()


def _check_tasks(teacher: Task, student: Task) -> None:
    kinds = (BertClassifier, BertCrossEncoder, BertSentenceEncoder)
    if not isinstance(teacher, kinds) or type(student) is not type(teacher):
        rule = "be two classifiers, two cross-encoders or two sentence encoders"
        received = checks.Shown(f"a {type(teacher).__name__} and a {type(student).__name__}")
        raise TypeError(checks.message(_OWNER, "teacher, student", rule, received))
    for task in (teacher, student):
        checks.instance(_OWNER, "backbone", task.backbone, BertBackbone, "`distill_static` makes static encoders.")
    check_takes_text(student)
    for task in (teacher, student):
        refuse_columns(_OWNER, task, "Train the student on the teacher's `predict(table)`, as a regression.")
    if teacher.output.shape != student.output.shape:
        received = checks.Shown(f"{teacher.output.shape} and {student.output.shape}")
        raise ValueError(checks.message(_OWNER, "student", "have outputs of the teacher's shape", received))
    if isinstance(teacher, BertClassifier):
        _check_classes(teacher, student)
    if teacher.preprocessor is not None:
        _check_tokenizers(teacher.preprocessor.tokenizer, student.preprocessor.tokenizer)


def _check_classes(teacher: Any, student: Any) -> None:
    if teacher.problem_type != student.problem_type:
        received = checks.Shown(f"{teacher.problem_type} and {student.problem_type}")
        raise ValueError(checks.message(_OWNER, "student", "have the teacher's problem_type", received))
    names = [task.class_names for task in (teacher, student)]
    if None not in names and set(names[0]) != set(names[1]):
        cure = "Give the student the teacher's names, in any order."
        received = checks.Shown(f"{names[0]} and {names[1]}")
        raise ValueError(checks.message(_OWNER, "student", "have the teacher's class_names", received, cure))


def _check_tokenizers(teacher: Tokenizer, student: Tokenizer) -> None:
    """Refuses tokenizers that make other ids of most texts, and warns of those that do of some; ValueError."""
    configs = [{"class": type(tokenizer).__name__, **tokenizer.get_config()} for tokenizer in (teacher, student)]
    cure = "Load both with the same tokenizer, or train the student on `teacher.predict(texts)`."
    if configs[0]["vocabulary"] != configs[1]["vocabulary"]:
        received = checks.Shown(f"{student.vocabulary_size()} other tokens")
        raise ValueError(checks.message(_OWNER, "student", "have the teacher's vocabulary", received, cure))
    for config in configs:
        if config.get("strip_accents", False) is None:  # then accents go with capitals
            config["strip_accents"] = config["lowercase"]
    keys = [key for key in configs[0] | configs[1] if key not in _NOT_IN_IDS]
    differ = [key for key in keys if configs[0].get(key) != configs[1].get(key)]
    shown = (", ".join(f"{key}={config.get(key)!r}" for key in differ) for config in configs)
    text = checks.message(_OWNER, "student", "have the teacher's tokenizer", checks.Shown(" and ".join(shown)), cure)
    if any(key in _IN_MOST_IDS for key in differ):
        raise ValueError(text)
    if differ:
        warnings.warn(f"{text} The teacher reads other ids of some texts than it knows.", UserWarning, stacklevel=4)


def _view(backbone: BertBackbone, outputs: Outputs, states: Any, blocks: Any, num_heads: int) -> keras.Model:
    """The task with what is compared as further outputs, in float32; all of it shares the task's layers."""
    inputs, found = backbone.input, states_of(backbone)
    mask = ops.cast(inputs["padding_mask"], "float32")
    made = [outputs, mask]
    num_layers = backbone.config.num_layers
    if states:
        chosen = checked_layers(_OWNER, list(states), num_layers)
        made.append(ops.cast(ops.stack([found[index] for index in chosen], axis=1), "float32"))
    if blocks:
        if backbone.parts.normalize_first:
            rule = "be None for encoders with LayerNorm first"
            raise ValueError(checks.message(_OWNER, "relations", rule, list(blocks)))
        checks.divides(_OWNER, "student's num_heads", num_heads, "hidden_dim", backbone.config.hidden_dim)
        chosen = tuple(index - 1 for index in checked_layers(_OWNER, [i + (i >= 0) for i in blocks], num_layers))
        related = [_relations(backbone, found[index], index, num_heads, mask) for index in chosen]
        made.append(ops.stack(related, axis=1))
    return keras.Model(inputs, tuple(made))


def _relations(backbone: BertBackbone, hidden: Tensor, index: int, num_heads: int, mask: Tensor) -> Any:
    """Logarithms of the relations among queries, keys and values of a block, `[B, 3, heads, S, S]`."""
    attention = backbone.blocks[index].attention
    if not isinstance(attention, SelfAttention):
        rule = "be None for encoders with another attention than a SelfAttention"
        raise ValueError(checks.message(_OWNER, "relations", rule, attention))
    given = keras.Input(hidden.shape[1:], dtype=hidden.dtype)
    # A model of its own, as the layers of several blocks have one name.
    merged = keras.Model(given, attention.query_key_value(given), name=f"query_key_value_{index}")(hidden)
    head_dim = merged.shape[-1] // 3 // num_heads
    parts = keras.layers.Reshape((-1, 3, num_heads, head_dim), dtype="float32")(merged)
    parts = ops.transpose(parts, (0, 2, 3, 1, 4))  # [B, 3, heads, S, D]
    products = ops.matmul(parts, ops.transpose(parts, (0, 1, 2, 4, 3))) / head_dim**0.5
    return ops.log_softmax(products + (mask[:, None, None, None] - 1) * 1e9, axis=-1)


def _mean(values: Tensor, mask: Tensor) -> Any:
    """The mean of `[B, S]` over real tokens."""
    return ops.sum(values * mask) / ops.maximum(ops.sum(mask), 1)


def _loss_of(task: Task) -> Any:
    """The default loss of a task, which takes labels in every form that `fit` takes."""
    loss = task.default_loss()
    if not isinstance(task, BertClassifier):
        return loss
    return lambda y, y_pred: loss(task.label_kind.for_loss(y, y_pred, loss), y_pred)


def _no_loss(y_true: Tensor, y_pred: Outputs) -> Any:
    """What labels say of outputs that have none."""
    return ops.zeros(())
