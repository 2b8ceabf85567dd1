"""`Task`: the base class of all tasks, with Keras's methods, each of which hands its work to a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import keras

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.files import atomic_save
from keras_bert_layers._internal.hints import hint_keywords, unavailable
from keras_bert_layers._internal.types import Ids, Outputs, Rows, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import Signature, onnx
from keras_bert_layers.export.signature import DEFAULT_MAX_BYTES
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.static_backbone import StaticBackbone
from keras_bert_layers.tasks import _saving as saving
from keras_bert_layers.tasks.feeding.columns import holds_text
from keras_bert_layers.tasks.feeding.global_batches import model_inputs, on_real_rows
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.graphs.settings import replace_preprocessor
from keras_bert_layers.tasks.inputs import Inputs
from keras_bert_layers.tasks.prediction import Predictor
from keras_bert_layers.tasks.serving import answers
from keras_bert_layers.tasks.serving.export import export_task
from keras_bert_layers.tasks.serving.signatures import signature_of_ids
from keras_bert_layers.tasks.training.trainer import Trainer, data_to_build_with


@hint_keywords
class Task(keras.Model):
    """A functional model over ids, with the parts that let it take raw text.

    It takes ids, so that no compiler meets a string. `pipeline`, an `Inputs` object, turns what a user holds into
    batches of ids, and outputs into rows; a trainer and a predictor run the model. A subclass builds the graph, names
    its default loss and metrics, decodes answers, and calls `compile` at the end.

    Args:
        backbone: a `BertBackbone`, or a `StaticBackbone`.
        pipeline: how the task reads data, and turns outputs into rows again.
        outputs: the functional model's.
        inputs: the functional model's; the backbone's if None.
        parts: models over ids that are parts of this one, by name; see `part`.
        name: the model's name.
    """

    #: The name of the model's output in the signature `token_ids`.
    output_name = "logits"
    #: Whether the outputs depend on the backbone's pooler; training leaves an unused one unchanged.
    reads_pooled_output = True
    #: The weights of the losses of several outputs under `compile(loss="auto")`.
    default_loss_weights: dict[str, float] | None = None
    #: Whether `compile(metrics=…)` weighs metrics by sample weights, for tasks that make such weights.
    weighs_metrics = False
    #: The part of the model that computes the outputs of single rows; None for the whole model.
    part: str | None = None
    (export_search,) = unavailable("Encoders of texts have it, such as `BertSentenceEncoder`.", 1)

    def __init__(
        self,
        backbone: BertBackbone | StaticBackbone,
        pipeline: Inputs,
        *,
        outputs: Outputs,
        inputs: Ids | None = None,
        parts: Mapping[Any, keras.Model] | None = None,
        name: str | None = None,
    ):
        super().__init__(inputs=backbone.input if inputs is None else inputs, outputs=outputs, name=name)
        self.predictor = Predictor(self, parts)
        self.trainer = Trainer(self)
        self.pipeline = pipeline
        self.backbone = backbone
        self.dtype_policy = backbone.dtype_policy  # under mixed_float16, `compile` scales the loss by it

    @property
    def _training_place(self) -> Any:
        """How far training is; Keras saves it with the weights, under this name."""
        return self.trainer.place

    @property
    def preprocessor(self) -> Any:
        """Turns text into ids; None for a task that takes ids only."""
        return self.pipeline.preprocessor

    @preprocessor.setter
    def preprocessor(self, preprocessor: TextLayer | None) -> None:
        replace_preprocessor(self, preprocessor)

    @property
    def long_texts(self) -> Any:
        """What is read of a text longer than `max_length`: a `HeadTail` or a `Windows`; None cuts it."""
        return self.pipeline.long_texts

    def forget_traces(self) -> None:
        """Drops all traced functions; called by whatever changes the model, its labels or its answers."""
        self.predictor.forget()
        self.pipeline.batches.forget()

    def default_loss(self) -> Any:
        """The loss of `compile(loss="auto")`."""
        raise NotImplementedError

    def default_metrics(self) -> Any:
        """The metrics of `compile(metrics="auto")`."""
        raise NotImplementedError

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """The answers to a batch of strings, one tensor for each of `text_inputs`; in graph, batch first."""
        raise NotImplementedError

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that training changes: without a backbone's pooler, if no output depends on it."""
        weights = super().trainable_weights
        backbones = [] if self.reads_pooled_output else backbones_of(self)
        unused = {id(weight) for backbone in backbones for weight in backbone.get_layer("pooler").weights}
        return [weight for weight in weights if id(weight) not in unused]

    @property
    def trainable_variables(self) -> list[Any]:
        """The same; the layers hold no others."""
        return self.trainable_weights

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: str | Callable[..., Any] | Mapping[str, Any] = "auto",
        loss_weights: Sequence[Any] | Mapping[str, Any] | None = None,
        metrics: Sequence[Any] | Mapping[str, Any] = "auto",
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: bool | str = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Configures training, as `keras.Model.compile`; a new task is compiled with the defaults.

        Args:
            optimizer: `"auto"` is `optimizers.adamw()`, with a learning rate of 5e-5; 1e-3 for static embeddings.
            loss: `"auto"` is `default_loss()`. The outputs are logits: a cross-entropy by name is made with
                `from_logits=True`; an object with `from_logits=False` is refused.
            metrics: `"auto"` is `default_metrics()`, whose names may be given too. Metrics of masked tokens count the
                masked positions only. Keras's metrics of probabilities, objects and names, get the probabilities of the
                logits; what would read logits as something else is refused.
            jit_compile: `"auto"` leaves XLA off on TensorFlow, where padding is then skipped. True turns it on: padding
                is computed too, and each new length of a batch is compiled.
        """
        options = {"run_eagerly": run_eagerly, "steps_per_execution": steps_per_execution, "loss_weights": loss_weights}
        options |= {"jit_compile": jit_compile, "auto_scale_loss": auto_scale_loss}
        self.trainer.compile(optimizer, loss, metrics, weighted_metrics, **options)

    @property
    def metrics(self) -> list[Any]:
        """Keras's metrics, and the number of tokens if a `TokenRate` counts them."""
        return self.trainer.with_token_count(super().metrics)

    @on_real_rows
    def compute_loss(
        self,
        x: Ids | None = None,
        y: Outputs | None = None,
        y_pred: Outputs | None = None,
        sample_weight: Outputs | None = None,
        training: bool = True,
    ) -> Any:
        """The loss of a step, as `keras.Model.compute_loss`."""
        return super().compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)

    @on_real_rows
    def compute_metrics(self, x: Ids, y: Outputs, y_pred: Outputs, sample_weight: Any = None) -> dict[str, Any]:
        """Updates the metrics of a step, as `keras.Model.compute_metrics`."""
        self.trainer.add_tokens(x)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[Any, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
        *,
        group_by_length: bool = False,
    ) -> Any:
        """Trains, as `keras.Model.fit`, with its arguments in its order; those not listed here are Keras's.

        With `keras.callbacks.BackupAndRestore`, a training that was interrupted resumes identically.

        Args:
            x: with a preprocessor, a list, array or tensor of strings `(rows,)`; a tuple of two of them for pairs; a
                `tf.data.Dataset`, a generator or a `keras.utils.PyDataset` of batches `(text, y)`; a dictionary or a
                table of Arrow or `datasets` with columns named as `text_inputs` (for words `"tokens"`) and `"label"`;
                for pretraining a `data.RowSource` too. Without a preprocessor, or with `"token_ids"`, what Keras takes.
            y: one label per text; None if `x` is a dataset.
            batch_size: texts per step, 32 if None; None if `x` is a dataset.
            validation_split: the share of the last rows to validate on, in [0, 1), without `validation_data`.
            validation_data: `(x, y)`, `(x, y, sample_weight)` or a dataset, like the above.
            class_weight: how much the loss of each class counts; a classifier takes class names and "balanced" too.
            initial_epoch: the epoch to begin with, from 0; of a task saved after as many epochs, that training resumes.
            steps_per_epoch: steps per epoch; texts then repeat as often as needed.
            group_by_length: whether texts of similar length are trained on together, for less padding: the shuffled
                texts of 50 steps are sorted and cut into batches, and these are shuffled. Not for a dataset.

        Returns:
            Keras's `History`.

        Raises:
            TypeError, ValueError: text that is not strings (the message names the row), no text, lengths that differ.
        """
        options = {"batch_size": batch_size, "epochs": epochs, "verbose": verbose, "callbacks": callbacks}
        options |= {"validation_split": validation_split, "validation_data": validation_data, "shuffle": shuffle}
        options |= {"class_weight": class_weight, "initial_epoch": initial_epoch, "steps_per_epoch": steps_per_epoch}
        options |= {"validation_steps": validation_steps, "validation_batch_size": validation_batch_size}
        options |= {"validation_freq": validation_freq, "group_by_length": group_by_length}
        return self.trainer.fit(x, y, sample_weight, **options)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Loss and metrics, as `keras.Model.evaluate`; `x`, `y`, `batch_size` and `sample_weight` as in `fit`."""
        options = {"verbose": verbose, "steps": steps, "callbacks": callbacks, "return_dict": return_dict}
        return self.trainer.evaluate(x, y, batch_size, sample_weight, **options, **kwargs)

    def train_on_batch(
        self, x: Rows, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """One step on one batch, as `keras.Model.train_on_batch`; lists or arrays of text, or ids."""
        return self.trainer.train_on_batch(x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(self, x: Rows, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of one batch, as `keras.Model.test_on_batch`; `x` as in `train_on_batch`."""
        return self.trainer.test_on_batch(x, y, sample_weight, return_dict)

    def __call__(self, inputs: Rows, *args: Any, **kwargs: Any) -> Any:
        """The model's outputs for token ids; text is refused, as a call may be compiled."""
        if holds_text(inputs):
            cure = "Use `predict` on texts, or call the model on `preprocessor(texts)`."
            raise TypeError(checks.message(type(self).__name__, "inputs", "be token ids", type(inputs), cure))
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Ids, training: bool | None = None, mask: Tensor | None = None, **kwargs: Any) -> Any:
        """The outputs for a batch of ids, without the input that says which rows only pad it."""
        run = self.trainer.in_mini_batches if training and self.trainer.mini_batch_size else super().call
        return run(model_inputs(inputs), training=training, mask=mask, **kwargs)

    def predict(
        self,
        x: Rows,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        *,
        max_tokens_per_batch: int | None = None,
    ) -> Any:
        """The model's outputs as NumPy arrays, as `keras.Model.predict`.

        Texts are computed from the longest to the shortest, those of similar length together, and put back in order.

        Args:
            x: with a preprocessor, a list, array, tensor or pandas column of strings, or a tuple of two for pairs; a
                dataset, a table or a dictionary, as in `fit`; one string; or an iterable that yields one text or one
                tuple of texts at a time. It may be empty. Without a preprocessor, or with ids, what Keras takes.
            batch_size: the most rows per step; for ids 32 if None.
            verbose: Keras's progress bar, over rows: 0 shows nothing, 1 and "auto" show it, 2 shows one line.
            steps: the first so many batches of `x`, of `batch_size` or else 32 rows if it is not a dataset.
            callbacks: as in Keras.
            max_tokens_per_batch: the most tokens per step, padding included; a longer text is a step on its own. None
                is 2048 on a CPU, 65536 on an accelerator, and no limit beside `batch_size`. Not for ids.

        Returns:
            One row of outputs per row of `x`, in order; of one string, its row.

        Raises:
            TypeError, ValueError: text that is not strings (the message names the row), or of another kind.
        """
        options = {"verbose": verbose, "steps": steps, "callbacks": callbacks}
        return self.predictor.predict(self.pipeline, x, batch_size, max_tokens_per_batch, **options)

    def predict_stream(
        self, x: Rows, batch_size: int | None = None, *, max_tokens_per_batch: int | None = None, verbose: str | int = 0
    ) -> Iterator[Any]:
        """The rows of `predict` one by one, for more texts than fit into memory.

        Arguments are as in `predict`; texts, and not ids. Rows are read, sorted and computed in blocks of a few
        thousand. A block is read when the last one was taken.

        Yields:
            The outputs of each row of `x`, in order, as NumPy arrays without the axis of rows.

        Raises:
            TypeError, ValueError: as `predict`. Errors of `x` itself are passed on unchanged.
        """
        return self.predictor.stream(self.pipeline, x, batch_size, max_tokens_per_batch, verbose=verbose)

    def predict_on_batch(self, x: Rows) -> Any:
        """The outputs for one batch, as `keras.Model.predict_on_batch`; lists or arrays of text, or ids."""
        return self.predictor.predict_on_batch(self.pipeline, x)

    def answer(self, x: Rows, batch_size: int = 32) -> dict[str, Any]:
        """The answers of the exported model's `serving_default`, without an export, `max_bytes` and `"bytes_cut"`.

        Args:
            x: texts as in `predict`, or a single row: one string, or a tuple of one for each text input.
            batch_size: rows per step.

        Returns:
            One array for each answer, rows first, strings as `str` in an array of objects. An answer with as many
            columns as a batch needs is padded to the widest one, with `""` or -1. A single row has no axis of rows.

        Raises:
            ValueError: the task has no preprocessor; what `predict` refuses.
        """
        return answers.ask(self, self.serve, x, batch_size)

    def signatures(self) -> list[Signature]:
        """The signatures of the exported model: of strings, if there is a preprocessor, and `token_ids` of ids."""
        texts, ids = self.text_inputs(), signature_of_ids(self)
        of_texts = [Signature("serving_default", self.serve, texts), Signature("tokenize", self.pipeline.tokens, texts)]
        return [ids] if self.preprocessor is None else [of_texts[0], ids, of_texts[1]]

    def text_inputs(self) -> dict[str, tuple[tuple[int | None, ...], str]]:
        """The string inputs of the task's signatures: name -> `(shape, dtype)`."""
        return dict(self.pipeline.text_inputs)

    def run(self, ids: dict[str, Any], part: str | None = None) -> Any:
        """The outputs of the model (or of a part) as TensorFlow tensors, for answers; eager on other backends."""
        return self.predictor.run(self.pipeline.model_inputs(ids), part or self.part)

    def export(
        self,
        filepath: str | PathLike[str],
        format: str = "tf_saved_model",  # noqa: A002 - Keras's name
        verbose: bool | None = None,
        *,
        dtype: str | None = None,
        version: int | str | None = None,
        max_bytes: int | None = DEFAULT_MAX_BYTES,
        warm_up: bool = True,
        signatures: Sequence[str] = (),
    ) -> Path:
        """Writes a TensorFlow SavedModel that takes strings, with the vocabulary inside; the task stays unchanged.

        Args:
            filepath: the folder to make. It is written completely or not at all; a SavedModel there is replaced.
            format: `"tf_saved_model"`; or `"onnx"` for a file of one signature, see `export.onnx.write_onnx`.
            verbose: whether to print the folder; None does not.
            dtype: the dtype of the exported model: `"bfloat16"` (half-size weights and bfloat16 products, with softmax,
                LayerNorm and all answers in float32), `"float32"`, or None for that of the task.
            version: write to the folder `filepath/version`, as TensorFlow Serving wants it: a whole number that does
                not exist yet, or `"next"` for one more than the largest.
            max_bytes: how many bytes of each text the exported model reads, at least 16; the rest is cut off, after a
                whole character. Answers then have the output `"bytes_cut"`, int32 `(batch,)`: how many bytes of a row's
                texts were not read, `max_length` aside; `tokenize` has none. None sets no bound to time and memory.
            warm_up: whether to write requests that TensorFlow Serving runs before it serves the model: a few texts, one
                long and one empty, for each signature. A model that fails one is not served.
            signatures: names of signatures to write beside the standing ones; of an ONNX file, the one that it has.

        Returns:
            The folder that holds the model: `filepath`, or the one of its version.

        Raises:
            RuntimeError: Keras runs on another backend than TensorFlow; texts need tensorflow-text, which is missing.
            FileExistsError: the folder holds something that is not a SavedModel; the version exists.
            ValueError: another format, dtype or signature; `max_bytes` is too small.
        """
        options: dict[str, Any] = {"dtype": dtype, "version": version, "max_bytes": max_bytes, "warm_up": warm_up}
        return export_task(self, filepath, format, signatures=signatures, verbose=bool(verbose), **options)

    def onnx_functions(self) -> onnx.Functions:
        """The functions of strings that an ONNX file may have as its signature, by name: none."""
        return {}

    def onnx_outputs(self, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
        """`last_hidden_state` for rows of ids in an ONNX file, as transformers names it in its exports."""
        return onnx.last_hidden_state(model, rows)

    from_preset, from_pretrained = unavailable("Use `keras_bert_layers.load_task(source, task)`.")
    (save_pretrained,) = unavailable("Use `checkpoints.save_huggingface(task, directory)`.", 1)
    (export_search,) = unavailable("Encoders of texts have it, such as `BertSentenceEncoder`.", 1)

    def _run_through_graph(self, inputs: Ids, **functions: Any) -> Any:
        return keras_models.run_through_graph(self, inputs, **functions)

    def _maybe_symbolic_build(self, iterator: Iterator[Any] | None = None, data_batch: Any = None) -> None:
        super()._maybe_symbolic_build(*data_to_build_with(self._distribute_strategy, iterator, data_batch))

    def quantize(self, mode: str | None = None, config: Any = None, **options: Any) -> None:
        """Quantizes the dense layers, as `keras.Model.quantize`, to "int8", "int4" or "float8"."""
        keras_models.quantize(self, mode, config, **options)

    def save(
        self, filepath: str | PathLike[str], overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Writes a `.keras` file, as `keras.Model.save`; a file there is replaced when the new one is complete."""
        atomic_save.save(self, filepath, overwrite, zipped, **kwargs)

    def save_weights(self, filepath: str | PathLike[str], overwrite: bool = True, **options: Any) -> None:
        """Writes the weights, as `keras.Model.save_weights`; a file there is replaced when the new one is complete."""
        self.trainer.follow_layers()
        atomic_save.save_weights(self, filepath, overwrite, **options)

    def load_weights(self, filepath: str | PathLike[str], **options: Any) -> None:
        """Reads the weights, as `keras.Model.load_weights`, and the optimizer's state if the file has it."""
        self.trainer.follow_layers()
        super().load_weights(filepath, **options)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument, from the attribute of its name; and the quantized layers, after `quantize`."""
        return keras_models.with_quantized_layers(self, saving.arguments(self))

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Task:
        """The task from `get_config`, with newly initialized weights."""
        arguments = saving.deserialized(keras_models.constructor_config(config), custom_objects)
        return keras_models.made_quantized(cls(**arguments), config)

    def get_compile_config(self) -> dict[str, Any]:
        """How the model is compiled, whether its optimizer has state yet, and which layers are frozen."""
        self.trainer.follow_layers()
        return saving.with_training_state(self, super().get_compile_config())

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as the saved model was; Keras calls it when it loads a `.keras` file."""
        saving.compile_as_saved(self, config)
