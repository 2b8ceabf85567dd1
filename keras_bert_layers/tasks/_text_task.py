"""What every task has in common: raw text through `fit`, `evaluate` and `predict`, `.keras` files, and `export`."""

from __future__ import annotations

from os import PathLike
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.optimizers import adamw
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data

TEXT = ((None,), "string")
IDS = ((None, None), "int32")


class TextTask(keras.Model):
    """A functional model over the backbone's three inputs, with a preprocessor in front of its data.

    The model itself takes ids, so that a compiler never meets a string. With a preprocessor, `fit`, `evaluate` and
    `predict` take raw text and run the preprocessor on the way, in `tf.data`, beside the training step; ids are taken
    as they are. A subclass makes the graph, and says what its signatures answer.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None for a task that takes ids only.
        outputs: the functional model's outputs.
        name: the model's name.
    """

    def __init__(
        self, backbone: BertBackbone, preprocessor: BertPreprocessor | None, *, outputs: Any, name: str | None = None
    ):
        super().__init__(inputs=backbone.input, outputs=outputs, name=name)
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.compile()

    def default_loss(self) -> keras.losses.Loss:
        """The loss of `compile(loss="auto")`."""
        raise NotImplementedError

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The metrics of `compile(metrics="auto")`."""
        raise NotImplementedError

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        *,
        metrics: Any = "auto",
        jit_compile: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        """Sets how to train, as `keras.Model.compile`; a task is made compiled with the defaults.

        Args:
            optimizer: `"auto"` is `optimizers.adamw()`, at a rate of 5e-5.
            loss: `"auto"` is the task's own.
            metrics: `"auto"` is the task's own.
            jit_compile: `"auto"` leaves XLA off on TensorFlow when batches are padded to their longest row, as XLA
                compiles again for every new length.
            **kwargs: what else `keras.Model.compile` takes.
        """
        if jit_compile == "auto" and keras.backend.backend() == "tensorflow" and self._has_many_lengths():
            jit_compile = False
        super().compile(
            optimizer=adamw() if _is_auto(optimizer) else optimizer,
            loss=self.default_loss() if _is_auto(loss) else loss,
            metrics=self.default_metrics() if _is_auto(metrics) else metrics,
            jit_compile=jit_compile,
            **kwargs,
        )

    def get_compile_config(self) -> dict[str, Any]:
        """How the model is compiled, and whether its optimizer has state yet."""
        return {
            **super().get_compile_config(),
            "has_optimizer_state": self.optimizer is not None and self.optimizer.built,
        }

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as the saved model was; Keras calls it when it loads a `.keras` file."""
        config = dict(config)
        has_optimizer_state = config.pop("has_optimizer_state", False)
        self.compile(**keras.saving.deserialize_keras_object(config))
        # Only where there is state to read: Keras warns of an optimizer that has slots and a file that has none.
        if has_optimizer_state:
            self.optimizer.build(self.trainable_variables)

    def _has_many_lengths(self) -> bool:
        return self.preprocessor is None or self.preprocessor.padding == "longest"

    # How texts become the model's inputs -----------------------------------------------------------------------------

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text (and labels) as what the model trains on; runs inside `tf.data.Dataset.map`."""
        return tuple(part for part in (self._stream_preprocessor()(x), y, sample_weight) if part is not None)

    def _stream_preprocessor(self) -> BertPreprocessor:
        """The preprocessor, but with few lengths where the backend compiles a program for each."""
        preprocessor = self.preprocessor
        if keras.backend.backend() != "jax" or preprocessor.padding != "longest":
            return preprocessor
        return BertPreprocessor.from_config({**preprocessor.get_config(), "padding": "bucket"})

    def encode_labels(self, y: Any) -> Any:
        """A column of labels as the numbers that the loss takes; a subclass that takes names looks them up."""
        return y

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, shuffle: bool) -> Any:
        """A dataset of model inputs from columns of text, or from a dataset of text."""
        if not text_data.is_dataset(x):
            owner = type(self).__name__
            columns = text_data.as_columns(owner, x)
            y = None if y is None else self.encode_labels(text_data.as_array(y))
            x = text_data.as_dataset(owner, columns, y, sample_weight, batch_size=batch_size, shuffle=shuffle)
        elif not isinstance(x.element_spec, tuple):
            x = x.map(lambda text: (text,))
        return x.map(self.preprocess, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def _needs_preprocessing(self, x: Any) -> bool:
        return self.preprocessor is not None and x is not None and not text_data.holds_ids(x)

    # Keras's own entry points, with text in place of ids -------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        *,
        sample_weight: Any = None,
        validation_data: Any = None,
        validation_split: float = 0.0,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Trains, as `keras.Model.fit`.

        Args:
            x: with a preprocessor, a list, array or tensor of strings `(rows,)`; a tuple of two of them for pairs; or
                a batched `tf.data.Dataset` of `(text, y)`. Without one, or if it holds `"token_ids"`, what Keras takes.
            y: one label a text; None if `x` is a dataset.
            batch_size: texts a step, 32 if None; not for a dataset.
            sample_weight: one number a text.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset, like the above.
            validation_split: the share of the last rows to validate on, in [0, 1).
            shuffle: whether every epoch has its own order.
            **kwargs: what else `keras.Model.fit` takes.

        Returns:
            Keras's `History`.

        Raises:
            TypeError, ValueError: text that is not strings (the row is named), lengths that differ.
        """
        if not self._needs_preprocessing(x):
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                sample_weight=sample_weight,
                validation_data=validation_data,
                validation_split=validation_split,
                shuffle=shuffle,
                **kwargs,
            )
        if validation_split:
            x, y, sample_weight, validation_data = self._split(x, y, sample_weight, validation_split)
        if validation_data is not None:
            validation_data = self._validation_batches(validation_data, kwargs.get("validation_batch_size", batch_size))
        batches = self._batches(x, y, sample_weight, batch_size=batch_size, shuffle=shuffle)
        # The dataset shuffles itself; Keras warns if it is asked to.
        return super().fit(batches, validation_data=validation_data, shuffle=False, **kwargs)

    def evaluate(
        self, x: Any = None, y: Any = None, batch_size: int | None = None, *, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        """Loss and metrics, as `keras.Model.evaluate`; `x`, `y` and `sample_weight` as in `fit`."""
        if not self._needs_preprocessing(x):
            return super().evaluate(x, y, batch_size=batch_size, sample_weight=sample_weight, **kwargs)
        return super().evaluate(self._batches(x, y, sample_weight, batch_size=batch_size, shuffle=False), **kwargs)

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """The model's outputs as NumPy arrays, as `keras.Model.predict`; `x` as in `fit`, without labels."""
        if not self._needs_preprocessing(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        return super().predict(self._batches(x, None, None, batch_size=batch_size, shuffle=False), **kwargs)

    def _validation_batches(self, validation_data: Any, batch_size: int | None) -> Any:
        if text_data.is_dataset(validation_data):
            if text_data.holds_ids(validation_data):
                return validation_data
            return self._batches(validation_data, None, None, batch_size=None, shuffle=False)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(validation_data)
        if text_data.holds_ids(x):
            return validation_data
        return self._batches(x, y, sample_weight, batch_size=batch_size, shuffle=False)

    def _split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Any, Any, Any, tuple[Any, ...]]:
        """The first rows to train on and the last rows to validate on."""
        owner = type(self).__name__
        share = checks.fraction(owner, "validation_split", share)
        if text_data.is_dataset(x):
            raise ValueError(f"`{owner}`: `validation_split` must be 0 for a dataset. Give `validation_data`.")
        columns = text_data.as_columns(owner, x)
        border = int(text_data.num_rows(columns) * (1 - share))

        def parts(values: Any) -> tuple[Any, Any]:
            if isinstance(values, tuple):
                heads, tails = zip(*(parts(side) for side in values), strict=True)
                return heads, tails
            if values is None:
                return None, None
            values = text_data.as_array(values)
            return values[:border], values[border:]

        (x, last_x), (y, last_y), (weight, last_weight) = parts(columns), parts(y), parts(sample_weight)
        return x, y, weight, (last_x, last_y, last_weight)

    # Files -----------------------------------------------------------------------------------------------------------

    def signatures(self) -> list[Signature]:
        """What the exported model can be asked; a subclass puts its own before these two, which every task has."""
        ids = dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), IDS)
        signatures = [Signature("token_ids", self._serve_ids, ids)]
        if self.preprocessor is not None:
            signatures.append(Signature("tokenize", self._serve_tokens, self.text_inputs()))
        return signatures

    def text_inputs(self) -> dict[str, tuple[tuple[int | None, ...], str]]:
        """The string inputs of the task's signatures."""
        return {"text": TEXT}

    def _serve_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        ids = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        return {self.output_name: self(ids, training=False)}

    def _serve_tokens(self, *texts: Any) -> dict[str, Any]:
        return self.preprocessor(texts if len(texts) > 1 else texts[0])

    def export(self, filepath: str | PathLike[str], **kwargs: Any) -> None:
        """Writes a TensorFlow SavedModel that takes strings, with the vocabulary inside.

        Args:
            filepath: the folder to make. It is written whole or not at all; a SavedModel there is replaced.
            **kwargs: nothing; `format` may be `"tf_saved_model"`.

        Raises:
            RuntimeError: Keras runs on a backend other than TensorFlow.
            FileExistsError: the folder holds something that is not a SavedModel.
            ValueError: another format is asked for.
        """
        owner = type(self).__name__
        checks.one_of(owner, "format", kwargs.pop("format", "tf_saved_model"), ["tf_saved_model"])
        if kwargs:
            raise TypeError(f"`{owner}`: `export` takes a path only. Received: {sorted(kwargs)}.")
        write_saved_model(filepath, self.signatures())

    def get_config(self) -> dict[str, Any]:
        """What all tasks are made of; a subclass adds its own arguments."""
        preprocessor = self.preprocessor
        return {
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": None if preprocessor is None else keras.saving.serialize_keras_object(preprocessor),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> TextTask:
        """The task from `get_config`, with fresh weights."""
        config = dict(config)
        for key in ("backbone", "preprocessor"):
            if config[key] is not None:
                config[key] = keras.saving.deserialize_keras_object(config[key], custom_objects=custom_objects)
        return cls(**config)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
