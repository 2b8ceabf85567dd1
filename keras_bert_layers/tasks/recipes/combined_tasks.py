"""Several tasks on one encoder: the blocks that they share run once, and each task goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks, keras_models
from keras_bert_layers._internal.hints import unavailable
from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Columns, Rows, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import SequencePooling
from keras_bert_layers.layers.adapters import refuse_adapters
from keras_bert_layers.preprocessing.preprocessors.word_aligner import NO_WORD, AlignedWords
from keras_bert_layers.tasks.graphs.hidden_states import hidden_states
from keras_bert_layers.tasks.inputs import Inputs, WordInputs
from keras_bert_layers.tasks.prediction.windows import states_of_windows
from keras_bert_layers.tasks.task import Task

_OWNER = "CombinedTasks"
_CURE = "Train all from one encoder, with `backbone.enable_lora(8, lora_blocks=2)` or with its lower part frozen."
# What makes no difference to the outputs of a trained layer, or is compared for itself.
_LEFT_OUT = ("name", "dtype", "trainable", "dropout", "rate", "seed", "tokenizer", "positions", "feed_forward")


@register
class CombinedTasks(Task):
    """Runs several tasks on one encoder: texts are tokenized once, and the blocks that all tasks share run once.

    Each task is trained alone, maybe in a process of its own, from the same pretrained encoder with its lower part
    frozen. The embedding and the first blocks whose weights are equal bit for bit in all tasks, LoRA's matrices
    included, are computed once. From there each task has its own blocks and its own head. `num_shared_blocks` is the
    number of blocks that are shared.

    Everything that tasks return is a dictionary here, with an entry for each task: `predict` returns what its `predict`
    returns, and `answer` what its `answer` returns, to rounding. `export` writes one SavedModel: `serving_default`
    returns the answers of all tasks, with the task's name and `_` before each, such as `intent_label`; `token_ids`
    returns the outputs of each task by its name. A `.keras` file holds all of it, and the shared blocks once.

    The layers are those of the tasks and no copies: combine tasks after they are trained.

    Args:
        tasks: the trained tasks by name, of letters, digits and `_`: `BertClassifier`, `BertTokenClassifier` and
            `BertSentenceEncoder`, with equal preprocessors, for single texts without `long_texts` and prompts.
        num_shared_blocks: share at most so many blocks; None for all that are equal.
        name: the model's name.

    Raises:
        TypeError: a task of another kind.
        ValueError: no tasks; tasks that read texts in different ways; encoders that do not even share the embedding.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "in", "new", "york"])
        >>> preprocessor, backbone = kbl.BertPreprocessor(tokenizer), kbl.BertBackbone(config)
        >>> def new_backbone():
        ...     copy = kbl.BertBackbone(config)
        ...     copy.set_weights(backbone.get_weights())
        ...     copy.enable_lora(2, lora_blocks=1)
        ...     return copy
        >>> topic = kbl.BertClassifier(new_backbone(), class_names=["place", "time"], preprocessor=preprocessor)
        >>> entities = kbl.BertTokenClassifier(new_backbone(), ["O", "B-place", "I-place"], preprocessor=preprocessor)
        >>> combined = kbl.tasks.CombinedTasks({"topic": topic, "entities": entities})
        >>> combined.num_shared_blocks
        1
        >>> {name: list(answer) for name, answer in combined.answer("in New York").items()}["topic"]
        ['label', 'probabilities']
    """

    fit, evaluate, train_on_batch, test_on_batch = unavailable("Train each task alone, and combine them then.", 4)

    def __init__(self, tasks: Mapping[str, Task], *, num_shared_blocks: int | None = None, name: str | None = None):
        _check_tasks(tasks)
        checks.optional(checks.whole_number, _OWNER, "num_shared_blocks", num_shared_blocks)
        first, most = next(iter(tasks.values())).backbone, _num_equal_blocks(tasks)
        count = most if num_shared_blocks is None else min(most, num_shared_blocks)
        first.check_blocks(_OWNER, "num_shared_blocks", count)
        shared = keras.Model(first.input, hidden_states(first)[count], name="shared_blocks")
        shared.config, shared.dtype_policy = first.config, first.dtype_policy
        given = {"hidden": shared.output, "padding_mask": shared.input["padding_mask"]}
        outputs = {key: _upper_part(task, count, f"{key}_task", given)(given) for key, task in tasks.items()}
        super().__init__(shared, _CombinedInputs(tasks), inputs=shared.input, outputs=outputs, name=name)
        self.tasks = MappingProxyType(dict(tasks))  # which Keras neither tracks nor saves
        self.num_shared_blocks = count

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Strings to the answers of all tasks, the name of the task before each."""
        kinds = {
            task.aggregation == "first": task for task in self.tasks.values() if isinstance(task.pipeline, WordInputs)
        }
        words = {kind: task.align(*texts) for kind, task in kinds.items()}
        outputs = self._of_windows(*words.values()) if words else self.run(self.pipeline.ids(*texts))
        found: dict[str, Any] = {}
        for name, task in self.tasks.items():
            aligned = (*texts, words[task.aggregation == "first"]) if isinstance(task.pipeline, WordInputs) else ()
            found |= {f"{name}_{key}": value for key, value in task.decode(outputs[name], *aligned).items()}
        return found

    def _of_windows(self, words: AlignedWords, *_: AlignedWords) -> dict[str, Any]:
        """The outputs by task: of all windows where a task reads words, else of the first window of each text."""
        found = states_of_windows(self.run, words.inputs, self.preprocessor, self.output)
        others = [name for name, task in self.tasks.items() if not isinstance(task.pipeline, WordInputs)]
        return found | {name: tf.gather(found[name], words.first_windows) for name in others}

    def answer(self, x: Rows, batch_size: int = 32) -> dict[str, Any]:
        """The answers of every task, as its own `answer` gives them; arguments as there."""
        found, names = super().answer(x, batch_size).items(), list(self.tasks)
        return {
            name: {key[len(name) + 1 :]: value for key, value in found if key.startswith(f"{name}_")} for name in names
        }

    def get_config(self) -> dict[str, Any]:
        """The configs of the tasks, without those of their training; and the other arguments."""
        tasks = {name: keras.saving.serialize_keras_object(task) for name, task in self.tasks.items()}
        tasks = {name: {**config, "compile_config": None} for name, config in tasks.items()}
        others = {"num_shared_blocks": self.num_shared_blocks, "name": self.name}
        return keras_models.with_quantized_layers(self, {"tasks": tasks, **others})

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> CombinedTasks:
        """New tasks with initial weights, equal where they were shared."""
        tasks = keras.saving.deserialize_keras_object(config["tasks"], custom_objects=custom_objects)
        lower = zip(*(_lower_layers(task, config["num_shared_blocks"]) for task in tasks.values()), strict=True)
        for first, other in ((first, other) for first, *others in lower for other in others):
            other.set_weights(first.get_weights())
        return keras_models.made_quantized(cls(**keras_models.constructor_config({**config, "tasks": tasks})), config)


