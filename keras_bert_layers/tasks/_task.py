"""What every task has in common but its data: the parts, how it is compiled, `.keras` files, and `export`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.config import BertConfig
from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.export._batching import refuse_foreign_padding
from keras_bert_layers.export._dtype_copy import copy_in_dtype
from keras_bert_layers.export._text_bound import check_max_bytes
from keras_bert_layers.export.saved_model import check_destination
from keras_bert_layers.optimizers import adamw
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _served as served

TEXT = ((None,), "string")


class Task(keras.Model):
    """A functional model over the backbone's three inputs, with a preprocessor at its side.

    The model itself takes ids, so that a compiler never meets a string. A subclass makes the graph, and says what its
    signatures answer.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None for a task that takes ids only.
        outputs: the functional model's outputs.
        inputs: the functional model's inputs; the backbone's if None.
        name: the model's name.
    """

    #: What the model's outputs are called in the signature `token_ids`.
    output_name = "logits"

    #: Whether the outputs depend on the backbone's pooler; training leaves one alone that nothing passes through.
    reads_pooled_output = True

    #: What the task's preprocessor must be.
    preprocessor_class: type[Any] = BertPreprocessor

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None,
        *,
        outputs: Any,
        inputs: Any = None,
        name: str | None = None,
    ):
        super().__init__(inputs=backbone.input if inputs is None else inputs, outputs=outputs, name=name)
        self.backbone = backbone
        self.preprocessor: Any = preprocessor
        self.dtype_policy = backbone.dtype_policy  # under mixed_float16, `compile` scales the loss by it
        self.compile()

    @classmethod
    def _check_parts(cls, backbone: Any, preprocessor: Any) -> None:
        """Refuses what is not a backbone or a preprocessor, before a subclass makes its graph."""
        if not isinstance(backbone, BertBackbone):
            cure = "Make one with `BertBackbone(config)` or `load_backbone(source)`."
            raise TypeError(checks.message(cls.__name__, "backbone", "be a BertBackbone", backbone, cure))
        if preprocessor is not None and not isinstance(preprocessor, cls.preprocessor_class):
            wanted = cls.preprocessor_class.__name__
            cure = f"Make one with `{wanted}(tokenizer)` or `load_preprocessor(source)`."
            raise TypeError(checks.message(cls.__name__, "preprocessor", f"be a {wanted} or None", preprocessor, cure))
        if preprocessor is not None:
            cls._check_sizes(backbone.config, preprocessor)

    @classmethod
    def _check_sizes(cls, config: BertConfig, preprocessor: BertPreprocessor) -> None:
        """Refuses a preprocessor that can make ids or lengths which the backbone has no rows for."""
        longest, positions = preprocessor.max_length, config.max_sequence_length
        if longest > positions:
            rule = f"be at most the backbone's `max_sequence_length` ({positions})"
            raise ValueError(checks.message(cls.__name__, "preprocessor.max_length", rule, longest))
        size = preprocessor.tokenizer.vocabulary_size()
        if size > config.vocabulary_size:
            rule = f"be at most the backbone's `vocabulary_size` ({config.vocabulary_size})"
            cure = "Text and weights must come from the same checkpoint."
            raise ValueError(checks.message(cls.__name__, "preprocessor.tokenizer.vocabulary_size()", rule, size, cure))

    def _backbones(self) -> list[BertBackbone]:
        """The backbones that the outputs are made of."""
        return [self.backbone]

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that training changes: not a backbone's pooler, where no output depends on it."""
        weights = super().trainable_weights
        if self.reads_pooled_output:
            return weights
        unused = {id(weight) for backbone in self._backbones() for weight in backbone.get_layer("pooler").weights}
        return [weight for weight in weights if id(weight) not in unused]

    @property
    def trainable_variables(self) -> list[Any]:
        """The same as `trainable_weights`; the layers hold no other trainable variables."""
        return self.trainable_weights

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
            jit_compile: `"auto"` leaves XLA off on TensorFlow, where padding is left out instead. True turns it on, and
                computes padding too; batches padded to their longest row are then compiled again for every length.
            **kwargs: what else `keras.Model.compile` takes.
        """
        for layer in self._flatten_layers():
            if isinstance(layer, BertBackbone):
                layer.padding_free = jit_compile is not True
        super().compile(
            optimizer=adamw() if _is_auto(optimizer) else optimizer,
            loss=self.default_loss() if _is_auto(loss) else loss,
            metrics=self.default_metrics() if _is_auto(metrics) else metrics,
            jit_compile=jit_compile,
            **kwargs,
        )

    def get_compile_config(self) -> dict[str, Any]:
        """How the model is compiled, whether its optimizer has state yet, and which layers it leaves alone.

        The last two stand beside the optimizer's own keys, where Keras passes over them: `keras.models.clone_model`
        hands this dictionary to a plain model.
        """
        config = super().get_compile_config()
        if self.optimizer is not None:
            config["optimizer"] = {
                **keras.saving.serialize_keras_object(self.optimizer),
                "has_state": self.optimizer.built,
                "frozen_layers": [index for index, layer in enumerate(self._flatten_layers()) if not layer.trainable],
            }
        return config

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as the saved model was; Keras calls it when it loads a `.keras` file."""
        optimizer = config.get("optimizer") or {}
        frozen = set(optimizer.get("frozen_layers", ()))
        for index, layer in enumerate(list(self._flatten_layers())):
            layer.trainable = index not in frozen  # outer layers come first, and pass it on to their inner ones
        self.compile(**keras.saving.deserialize_keras_object(config))
        # Only where there is state to read: Keras warns of an optimizer that has slots and a file that has none.
        if optimizer.get("has_state", False):
            self.optimizer.build(self.trainable_variables)

    def signatures(self) -> list[Signature]:
        """What the exported model can be asked: with a preprocessor, strings by `serving_default`; always, ids."""
        of_ids = Signature("token_ids", self._serve_given_ids, self.id_inputs())
        if self.preprocessor is None:
            return [of_ids]
        texts = self.text_inputs()
        answers = Signature("serving_default", self._serve, texts)
        return [answers, of_ids, Signature("tokenize", self._serve_tokens, texts)]

    def id_inputs(self) -> dict[str, tuple[tuple[int | None, ...], str]]:
        """The integer inputs of the task's signatures."""
        names = ("token_ids", "segment_ids", "padding_mask")
        return {name: (tuple(self._served_inputs[name].shape), "int32") for name in names}

    @property
    def _served_inputs(self) -> dict[str, Any]:
        """The symbolic inputs whose shapes the signatures of ids have."""
        return self.input

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """The task's answers to batches of strings, in the order of `text_inputs`."""
        raise NotImplementedError

    def text_inputs(self) -> dict[str, tuple[tuple[int | None, ...], str]]:
        """The string inputs of the task's signatures."""
        return {"text": TEXT}

    def _serve_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any) -> dict[str, Any]:
        ids = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        return {self.output_name: self._run_model(ids)}

    def _serve_given_ids(self, token_ids: Any, segment_ids: Any, padding_mask: Any, *others: Any) -> dict[str, Any]:
        """The same, of ids that came over a network."""
        token_ids = refuse_foreign_padding(type(self).__name__, token_ids, padding_mask)
        return self._serve_ids(token_ids, segment_ids, padding_mask, *others)

    def _run_model(self, ids: dict[str, Any], model: Any = None) -> Any:
        """The outputs of the model (or of a part) as TensorFlow tensors, for answers; eager on other backends."""
        model = self if model is None else model
        if keras.backend.backend() == "tensorflow":
            return traced_once(model, ids, training=False)
        outputs = model(ids, training=False)
        return keras.tree.map_structure(lambda output: tf.constant(keras.ops.convert_to_numpy(output)), outputs)

    def _serve_tokens(self, *texts: Any) -> dict[str, Any]:
        return traced_once(self.preprocessor, texts if len(texts) > 1 else texts[0])

    def export(
        self,
        filepath: str | PathLike[str],
        *,
        dtype: str | None = None,
        version: int | str | None = None,
        max_bytes: int | None = None,
        warm_up: bool = True,
        **kwargs: Any,
    ) -> Path:
        """Writes a TensorFlow SavedModel that takes strings, with the vocabulary inside; the task stays as it is.

        Args:
            filepath: the folder to make. It is written whole or not at all; a SavedModel there is replaced.
            dtype: the numbers of the exported model: `"bfloat16"` (weights of half the size, products in bfloat16,
                softmax, LayerNorm and all answers in float32), `"float32"`, or None for those of the task.
            version: write to the folder `filepath/version`, as TensorFlow Serving wants it: a whole number that is not
                there yet, or `"next"` for one more than the largest.
            max_bytes: how many bytes of a text the exported model reads, at least 16; what stands behind is left out,
                as behind `max_length`. None tokenizes all of it, in time and memory that grow with the text.
            warm_up: whether to write requests that TensorFlow Serving asks before it serves the model: a few texts, one
                long and one empty, for each signature. A model that fails one is not served.
            **kwargs: nothing; `format` may be `"tf_saved_model"`.

        Returns:
            The folder that holds the model: `filepath`, or the one of its version.

        Raises:
            RuntimeError: Keras runs on a backend other than TensorFlow.
            FileExistsError: the folder holds something that is not a SavedModel; the version is there.
            ValueError: another format or another dtype is asked for; `max_bytes` is too small.
        """
        owner = type(self).__name__
        checks.one_of(owner, "format", kwargs.pop("format", "tf_saved_model"), ["tf_saved_model"])
        if kwargs:
            known = "`dtype`, `version`, `max_bytes` and `warm_up`"
            raise TypeError(f"`{owner}`: `export` takes a path, {known} only. Received: {sorted(kwargs)}.")
        cure = "On a CPU float16 is no faster than float32; take bfloat16." if dtype == "float16" else ""
        checks.one_of(owner, "dtype", dtype, [None, "bfloat16", "float32"], cure)
        checks.boolean(owner, "warm_up", warm_up)
        check_max_bytes(owner, max_bytes)
        check_destination(filepath, version)
        model = self if dtype is None else copy_in_dtype(self, dtype)
        with model._padding_left_out():
            signatures = [served.with_bound(signature, max_bytes) for signature in model.signatures()]
            return write_saved_model(
                filepath,
                signatures,
                version=version,
                warm_up=served.requests(model, signatures) if warm_up else None,
                facts=served.facts(model, max_bytes),
            )

    @contextmanager
    def _padding_left_out(self) -> Iterator[None]:
        """Within, padding is left out, however the task is compiled: a server may not have XLA."""
        before = [backbone.padding_free for backbone in self._backbones()]
        try:
            for backbone in self._backbones():
                backbone.padding_free = True
            yield
        finally:
            for backbone, padding_free in zip(self._backbones(), before, strict=True):
                backbone.padding_free = padding_free

    def get_config(self) -> dict[str, Any]:
        """What all tasks are made of; a subclass adds its own arguments."""
        preprocessor = self.preprocessor
        return {
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "preprocessor": None if preprocessor is None else keras.saving.serialize_keras_object(preprocessor),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Task:
        """The task from `get_config`, with fresh weights."""
        config = dict(config)
        for key in ("backbone", "preprocessor"):
            if config[key] is not None:
                config[key] = keras.saving.deserialize_keras_object(config[key], custom_objects=custom_objects)
        return cls(**config)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
