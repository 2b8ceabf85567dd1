"""The metadata in a preset's `metadata.json`: our settings that KerasHub's format does not have.

KerasHub writes that file and does not read it. It writes a new one whenever it saves a model into the directory, so the
metadata is removed when the weights that it belongs to change.

References:
    `_save_metadata` in keras_hub, src/utils/preset_utils.py. docs/decisions/0011-what-kerashub-cannot-say.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.files.json_file import optional_json
from keras_bert_layers.checkpoints.files.metadata import KEY, Metadata

METADATA_FILE = "metadata.json"

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


def read_metadata(root: Path) -> Metadata | None:
    """Reads the metadata of a preset; None if there is none.

    Raises:
        CheckpointError: the file is damaged, or this package did not write the metadata.
    """
    path = root / METADATA_FILE
    values = optional_json(path).get(KEY)
    return None if values is None else Metadata.from_dict(f"{path}: `{KEY}`", values, _OPTIONS)
