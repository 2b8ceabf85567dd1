"""Callbacks of `fit` for little data: `RDrop`, `AdversarialTraining` and `GradualUnfreezing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Outputs, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.optimizers.adamw import BertAdamW
from keras_bert_layers.tasks.task import Task
from keras_bert_layers.tasks.training.rebuilt_optimizer import parts_of


class _ChangedTraining(keras.callbacks.Callback):
    """The base of callbacks that change a method of a task while it trains, and then put it back."""

    method = ""
    async_safe = True  # Keras need not wait for a step's logs

    def set_model(self, model: keras.Model) -> None:
        """Refuses models that are not tasks of this package."""
        checks.instance(type(self).__name__, "model", model, Task)
        super().set_model(model)

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Changes the method; several callbacks may change the same one."""
        self._before = self.model.__dict__.get(self.method)
        setattr(self.model, self.method, self._changed(getattr(self.model, self.method)))
        self.model.make_train_function(force=True)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Puts the method back."""
        if self._before is None:
            delattr(self.model, self.method)
        else:
            setattr(self.model, self.method, self._before)
        self.model.train_function = None

    def _changed(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError


class RDrop(_ChangedTraining):
    """R-Drop: each batch goes through the model twice, with different dropout, and both outputs must agree.

    The loss is the mean of both losses, and `weight` times half the divergence of both outputs in both directions. With
    several labels per text, that is the mean over the classes; of tags and masked tokens, the mean over the positions
    that count. A step takes about twice as long.

    Args:
        weight: the weight of the divergence: half of the paper's alpha, whose loss is the sum of both losses.

    Raises:
        TypeError, ValueError: `weight` is not a positive number; a model that is not a task, has several outputs, or
            whose outputs are not logits of classes, such as a regression or an encoder of sentences.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bad", "good"]))
        >>> classifier = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=preprocessor)
        >>> history = classifier.fit(["good", "bad"], [1, 0], callbacks=[RDrop(4.0)], verbose=0)

    References:
        Liang et al. 2021, R-Drop, arXiv:2106.14448, equations 1 to 4.
    """

    method = "compute_loss"

    def __init__(self, weight: float = 1.0):
        super().__init__()
        self.weight = checks.positive_number("RDrop", "weight", weight)

    def set_model(self, model: keras.Model) -> None:
        """Refuses models that are not tasks, and tasks with several outputs or without classes."""
        super().set_model(model)
        loss = model.default_loss()
        self._is_binary = isinstance(loss, keras.losses.BinaryCrossentropy)
        has_classes = self._is_binary or isinstance(loss, keras.losses.SparseCategoricalCrossentropy)
        if isinstance(model.output, dict) or not has_classes:
            rule = "return the logits of classes, all in one output"
            raise ValueError(checks.message("RDrop", "model", rule, checks.Shown(type(model).__name__)))

    def _divergence(self, first: Tensor, second: Tensor, counted: Any) -> Any:
        """The divergence in both directions; `counted` says which positions of a row count, None for one per row."""
        first, second = ops.cast(first, "float32"), ops.cast(second, "float32")
        probabilities, reduce = (ops.sigmoid, ops.mean) if self._is_binary else (ops.softmax, ops.sum)
        found = reduce((probabilities(first) - probabilities(second)) * (first - second), axis=-1)
        if counted is None:
            return ops.mean(found)
        counted = ops.cast(counted, "float32")
        return ops.sum(found * counted) / ops.maximum(ops.sum(counted), 1.0)

    def _changed(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        model, weight = self.model, self.weight

        def compute_loss(x: Any, y: Outputs, y_pred: Any, sample_weight: Any = None, training: bool = True) -> Any:
            loss = plain(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
            if not training:
                return loss
            again = model(x, training=True)
            loss = (loss + plain(x=x, y=y, y_pred=again, sample_weight=sample_weight, training=training)) / 2
            counted = None
            if len(y_pred.shape) == 3:
                by_position = sample_weight is not None and len(sample_weight.shape) == 2
                counted = sample_weight if by_position else x["padding_mask"]
            return loss + weight / 2 * self._divergence(y_pred, again, counted)

        return compute_loss


class AdversarialTraining(_ChangedTraining):
    """Adversarial training (FGM): each batch also trains on embeddings that are moved in the direction of more loss.

    After the gradients of a batch, the token embedding is moved by `epsilon` in the direction of its own gradient; the
    gradients of the same batch there are added, and the embedding is moved back. A frozen embedding is moved too. A
    step takes about twice as long. On the TensorFlow backend only.

    Args:
        epsilon: the Euclidean length of the move of the whole table, for all texts of a batch together. The paper moves
            each text on its own, and normalizes the embeddings before.

    Raises:
        TypeError, ValueError: `epsilon` is not a positive number; a model that is not a task of this package.
        RuntimeError: Keras runs on another backend.

    References:
        Miyato et al. 2017, arXiv:1605.07725, section 3.
    """

    method = "train_step"

    def __init__(self, epsilon: float = 1.0):
        super().__init__()
        self.epsilon = checks.positive_number("AdversarialTraining", "epsilon", epsilon)
        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                "`AdversarialTraining`: Keras must run on the TensorFlow backend. Received: "
                f"KERAS_BACKEND={keras.backend.backend()!r}. `RDrop` works on every backend."
            )

    def _changed(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        model, epsilon = self.model, self.epsilon
        table = model.backbone.get_layer("embedding").token_embedding

        def train_step(data: tuple[Any, ...]) -> Any:
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)

            def gradients() -> tuple[Any, Any, list[Any]]:
                with tf.GradientTape() as tape:
                    tape.watch(table.value)  # may be frozen
                    outputs = model(x, training=True)
                    loss = model.compute_loss(x=x, y=y, y_pred=outputs, sample_weight=sample_weight, training=True)
                    scaled = model.optimizer.scale_loss(loss)
                return outputs, loss, [tf.convert_to_tensor(g) for g in tape.gradient(scaled, [*weights, table])]

            weights = model.trainable_weights
            outputs, loss, [*first, direction] = gradients()
            model._loss_tracker.update_state(loss, sample_weight=tf.shape(keras.tree.flatten(x)[0])[0])
            original = tf.identity(table)
            table.assign_add(epsilon * direction / (tf.norm(direction) + 1e-12))
            _, _, [*second, _] = gradients()
            table.assign(original)
            total = [one + other for one, other in zip(first, second, strict=True)]
            model.optimizer.apply_gradients(zip(total, weights, strict=True))
            return model.compute_metrics(x, y, outputs, sample_weight=sample_weight)

        return train_step


class GradualUnfreezing(keras.callbacks.Callback):
    """Gradual unfreezing: training begins with the head alone, and each epoch adds blocks from the top down.

    Frozen layers get no gradients. After the last block, the embedding follows. When training ends, what was trainable
    before is trainable again. A block that all layers share opens as one. A task without a head, such as an encoder of
    sentences, learns nothing in the first epoch.

    `optimizers.adamw` counts the steps of a weight from where it opens, as PyTorch's AdamW does. Other optimizers of
    Keras count the steps of all weights together, so bias correction comes too late for a block that opens late: its
    first steps are 2 times too long after 100 steps, and 5 times after 1,000.

    Args:
        blocks_per_epoch: how many blocks each epoch after the first one adds.

    Raises:
        TypeError, ValueError: `blocks_per_epoch` is not a positive integer; a model that is not a task.
        RuntimeError: Keras runs on JAX, where the weights of an optimizer cannot change.

    References:
        Howard and Ruder 2018, ULMFiT, arXiv:1801.06146, section 3.3.
    """

    def __init__(self, blocks_per_epoch: int = 1):
        super().__init__()
        self.blocks_per_epoch = checks.positive_integer("GradualUnfreezing", "blocks_per_epoch", blocks_per_epoch)
        if keras.backend.backend() == "jax":
            raise RuntimeError(
                "`GradualUnfreezing`: Keras must run on the TensorFlow or the PyTorch backend. Received: "
                "KERAS_BACKEND='jax'. `optimizers.layer_wise_rates` works on every backend."
            )

    def set_model(self, model: keras.Model) -> None:
        """Refuses models that are not tasks of this package."""
        checks.instance("GradualUnfreezing", "model", model, Task)
        checks.instance("GradualUnfreezing", "model.backbone", model.backbone, BertBackbone)
        super().set_model(model)

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Notes what is trainable."""
        backbone = self.model.backbone
        self._layers = [*dict.fromkeys(reversed(backbone.blocks)), backbone.get_layer("embedding")]
        self._num_open: int | None = None
        self._trainable = [[weight.trainable for weight in layer.weights] for layer in self._layers]

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Freezes what does not learn in this epoch yet."""
        if self._num_open is None and self.model.trainer.place.step == 0:  # within an epoch, its blocks opened before
            self._set(max(epoch - 1, 0) * self.blocks_per_epoch)
        self._set(epoch * self.blocks_per_epoch)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Makes trainable again what was."""
        self._set(len(self._layers))

    def _set(self, num_open: int) -> None:
        if self._num_open == (num_open := min(num_open, len(self._layers))):
            return
        self._num_open, opened = num_open, []
        for index, (layer, before) in enumerate(zip(self._layers, self._trainable, strict=True)):
            for weight, was_trainable in zip(layer.weights, before, strict=True):
                is_open = was_trainable and index < num_open
                opened += [weight] if is_open and not weight.trainable else []
                weight.trainable = is_open
        for part in parts_of(self.model.optimizer):
            if isinstance(part, BertAdamW):
                part.restart(opened)
        self.model.trainer.place.make_step_again()
