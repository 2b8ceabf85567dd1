"""Finds and opens the file of a HuggingFace directory that holds the weights."""

import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, first_names, missing, naming
from keras_bert_layers.checkpoints.files.hdf5_file import TfModelFile
from keras_bert_layers.checkpoints.files.safetensors_file import SafetensorsFile
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tensor_views import ScaledTensors, TensorView, sharded_tensors
from keras_bert_layers.checkpoints.files.torch_file import TorchFile
from keras_bert_layers.checkpoints.huggingface.adapter import ADAPTER_CONFIG, missing_base

# First parts of a name: torch's DataParallel and DistributedDataParallel; the usual attribute of a LightningModule.
_FIRST = ("module", "model")
# torch.compile, FSDP and activation checkpointing wrap any module, so theirs are anywhere in a name.
_ANYWHERE = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# Attributes that hold an encoder in the modules of sentence-transformers and of users. They are wrappers only before
# the tensor that every encoder has: some are BERT's own names further in.
_HOLDERS = frozenset(("0", "auto_model", "backbone", "encoder", "model", "net", "text_encoder", "transformer"))
_EVERYWHERE = "embeddings.word_embeddings.weight"
_PREFIXES_IN_A_LINE = 3

# The first of these files that exists is read. Pickles, which can hold programs, are after safetensors.
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "tf_model.h5",
)
# The same files with a variant's name in them, as `save_pretrained(variant="fp16")` writes them.
_VARIANTS = (
    re.compile(r"model\.([^.]+)\.safetensors"),
    re.compile(r"model\.safetensors\.index\.([^.]+)\.json"),
    re.compile(r"pytorch_model\.([^.]+)\.bin"),
    re.compile(r"pytorch_model\.bin\.index\.([^.]+)\.json"),
)
_SHARD = re.compile(r".*-\d{5}-of-\d{5}\..*")
ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
SUFFIXES = (".safetensors", *_TORCH_SUFFIXES, ".h5")
"""How the name of a file with weights ends, shards' indices apart."""

# What other programs read: no weights for this package.
_OTHER_FORMATS = {
    "onnx": "ONNX Runtime's models",
    "openvino": "OpenVINO's models",
    "coreml": "Core ML's models",
    "model.onnx": "ONNX Runtime's model",
    "flax_model.msgpack": "Flax's weights",
    "rust_model.ot": "the weights for rust-bert",
    "saved_model": "a SavedModel",
}


def unwrapped_name(name: str) -> str:
    """A tensor's name without the wrappers of training loops, in any combination.

    Examples:
        >>> unwrapped_name("_orig_mod.module.model.bert.pooler._orig_mod.dense.bias")
        'bert.pooler.dense.bias'
        >>> unwrapped_name("bert.pooler.dense.bias")
        'bert.pooler.dense.bias'
    """
    parts = [part for part in name.split(".") if part not in _ANYWHERE]
    while len(parts) > 1 and parts[0] in _FIRST:
        del parts[0]
    return ".".join(parts)


def unwrapped(file: TensorFile, where: object) -> tuple[TensorFile, list[str]]:
    """The tensors of a file without the wrappers in their names, and a line for the report if there were any.

    Args:
        file: the file.
        where: its path, for errors.

    Raises:
        CheckpointError: without the wrappers, two tensors have the same name.
    """
    names: dict[str, str] = {}
    plain = {stored: unwrapped_name(stored) for stored in file.infos}
    holder = _holder(plain.values())
    for stored, held in plain.items():
        name = held.removeprefix(holder)
        if name in names:
            raise CheckpointError(
                f"{where}: must hold one model. Found: the tensors {names[name]!r} and {stored!r}, which are the same "
                "weight of two. Save the one that you want alone."
            )
        names[name] = stored
    changed = {stored: name for name, stored in names.items() if name != stored}
    if not changed:
        return file, []
    removed = {name.removesuffix(new) if name.endswith(new) else "_orig_mod." for name, new in changed.items()}
    prefixes = first_names(sorted(removed), _PREFIXES_IN_A_LINE)
    view = TensorView({name: (file, stored) for name, stored in names.items()})
    return view, [f"{prefixes} was removed from the names of {len(changed)} tensors"]


def _holder(names: Iterable[str]) -> str:
    """What is before the names of the only encoder in a file, such as `"net."`; "" for several encoders."""
    found = [name.removesuffix(_EVERYWHERE) for name in names if name.endswith(_EVERYWHERE)]
    parts = found[0].split(".")[:-1] if len(found) == 1 else []
    return "".join(f"{part}." for part in itertools.takewhile(_HOLDERS.__contains__, parts))


