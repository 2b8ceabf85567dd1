"""Reads the files that sentence-transformers adds to a BERT: modules, pooling, dense layers, prompts, lengths."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint import Doubt, DoubtKind, TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, TensorInfo
from keras_bert_layers.checkpoints.weights.table import dense_projection_rows

MODULES_FILE, ROUTER_FILE = "modules.json", "router_config.json"
MODEL_FILE = "config_sentence_transformers.json"
ENCODER_FILE = "sentence_bert_config.json"
TOKEN_VECTORS = "token_embeddings"

# A class is written as its import path, which changed between releases: sentence_transformers.models.Pooling up to
# 5.3, sentence_transformers.sentence_transformer.modules.pooling.Pooling from 5.4. Only its last part is stable.
# PyLate's dense layer is the same as that of sentence-transformers.
_PACKAGE = ("sentence_transformers.", "pylate.models.Dense.")
_CHAIN = (
    "Transformer, Pooling, any number of Dense, and Normalize or nothing at the end; or Transformer, SpladePooling, of "
    "which a Router with SparseStaticEmbedding for queries may be the side of documents"
)
_CURE = "Load the encoder alone with `load_backbone`, and add the rest in Keras."
_ROUTER = (
    "Load one encoder alone: 'sparse_encoder' of `document_0_Transformer`, with the settings of its SpladePooling."
)

# sentence_transformer/modules/pooling.py: one flag for each mode up to 5.3, the key `pooling_mode` from 5.4. Several
# modes are put side by side in this order, or in that of the key.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


# Dense and CrossEncoder of sentence-transformers write the import path of a class of torch.nn; these are its last part.
ACTIVATIONS = {
    **{name: name.lower() for name in ("Tanh", "ReLU", "ReLU6", "SiLU", "Mish", "Sigmoid", "ELU", "Softplus")},
    **{"Identity": "linear", "GELU": "gelu_erf", "LeakyReLU": "leaky_relu"},
}
SIDES = ("query", "document")


def transformer_folder(root: Path) -> str:
    """The folder of `config.json` and the weights, relative to the checkpoint's root.

    Args:
        root: the checkpoint's directory.

    Returns:
        "" for the root itself: without a `modules.json`, and in every layout but the oldest.

    Raises:
        CheckpointError: `modules.json` is damaged or points outside the directory, or no module is a transformer.
    """
    modules = read_modules(root)
    found = next((folder for kind, folder in modules if kind.endswith("Transformer")), None)
    if modules and found is None:
        raise other_chain(root, [kind for kind, _ in modules])
    return found or ""


def sentence_encoder_options(root: Path, *, hidden_dim: int) -> dict[str, Any]:
    """The arguments of a `BertSentenceEncoder` for a sentence-transformers checkpoint.

    Args:
        root: the checkpoint's directory; it has a `modules.json`.
        hidden_dim: the encoder's width, which the pooling must have too.

    Returns:
        `pooling` and `normalize`; with dense layers also `projection_dim` and `projection_activation`; where they are
        stated, `truncate_dim`, `prompts` and `default_prompt`.

    Raises:
        CheckpointError: `BertSentenceEncoder` does not have this chain of modules or these settings.
    """
    path = root / MODEL_FILE
    kind = json_file.optional_json(path).get("model_type", "SentenceTransformer")
    json_file.check_one_of(path, "model_type", kind, ("SentenceTransformer",))
    # Dropout does nothing outside training.
    modules = [(kind, folder) for kind, folder in read_modules(root) if kind != "Dropout"]
    kinds, folders = [kind for kind, _ in modules], [root / folder for _, folder in modules]
    inner = [*kinds[2:]]
    while inner[-1:] == ["Normalize"]:  # the second of two changes nothing
        inner.pop()
    if kinds[:2] != ["Transformer", "Pooling"] or set(inner) - {"Dense"}:
        raise other_chain(root, kinds)
    check_encoder(folders[0] / ENCODER_FILE)
    prompts = read_prompts(root)
    pooling = _pooling(folders[1] / "config.json", hidden_dim, prompts)
    options: dict[str, Any] = {"pooling": pooling, "normalize": kinds[-1] == "Normalize"}
    for folder in folders[2 + len(inner) :]:
        _check_names(folder / "config.json")
    width = hidden_dim if isinstance(pooling, str) else hidden_dim * len(pooling)
    layers = []
    for folder in folders[2 : 2 + len(inner)]:
        layers.append(_projection(folder / "config.json", width))
        width = layers[-1][0]
    if layers:
        dims, activations = zip(*layers, strict=True)
        several = len(layers) > 1
        options["projection_dim"] = dims if several else dims[0]
        options["projection_activation"] = activations if several else activations[0]
    truncate_dim = read_truncation(root)
    if truncate_dim is not None and truncate_dim < width:
        options["truncate_dim"] = truncate_dim
    return {**options, **prompts}


def dense_folders(root: Path) -> dict[str, Path]:
    """The folders of the layers beside the encoder, by the first part of their names in the table of weights.

    They are the dense layers after the pooling, and the weights of queries that are looked up.
    """
    folders = [root / folder for kind, folder in read_modules(root) if kind == "Dense"]
    found = {f"dense.{index}" if index else "dense": folder for index, folder in enumerate(folders)}
    queries = query_folder(root)
    return found if queries is None else {"queries": queries, **found}


def query_folder(root: Path) -> Path | None:
    """The folder of the weights of queries that are looked up; None for none."""
    kind, folder = next(iter(read_modules(root, "query")), ("", ""))
    return root / folder if kind == "SparseStaticEmbedding" else None


def other_chain(root: Path, kinds: list[str]) -> CheckpointError:
    """The error for modules that no task here has."""
    cure = _ROUTER if "Router" in kinds else _CURE
    return CheckpointError(f"{root / MODULES_FILE}: the modules must be {_CHAIN}. Received: {kinds}. {cure}")


def read_modules(root: Path, side: str = "document") -> list[tuple[str, str]]:
    """Class name and folder of each module, in order; none without a `modules.json`.

    Of a Router whose queries are looked up, they are the modules of a side, "query" or "document".
    """
    path = root / MODULES_FILE
    modules = json_file.read_json(path) if path.is_file() else []
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise CheckpointError(f"{path}: must hold a JSON list of modules.")
    found = []
    for module in modules:
        kind, folder = module.get("type"), module.get("path", "")
        if not isinstance(kind, str) or not (kind.startswith(_PACKAGE) or _chooses_adapters(root, kind, folder)):
            raise CheckpointError(
                f"{path}: a module's type must be a class of sentence_transformers. Received: {kind!r}. "
                "A checkpoint's own code is never run."
            )
        if not json_file.is_file_name(folder):
            raise CheckpointError(f"{path}: a module's path must be a folder of the checkpoint. Received: {folder!r}.")
        found.append((kind.rpartition(".")[2], folder))
    sides = _sides(root / folder / ROUTER_FILE) if [kind for kind, _ in found] == ["Router"] else {}
    is_looked_up = [kind for kind, _ in sides.get("query", ())] == ["SparseStaticEmbedding"]
    return [(kind, f"{folder}/{own}".strip("/")) for kind, own in sides[side]] if is_looked_up else found


def _sides(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Class name and folder of the modules of queries and documents of a Router."""
    values = json_file.optional_json(path)
    types, found = json_file.check_object(path, "types", values.get("types") or {}), {}
    for side, folders in json_file.check_object(path, "structure", values.get("structure") or {}).items():
        listed = folders if isinstance(folders, list) else ()
        known = [folder for folder in listed if json_file.is_file_name(folder) and isinstance(types.get(folder), str)]
        if side not in SIDES or known != folders or not all(types[name].startswith(_PACKAGE) for name in known):
            received = json_file.shown(folders)
            rule = "`structure` must have the folders of modules of sentence_transformers, of 'query' and 'document'"
            raise CheckpointError(f"{path}: {rule}. Received: {side!r}: {received}.")
        found[side] = [(types[folder].rpartition(".")[2], folder) for folder in known]
    return found if len(found) == len(SIDES) else {}


