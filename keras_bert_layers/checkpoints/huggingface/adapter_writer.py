"""`save_peft`: saves what LoRA learned as an adapter directory that PEFT loads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.new_directory import new_directory
from keras_bert_layers.checkpoints.files.safetensors_file import write_safetensors
from keras_bert_layers.checkpoints.huggingface.adapter import ADAPTER_CONFIG, PREFIX
from keras_bert_layers.checkpoints.huggingface.writer import HuggingFaceForm
from keras_bert_layers.checkpoints.weights.table import Layout, StoredWeight, Transform, WeightRow, pooler_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel
from keras_bert_layers.layers.lora import is_lora

if TYPE_CHECKING:
    import keras

OWNER = "save_peft"
_CURE = "`save_huggingface` adds LoRA to the weights, and writes the complete model."

# PEFT's types of tasks. A multiple choice has none. That of question answering has a class that leaves out the segments
# and so computes other outputs; without a type, PEFT wraps transformers' own class.
_TASK_TYPES: dict[str | None, str | None] = {
    None: "FEATURE_EXTRACTION",
    "classifier": "SEQ_CLS",
    "cross_encoder": "SEQ_CLS",
    "multiple_choice": None,
    "question_answerer": None,
    "token_classifier": "TOKEN_CLS",
}


def save_peft(
    model: keras.Model, directory: str | os.PathLike[str], *, base: str | os.PathLike[str] | None = None
) -> Path:
    """Writes what LoRA learned, and the head, as an adapter directory of PEFT.

    The directory holds `adapter_config.json` and `adapter_model.safetensors` (float32): the matrices A and B of every
    adapted dense layer and, as `modules_to_save`, the head with the pooler that it reads. It does not hold the rest of
    the encoder, the tokenizer or the names of classes. PEFT has separate layers for query, key and value; each gets
    A, and its third of B. The directory is written atomically.

    | Model | Class in peft |
    |---|---|
    | `BertBackbone` | `AutoPeftModelForFeatureExtraction` |
    | `BertClassifier`, `BertCrossEncoder` | `AutoPeftModelForSequenceClassification` |
    | `BertTokenClassifier` | `AutoPeftModelForTokenClassification` |
    | `BertQuestionAnswerer`, `BertMultipleChoice` | `AutoPeftModel`; PEFT's class for questions drops the segments |

    Give the classes with a classifier `num_labels`, as the base may have another number. The outputs are equal only on
    the base that the backbone was loaded from. That is not checked: what was trained before `enable_lora` is lost.

    `load_task` and `load_backbone` read the two files beside those of the base.

    Args:
        model: a `BertBackbone` or one of the tasks above, after `backbone.enable_lora(rank)`.
        directory: the directory to create; it may exist if it is empty. Parents are created.
        base: the base's name on the hub, or its directory, which `AutoPeftModel...` loads; None to leave it open, for
            `PeftModel.from_pretrained(base_model, directory)`.

    Returns:
        The directory.

    Raises:
        TypeError: the model is not of this package; `directory` or `base` is not a path.
        ValueError: the backbone has no LoRA, or trains other weights too; the task is not in the table; transformers
            has no such model, as in `save_huggingface`.
        CheckpointError: the directory is not empty or cannot be written, for example because the disk is full.

    Examples:
        >>> import pathlib, tempfile
        >>> from keras_bert_layers import BertBackbone, BertConfig, save_peft
        >>> backbone = BertBackbone(
        ...     BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        ... )
        >>> backbone.enable_lora(2)
        >>> directory = save_peft(backbone, pathlib.Path(tempfile.mkdtemp()) / "adapter", base="my/bert")
        >>> sorted(path.name for path in directory.iterdir())
        ['adapter_config.json', 'adapter_model.safetensors']

    References:
        Hu et al. 2022, https://arxiv.org/abs/2106.09685; `save_pretrained` of peft 0.21, peft_model.py.
    """
    if not isinstance(base, str | os.PathLike | None):
        raise TypeError(checks.message(OWNER, "base", "be a name, a path or None", base))
    written = WrittenModel(model, Layout.HUGGINGFACE, owner=OWNER)
    form = HuggingFaceForm(written)
    pooler = pooler_rows(written.backbone.parts)
    written.check_weights(tuple({*form.rows, *pooler}))
    complete = (*(pooler if written.task is not None and written.task.pooled else ()), *written.head)
    _check_lora(written, complete)
    rank, alpha = written.backbone.lora_rank, written.backbone.lora_alpha
    tensors = written.tensors((*complete, *_matrices(form.rows)), lambda name: PREFIX + form.file_name(name))
    names = [name.removeprefix(PREFIX) for name in tensors.infos]
    heads = {name.removeprefix(form.family.names.prefix).split(".")[0] for name in names if ".lora_" not in name}
    task_type, own_class = _TASK_TYPES[written.name], {"base_model_class": form.architecture}
    values = {
        "auto_mapping": None if task_type else {**own_class, "parent_library": "transformers"},
        "base_model_name_or_path": None if base is None else os.fspath(base),
        "bias": "none",
        "inference_mode": True,
        "lora_alpha": rank if alpha is None else alpha,
        "modules_to_save": sorted(heads) or None,
        "peft_type": "LORA",
        "r": rank,
        # The names inside a block.
        "target_modules": sorted({re.sub(r".*\.\d+\.|\.lora_.*", "", name) for name in names if ".lora_" in name}),
        "task_type": task_type,
        "use_rslora": False,
    }
    with new_directory(directory, owner=OWNER) as unfinished:
        write_json(unfinished / ADAPTER_CONFIG, values)
        write_safetensors(unfinished / "adapter_model.safetensors", tensors)
    return Path(directory)


def _check_lora(written: WrittenModel, complete: Sequence[WeightRow]) -> None:
    """Raises ValueError for a model without LoRA, or with more that was trained than an adapter holds."""
    backbone, kind = written.backbone, type(written.model).__name__
    if written.name not in _TASK_TYPES:
        rule = f"be a backbone or one of the tasks {', '.join(filter(None, _TASK_TYPES))}"
        raise ValueError(checks.message(OWNER, "model", rule, kind, f"Save `model.backbone`. {_CURE}"))
    if backbone.lora_rank is None:
        cure = f"Call `enable_lora(rank)` of the backbone before the training. {_CURE}"
        raise ValueError(checks.message(OWNER, "model", "have a backbone with LoRA", kind, cure))
    ends = tuple(row.ours for row in complete)
    others = [weight.path for weight in backbone.trainable_weights if not is_lora(weight)]
    others = [path for path in others if not path.endswith(ends)]
    if others:
        rule = "train only LoRA in its backbone"
        raise ValueError(checks.message(OWNER, "model", rule, f"trainable weights {', '.join(others[:3])}", _CURE))


def _matrices(rows: Iterable[WeightRow]) -> Iterator[WeightRow]:
    """The rows of A, which query, key and value share, and of B, for the kernels in blocks."""
    for row in rows:
        if row.huggingface is not None and re.fullmatch(r"encoder_block_.*/kernel", row.ours):
            ours, theirs = row.ours.removesuffix("kernel"), row.huggingface.name.removesuffix("weight")
            for letter, part in (("a", None), ("b", row.part_index)):
                stored = StoredWeight(f"{theirs}lora_{letter.upper()}.weight", Transform.TRANSPOSE)
                name = f"{ours}lora_kernel_{letter}"
                yield WeightRow(name, huggingface=stored, part_index=part, num_parts=row.num_parts)