def find_weights(folder: Path, *, owner: str) -> tuple[Path, str | None]:
    """Finds the file with the weights, or the index of its shards.

    One of `WEIGHTS`; else the only variant, such as `model.fp16.safetensors`; else the only `.safetensors` file.

    Args:
        folder: the folder.
        owner: the public function that was called, for errors.

    Returns:
        The file, and a line for the report if it does not have one of the usual names.

    Raises:
        CheckpointError: there are no weights, or several files that could hold them.
    """
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    plain = next((name for name in WEIGHTS if name in names), None)
    if plain is not None:
        return folder / plain, None
    variants: dict[str, str] = {}
    for kind in _VARIANTS:
        for name in names:
            if (match := kind.fullmatch(name)) and not _SHARD.fullmatch(name):
                variants.setdefault(match[1], name)
    others = [name for name in names if name.endswith(".safetensors") and not _SHARD.fullmatch(name)]
    others = [name for name in others if name not in ADAPTER_WEIGHTS]
    candidates = list(variants.values()) or others
    if len(candidates) > 1:
        raise CheckpointError(
            f"`{owner}`: {folder} must hold one file of weights. Found: {', '.join(candidates)}. "
            f"Give the path of one: {str(folder / candidates[0])!r}."
        )
    if not candidates and (folder / ADAPTER_CONFIG).is_file():
        raise missing_base(folder)
    if not candidates:
        raise missing(folder, f"weights, one of {', '.join(WEIGHTS)}", _cure(folder), owner=owner)
    kind_of_file = "variant" if variants else "safetensors file"
    return folder / candidates[0], f"the weights are {candidates[0]}, the only {kind_of_file}"


def open_weights(folder: Path, chosen: str | None = None, *, owner: str) -> tuple[TensorFile, list[str]]:
    """Opens the file with the weights, without the wrappers of training loops in the names of its tensors.

    Args:
        folder: the folder.
        chosen: the file that the user named; None for `find_weights`.
        owner: the public function that was called, for errors.

    Returns:
        The tensors, and the lines for the report.

    Raises:
        CheckpointError: see `find_weights` and the readers.
    """
    named = None if chosen in ADAPTER_WEIGHTS else chosen  # an adapter alone is not a model
    asked = (folder / named, f"the weights are {named}, as asked") if named else None
    path, note = asked or find_weights(folder, owner=owner)
    with naming(path):
        tensors = sharded_tensors(path, _reader(path)) if path.suffix == ".json" else _reader(path)(path)
    notes = [*([note] if note else []), *getattr(tensors, "notes", ())]
    if ".safetensors" in path.name:
        scaled = ScaledTensors(tensors, path)
        if scaled.num_scaled:
            tensors = scaled
            notes.append(f"{scaled.num_scaled} tensors of 8 bits were multiplied by their scales")
    found, lines = unwrapped(tensors, path)
    return found, [*notes, *lines]


def open_adapter(folder: Path, *, owner: str) -> TensorFile:
    """Opens the weights of the PEFT adapter in a folder."""
    for name in ADAPTER_WEIGHTS:
        if (folder / name).is_file():
            with naming(folder / name):
                return _reader(folder / name)(folder / name)
    raise missing(folder, f"{' or '.join(ADAPTER_WEIGHTS)} beside {ADAPTER_CONFIG}", owner=owner)


def _reader(path: Path) -> Callable[[Path], TensorFile]:
    """The reader by the file's name; an index is named after its shards."""
    name = path.name.partition(".index.")[0]
    if name.endswith(".h5"):
        return TfModelFile
    return TorchFile if name.endswith(_TORCH_SUFFIXES) else SafetensorsFile


def _cure(folder: Path) -> str:
    """What to do about a folder without weights that are read here."""
    found = {path.name for path in folder.iterdir()}
    others = [f"{name} ({what})" for name, what in _OTHER_FORMATS.items() if name in found]
    own = sorted(name for name in found if name.endswith(SUFFIXES) and name not in ADAPTER_WEIGHTS)
    cure = f"Not read here: {', '.join(others)}. " if others else ""
    if own:
        return f"{cure}If {own[0]} holds the weights, give its path: {str(folder / own[0])!r}."
    return f"{cure}Copy the model's model.safetensors or pytorch_model.bin too."