def _chooses_adapters(root: Path, kind: str, folder: object) -> bool:
    """Whether a module is the transformer of Jina embeddings v3, whose own code only chooses an adapter by a name."""
    if kind != "custom_st.Transformer" or not json_file.is_file_name(folder):
        return False
    values = json_file.optional_json(root / str(folder) / "config.json")
    return (values.get("model_type"), values.get("position_embedding_type")) == ("xlm-roberta", "rotary")


def module_config(path: Path, module: str) -> dict[str, Any]:
    """The content of a module's `config.json`; CheckpointError if there is none."""
    if not path.is_file():
        raise CheckpointError(f"{path}: the {module}'s config is missing. Copy all files of the checkpoint.")
    return json_file.read_json_object(path)


def check_encoder(path: Path, task: str = "feature-extraction", output: str = "last_hidden_state") -> None:
    """Refuses to pool another output of the encoder, by the keys of `sentence_bert_config.json` from 5.4 on."""
    values = json_file.optional_json(path)
    for key, value in (("transformer_task", task), ("module_output_name", TOKEN_VECTORS)):
        json_file.check_one_of(path, key, values.get(key, value), (value,), _CURE)
    modalities = json_file.check_object(path, "modality_config", values.get("modality_config") or {})
    text = json_file.check_object(path, "modality_config.text", modalities.get("text") or {})
    json_file.check_one_of(path, "method_output_name", text.get("method_output_name", output), (output,), _CURE)