class _CombinedInputs(Inputs):
    """Single texts, encoded once; a row of outputs is a dictionary of the rows of all tasks.

    If a task reads words, all read windows: a task of whole texts has the outputs of the first window of each text,
    which holds what it reads of the text alone.
    """

    def __init__(self, tasks: Mapping[str, Any]):
        self._pipelines = {name: task.pipeline for name, task in tasks.items()}
        self._first: Any = min(self._pipelines.values(), key=lambda pipeline: not isinstance(pipeline, WordInputs))
        super().__init__(_OWNER, self._first.preprocessor, most_texts=1)

    def outputs(self, columns: Columns, run: Callable[..., Any]) -> dict[str, Any]:
        """The outputs of a block of rows, by task."""
        if not isinstance(self._first, WordInputs):
            return super().outputs(columns, run)
        words = self._first.aligner(self.bucketed()).align(columns)
        found = run(words.inputs, self.bucketed())
        places = words.places.numpy()
        window, position = np.divmod(np.maximum(places, 0), max(words.inputs["token_ids"].shape[1], 1))
        for name, pipeline in self._pipelines.items():
            if isinstance(pipeline, WordInputs):
                rows = zip(found[name][window, position], places != NO_WORD, strict=True)
                found[name] = np.fromiter((row[is_word] for row, is_word in rows), object)
            else:
                found[name] = found[name][words.first_windows.numpy()]
        return found

    def join(self, blocks: list[Any]) -> dict[str, Any]:
        """What `predict` returns."""
        return {name: each.join([block[name] for block in blocks]) for name, each in self._pipelines.items()}


