"""The settings in `config_sentence_transformers.json`: prompts, and how many features are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.files.json_file import shown

# Dense and CrossEncoder of sentence-transformers write the import path of a class of torch.nn; these are its last part.
ACTIVATIONS = {
    **{name: name.lower() for name in ("Tanh", "ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid")},
    **{"Identity": "linear", "GELU": "gelu_erf"},
}


def read_activation(path: Path, key: str, value: Any) -> str:
    """Our name of an activation; CheckpointError, with the value, for one that is not implemented.

    Args:
        path: the file, for errors.
        key: the key in it.
        value: the import path, such as `"torch.nn.modules.activation.Tanh"`.
    """
    name = value.rpartition(".")[2] if isinstance(value, str) and value.startswith("torch.") else None
    if name not in ACTIVATIONS:
        raise CheckpointError(
            f"{path}: `{key}` must be one of torch.nn's {list(ACTIVATIONS)}. Received: {shown(value)}. "
            "Load the encoder with `load_backbone`, and add the rest in Keras."
        )
    return ACTIVATIONS[name]


def written_activation(activation: str) -> str:
    """The import path of one of the values of `ACTIVATIONS`."""
    (name,) = (theirs for theirs, ours in ACTIVATIONS.items() if ours == activation)
    return f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}"


MODEL_FILE = "config_sentence_transformers.json"
_SIDES = ("query", "document")


def read_prompts(root: Path) -> dict[str, Any]:
    """The arguments `prompts` and `default_prompt` of a task; empty if no prompt has a text.

    Raises:
        CheckpointError: `prompts` does not hold strings; the default one is not among them.
    """
    path = root / MODEL_FILE
    values = json_file.optional_json(path)
    prompts = json_file.check_object(path, "prompts", values.get("prompts") or {})
    prompts = {name: "" if text is None else text for name, text in prompts.items()}
    default = values.get("default_prompt_name")
    for name, text in prompts.items():
        if not isinstance(text, str):
            raise CheckpointError(f"{path}: a prompt must be a string. Received: {name}={json_file.shown(text)}.")
    if default is not None:
        # sentence-transformers adds these two, without a text.
        json_file.check_one_of(path, "default_prompt_name", default, [*prompts, *_SIDES])
    if not any(prompts.values()):
        return {}
    return {"prompts": prompts, **({"default_prompt": default} if default in prompts else {})}


def side_prompts(options: Mapping[str, Any]) -> dict[str, Any]:
    """The argument `prompts` of a dual encoder, of what `read_prompts` returned."""
    prompts = {side: text for side, text in options.get("prompts", {}).items() if text and side in _SIDES}
    return {"prompts": prompts} if prompts else {}


def unused_prompts(root: Path, prompts: Mapping[str, str]) -> tuple[str, ...]:
    """A warning of a prompt for documents that the `encode_document` of sentence-transformers does not use, if any."""
    # sentence_transformer/model.py: there always is a prompt "document", if only an empty one, and it comes first.
    unused = [name for name in ("passage", "corpus") if prompts.get(name)]
    if not unused or prompts.get("document"):
        return ()
    return (
        f"{root / MODEL_FILE}: documents are encoded without the prompt {prompts[unused[0]]!r}, as by "
        f"`encode_document` of sentence-transformers, whose prompt 'document' is empty. "
        f"Give `predict` prompt={unused[0]!r}.",
    )


def read_truncation(root: Path) -> int | None:
    """How many of the first features of a vector are kept; None for all."""
    path = root / MODEL_FILE
    width = json_file.optional_json(path).get("truncate_dim")
    return None if width is None else json_file.check_integer(path, "truncate_dim", width, least=1)