def _pooling(path: Path, hidden_dim: int, prompts: dict[str, Any]) -> str | tuple[str, ...]:
    values = module_config(path, "pooling")
    width = values.get("embedding_dimension", values.get("word_embedding_dimension", hidden_dim))
    json_file.check_one_of(path, "embedding_dimension", width, (hidden_dim,), "It is the encoder's width.")
    known = list(POOLING_FLAGS.values())
    flags = [mode for flag, mode in POOLING_FLAGS.items() if values.get(flag)]
    modes = values.get("pooling_mode", flags or ["mean"])
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes or not all(mode in known for mode in modes):
        received = json_file.shown(modes)
        raise CheckpointError(f"{path}: the pooling must be one or several of {known}. Received: {received}.")
    if prompts:
        cure = f"Pooling without the tokens of a prompt is not implemented. {_CURE}"
        json_file.check_one_of(path, "include_prompt", bool(values.get("include_prompt", True)), (True,), cure)
    return modes[0] if len(modes) == 1 else tuple(modes)


def _projection(path: Path, width: int) -> tuple[int, str]:
    """Width and activation of a dense layer on vectors of a width."""
    values = module_config(path, "dense layer")
    _check_names(path)
    json_file.check_one_of(path, "use_residual", bool(values.get("use_residual")), (False,), _CURE)
    json_file.check_one_of(path, "in_features", values.get("in_features"), (width,), "It is the width before it.")
    dim = json_file.check_integer(path, "out_features", values.get("out_features"), least=1)
    activation = values.get("activation_function", "torch.nn.modules.activation.Tanh")
    return dim, read_activation(path, "activation_function", activation)


def _check_names(path: Path) -> None:
    """Refuses a module that reads or writes something else than the vector."""
    values = json_file.optional_json(path)
    for key in ("module_input_name", "module_output_name"):
        if values.get(key) is not None:
            json_file.check_one_of(path, key, values[key], ("sentence_embedding",))


def read_activation(path: Path, key: str, value: object) -> str:
    """Our name of an activation; CheckpointError, with the value, for one that is not implemented.

    Args:
        path: the file, for errors.
        key: the key in it.
        value: the import path, such as `"torch.nn.modules.activation.Tanh"`.
    """
    name = value.rpartition(".")[2] if isinstance(value, str) and value.startswith("torch.") else None
    if name not in ACTIVATIONS:
        raise CheckpointError(
            f"{path}: `{key}` must be one of torch.nn's {list(ACTIVATIONS)}. Received: {json_file.shown(value)}. "
            "Load the encoder with `load_backbone`, and add the rest in Keras."
        )
    return ACTIVATIONS[name]


def written_activation(activation: str) -> str:
    """The import path of one of the values of `ACTIVATIONS`."""
    (name,) = (theirs for theirs, ours in ACTIVATIONS.items() if ours == activation)
    return f"torch.nn.modules.{'linear' if name == 'Identity' else 'activation'}.{name}"


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
        json_file.check_one_of(path, "default_prompt_name", default, [*prompts, *SIDES])
    if not any(prompts.values()):
        return {}
    return {"prompts": prompts, **({"default_prompt": default} if default in prompts else {})}


def side_prompts(options: Mapping[str, Any]) -> dict[str, Any]:
    """The argument `prompts` of a dual encoder, of what `read_prompts` returned."""
    prompts = {side: text for side, text in options.get("prompts", {}).items() if text and side in SIDES}
    return {"prompts": prompts} if prompts else {}


def unused_prompts(root: Path, prompts: Mapping[str, str]) -> tuple[Doubt, ...]:
    """A doubt about a prompt for documents that `encode_document` of sentence-transformers does not use, if any."""
    # sentence_transformer/model.py: there always is a prompt "document", if only an empty one, and it comes first.
    unused = [name for name in ("passage", "corpus") if prompts.get(name)]
    if not unused or prompts.get("document"):
        return ()
    text = (
        f"{root / MODEL_FILE}: documents are encoded without the prompt {prompts[unused[0]]!r}, as by "
        f"`encode_document` of sentence-transformers, whose prompt 'document' is empty. "
        f"Give `predict` prompt={unused[0]!r}."
    )
    return (Doubt(DoubtKind.PROMPTS, text),)


