"""`write_sentence_transformers`: writes the files that sentence-transformers adds to a BERT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.safetensors_writer import write_safetensors
from keras_bert_layers.checkpoints.sentence_transformers.modules import DENSE_ACTIVATIONS, MODULES_FILE, POOLING_FLAGS
from keras_bert_layers.checkpoints.weights.row import Layout
from keras_bert_layers.checkpoints.weights.table import DENSE_PROJECTION_ROWS
from keras_bert_layers.checkpoints.written_model import WrittenModel

# The import paths up to release 5.3, which later releases read too.
_MODULE = "sentence_transformers.models"
_ACTIVATION = "torch.nn.modules.activation"


def check_projection(owner: str, model: Any) -> None:
    """Refuses a dense layer if torch has no class for its activation."""
    if getattr(model, "projection_dim", None) is not None:
        name = "model.projection_activation"
        checks.one_of(owner, name, model.projection_activation, list(DENSE_ACTIVATIONS.values()))


def write_sentence_transformers(directory: Path, model: Any, *, max_length: int | None) -> None:
    """Writes the modules after the encoder: pooling, a dense layer if there is one, normalization.

    Args:
        directory: the directory of the encoder's own files.
        model: a `BertSentenceEncoder`, or a `BertDualEncoder` with one encoder.
        max_length: the maximum length in tokens, special tokens included; None if it is not known.

    References:
        sentence-transformers 2 to 6 read these files.
    """
    width = model.backbone.config.hidden_dim
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    (directory / "1_Pooling").mkdir()
    flags = {flag: mode == model.pooling for flag, mode in POOLING_FLAGS.items()}
    pooling = {"word_embedding_dimension": width, **flags, "include_prompt": True}
    write_json(directory / "1_Pooling" / "config.json", pooling)
    if getattr(model, "projection_dim", None) is not None:
        modules.append(("Dense", "2_Dense"))
        _write_dense(directory / "2_Dense", model)
    if model.normalize:
        modules.append(("Normalize", f"{len(modules)}_Normalize"))
        (directory / modules[-1][1]).mkdir()
    chain = [
        {"idx": index, "name": str(index), "path": path, "type": f"{_MODULE}.{kind}"}
        for index, (kind, path) in enumerate(modules)
    ]
    write_json(directory / MODULES_FILE, chain)
    if max_length is not None:
        write_json(directory / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})
    settings: dict[str, Any] = {
        "model_type": "SentenceTransformer",
        "prompts": {},
        "default_prompt_name": None,
        # As our models compare two vectors.
        "similarity_fn_name": "cosine" if model.normalize or not hasattr(model, "symmetric") else "dot",
    }
    write_json(directory / "config_sentence_transformers.json", settings)


def _write_dense(folder: Path, model: Any) -> None:
    folder.mkdir()
    (name,) = (theirs for theirs, ours in DENSE_ACTIVATIONS.items() if ours == model.projection_activation)
    values = {
        "in_features": model.backbone.config.hidden_dim,
        "out_features": model.projection_dim,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity" if name == "Identity" else f"{_ACTIVATION}.{name}",
    }
    write_json(folder / "config.json", values)
    written = WrittenModel(model, Layout.HUGGINGFACE, owner="save_huggingface")
    tensors = written.tensors(DENSE_PROJECTION_ROWS, lambda name: name.removeprefix("dense."))
    write_safetensors(folder / "model.safetensors", tensors)
