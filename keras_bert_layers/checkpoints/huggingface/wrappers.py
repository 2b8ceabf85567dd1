"""`unwrapped`: removes what training loops put into the names of tensors."""

from __future__ import annotations

from keras_bert_layers.checkpoints.checkpoint_error import first_names
from keras_bert_layers.checkpoints.files.named_tensors import renamed
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile

# First parts of a name: torch's DataParallel and DistributedDataParallel; the usual attribute of a LightningModule.
_FIRST = ("module", "model")
# torch.compile, FSDP and activation checkpointing wrap any module, so theirs are anywhere in a name.
_ANYWHERE = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
_PREFIXES_IN_A_LINE = 3


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
    found = renamed(file, unwrapped_name, where)
    changed = {name: unwrapped_name(name) for name in file.infos if unwrapped_name(name) != name}
    if not changed:
        return file, []
    removed = {name.removesuffix(new) if name.endswith(new) else "_orig_mod." for name, new in changed.items()}
    prefixes = first_names(sorted(removed), _PREFIXES_IN_A_LINE)
    return found, [f"{prefixes} was removed from the names of {len(changed)} tensors"]