def other_similarity(root: Path, *, normalizes: bool) -> str | None:
    """How sentence-transformers compares the vectors, where it is not the cosine; None where it is."""
    stated = json_file.optional_json(root / MODEL_FILE).get("similarity_fn_name")
    return None if stated in (None, "cosine") or (stated == "dot" and normalizes) else str(stated)


def doubts_of_similarity(root: Path, options: Mapping[str, Any]) -> tuple[Doubt, ...]:
    """A doubt about vectors of a sentence encoder that are not compared by the cosine, if any."""
    stated = other_similarity(root, normalizes=options["normalize"])
    if stated is None:
        return ()
    is_of_dual_encoder = stated == "dot" and fits_dual_encoder(options)
    cure = 'Load it with task="dual_encoder"' if is_of_dual_encoder else "Compare the vectors of `predict` yourself"
    rule = "`similarity` and searches of a BertSentenceEncoder compare by the cosine"
    return (Doubt(DoubtKind.OUTPUTS, f"{root / MODEL_FILE}: `similarity_fn_name` is {stated!r}, but {rule}. {cure}."),)


def fits_dual_encoder(options: Mapping[str, Any]) -> bool:
    """Whether a dual encoder has the same vectors as the sentence encoder of these arguments."""
    return not {"projection_dim", "truncate_dim"} & set(options)


def read_truncation(root: Path) -> int | None:
    """How many of the first features of a vector are kept; None for all."""
    path = root / MODEL_FILE
    width = json_file.optional_json(path).get("truncate_dim")
    return None if width is None else json_file.check_integer(path, "truncate_dim", width, least=1)


def text_settings(folder: Path) -> tuple[int | None, bool]:
    """The settings for texts in `sentence_bert_config.json`.

    Args:
        folder: the folder of `config.json`.

    Returns:
        The maximum length in tokens, [CLS] and [SEP] included, or None if it is not stated (from release 5.4 on it is
        `model_max_length` in `tokenizer_config.json` only); and whether text is lower-cased before tokenization.

    Raises:
        CheckpointError: a value of the wrong type.
    """
    path = folder / ENCODER_FILE
    values = json_file.optional_json(path)
    length, lowercase = values.get("max_seq_length"), values.get("do_lower_case", False)
    if length is not None:
        json_file.check_integer(path, "max_seq_length", length, least=3)
    return length, json_file.check_boolean(path, "do_lower_case", lowercase)


def encoder_heads(root: Path, *, hidden_dim: int) -> tuple[TrainedHead, ...]:
    """The sentence encoder, and the dual encoder if it has the same vectors; see `sentence_encoder_options`."""
    options = sentence_encoder_options(root, hidden_dim=hidden_dim)
    doubts = unused_prompts(root, options.get("prompts", {}))
    rows = dense_projection_rows(len(dense_folders(root)))
    compared = doubts_of_similarity(root, options)
    sentence_encoder = TrainedHead("sentence_encoder", options, rows, doubts=doubts + compared)
    if not fits_dual_encoder(options):
        return (sentence_encoder,)
    shared = {name: options[name] for name in ("pooling", "normalize")}
    return sentence_encoder, TrainedHead("dual_encoder", {**shared, **side_prompts(options)}, doubts=doubts)


class DenseTensors:
    """The tensors of a layer beside the encoder, of a dense one with a bias of zeros if it was made without a bias.

    Args:
        stored: the tensors of its file: `linear.weight`, and `linear.bias` if it has one; or `weight`, of queries.
    """

    def __init__(self, stored: TensorFile):
        self._stored = stored
        self.infos = dict(stored.infos)
        if "linear.weight" in self.infos:
            dtype, shape = self.infos["linear.weight"]
            self.infos.setdefault("linear.bias", TensorInfo(dtype, shape[:1]))

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor as float32, in its stored shape."""
        is_stored = name in self._stored.infos
        values = self._stored.read(name) if is_stored else np.zeros(self.infos[name].shape, np.float32)
        if name == "weight" and values.min(initial=0) < 0:
            raise CheckpointError(f"{name}: the weights of queries must be at least 0. Received: {values.min()}.")
        return values
