"""`KerasHubNotes`: what KerasHub's own files have no words for, kept beside them in a preset."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.json_file import read_json_object
from keras_bert_layers.checkpoints.notes import KEY, checked_config
from keras_bert_layers.config import BertConfig

METADATA_FILE = "metadata.json"

# What each part may say, and of which type.
_PARTS = {"config": dict, "tokenizer": dict, "task": str, "options": dict}
_OPTIONS: dict[str, dict[str, Any]] = {
    "classifier": {
        "class_names": list,
        "problem_type": str,
        "threshold": (float, type(None)),
        "pairs": (bool, type(None)),
    },
    "cross_encoder": {},
    "masked_lm": {"head_activation": str, "head_layer_norm_epsilon": float},
    "sentence_encoder": {},
}


@dataclasses.dataclass(frozen=True)
class KerasHubNotes:
    """What KerasHub's own files have no words for, kept beside them in a preset.

    It stands in `metadata.json`, which KerasHub writes and does not read, under a key of its own. Whenever KerasHub
    saves a model into the directory, it writes that file anew: the notes go when the weights change that they speak of.

    Args:
        config: the encoder's config, with its GELU and its epsilon; None if there are no notes.
        tokenizer: the tokenizer's arguments, without the vocabulary.
        task: the task's name, a `task` of `load_task`; None for a bare encoder.
        options: what of the task's arguments KerasHub does not know.

    References:
        `_save_metadata` in keras_hub, src/utils/preset_utils.py. docs/decisions/0011-what-kerashub-cannot-say.md.
    """

    config: BertConfig | None = None
    tokenizer: dict[str, Any] | None = None
    task: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> KerasHubNotes:
        """The notes of a preset; empty ones if there are none.

        Args:
            root: the preset's directory.

        Raises:
            CheckpointError: the file is damaged, or the notes are not what this package writes.
        """
        path = root / METADATA_FILE
        values = read_json_object(path).get(KEY) if path.is_file() else None
        if values is None:
            return cls()
        where = f"{path}: `{KEY}`"
        config = checked_config(where, values, _PARTS, _OPTIONS)
        return cls(**{**values, "config": config})

    def to_dict(self) -> dict[str, Any]:
        """What `read` reads, as plain values."""
        parts = {**dataclasses.asdict(self), "config": self.config and self.config.to_dict()}
        return {name: value for name, value in parts.items() if value is not None and value != {}}