def _check_tasks(tasks: Any) -> None:
    """Refuses what is not tasks of single texts by name, which read them in one way."""
    if not isinstance(tasks, Mapping) or not tasks:
        raise TypeError(checks.message(_OWNER, "tasks", "be one task or more, by name", tasks))
    wanted: dict[str, Any] = {}
    for name, task in tasks.items():
        if not str(name).isidentifier() or not name.isascii() or any(other.startswith(f"{name}_") for other in tasks):
            rule = "have identifiers as names, none of which begins with another and `_`"
            raise ValueError(checks.message(_OWNER, "tasks", rule, [*tasks]))
        is_one = hasattr(task, "decode") and isinstance(task.backbone, BertBackbone) and task.preprocessor is not None
        if not is_one or task.long_texts is not None or task.pipeline.prompt or len(task.text_inputs()) > 1:
            rule = "read single texts with a `BertBackbone` and a preprocessor, without `long_texts` and prompts"
            raise ValueError(checks.message(_OWNER, f"tasks[{name!r}]", rule, checks.Shown(type(task).__name__)))
        refuse_adapters(_OWNER, task)
        reading = _options(task.preprocessor) | _options(task.preprocessor.tokenizer)
        if isinstance(task.pipeline, WordInputs):
            reading |= {"stride": task.pipeline.aligner().stride, "truncation_side": "right"}
        if differ := [key for key, value in reading.items() if wanted.setdefault(key, value) != value]:
            rule = "be trained with a preprocessor equal to that of the others"
            raise ValueError(checks.message(_OWNER, f"tasks[{name!r}]", rule, checks.Shown(f"another {differ}")))


def _options(layer: keras.layers.Layer) -> dict[str, Any]:
    """The arguments of a layer that its outputs depend on."""
    config = {**layer.get_config(), "class": type(layer)}
    return {key: config[key] for key in config if not key.endswith(_LEFT_OUT) and "initializer" not in key}


def _lower_layers(task: Task, num_blocks: int) -> list[Any]:
    """The embedding and the first blocks of a task."""
    return [task.backbone.get_layer("embedding"), *task.backbone.blocks[:num_blocks]]


def _num_equal_blocks(tasks: Mapping[str, Any]) -> int:
    """How many blocks, from the first one on, are equal in all tasks; ValueError if not even the embeddings are.

    Where LayerNorm is first, the last block is not shared, as one more LayerNorm follows it. A block that is called for
    all layers of an encoder is shared for all of them, or for none.
    """
    sizes = {(task.backbone.config.num_layers, task.backbone.parts.shares_block) for task in tasks.values()}
    most = (task.backbone.config.num_layers - task.backbone.parts.normalize_first for task in tasks.values())
    lower = zip(*map(_lower_layers, tasks.values(), most), strict=False)
    equal = [all(_are_equal(first, other) for other in others) for first, *others in lower]
    if not equal[0]:
        raise ValueError(checks.message(_OWNER, "tasks", "share at least the embedding", list(tasks), _CURE))
    count = [*equal, False].index(False) - 1
    has_all = len(sizes) == 1 and count == next(iter(sizes))[0]
    return count if has_all or not any(shares for _, shares in sizes) else 0


def _are_equal(layer: keras.layers.Layer, other: Any) -> bool:
    """Whether two layers compute the same, by the options of all layers in them and by all bits of their weights."""
    first, second = ([_options(part) for part in all_layers(each)] for each in (layer, other))
    is_equal = layer.compute_dtype == other.compute_dtype and first == second
    pairs = zip(layer.weights, other.weights, strict=False)
    return is_equal and all(one.dtype == two.dtype and np.array_equal(one, two) for one, two in pairs)


def _upper_part(task: Task, num_blocks: int, name: str, given: dict[str, Any]) -> keras.Model:
    """The model from the shared hidden states to the outputs of a task: its graph, without the lower layers."""
    backbone, lower = task.backbone, _lower_layers(task, num_blocks)
    inputs = {key: keras.Input(value.shape[1:], dtype=value.dtype, name=key) for key, value in given.items()}
    ids = dict.fromkeys(backbone.input, inputs["padding_mask"])  # the layers that read the others are left out
    first_token = SequencePooling("cls", dtype=backbone.dtype_policy, name="first_token")

    def shared(*_: Any, first_token_only: bool = False, return_attention_scores: bool = False, **__: Any) -> Any:
        hidden = first_token(inputs["hidden"]) if first_token_only else inputs["hidden"]
        return (hidden, hidden) if return_attention_scores else hidden  # tasks read no scores

    def operation(layer: keras.layers.Layer) -> Any:
        if layer is backbone:
            return lambda *_, **__: backbone._run_through_graph(ids, operation_fn=operation)
        return shared if layer in lower else layer

    model = keras.Model(inputs, task._run_through_graph(ids, operation_fn=operation), name=name)
    model.dtype_policy = backbone.dtype_policy
    return model
