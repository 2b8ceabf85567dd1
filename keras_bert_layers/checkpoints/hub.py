"""`resolve`: from the name of a published model to a directory on this machine."""

from __future__ import annotations

import difflib
import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.hub_snapshot import hub_snapshot
from keras_bert_layers.checkpoints.kerashub_preset import PREFIXES as KERASHUB_PREFIXES
from keras_bert_layers.checkpoints.kerashub_preset import download_preset
from keras_bert_layers.presets import PRESETS

PREFIX = "hf://"

REPOSITORIES: Mapping[str, str] = MappingProxyType(
    {
        **{name: f"google/{name}" for name in PRESETS if name.startswith("bert_uncased_L-")},
        **{name: f"google-bert/{name.replace('_', '-')}" for name in PRESETS if not name.startswith("bert_uncased_L-")},
    }
)
"""Preset -> the repository of the HuggingFace hub that holds its weights.

Their config.json says "gelu" in HuggingFace's sense, the erf form, although Google trained with the tanh form; the file
decides, so that the numbers are those of transformers.
"""

_REPOSITORY = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_NAME = re.compile(rf"{PREFIX}(?P<repository>{_REPOSITORY})(?:@(?P<revision>\S+))?", re.ASCII)
# How alike a name and a preset must be for the one to be taken for a slip of the other.
_SLIP = 0.8


def resolve(source: str | os.PathLike[str], *, owner: str, weights: bool = True) -> str | os.PathLike[str]:
    """The local directory that a source stands for; a path stands for itself.

    - `hf://owner/name` or `hf://owner/name@REVISION`: a repository of the HuggingFace hub; the revision is a branch, a
      tag or a commit. Files that are not in huggingface_hub's cache are downloaded into it.
    - The name of a preset, such as `"bert_uncased_L-2_H-128_A-2"`, where nothing local has that name: the repository in
      `REPOSITORIES`.
    - `kerashub://NAME` or `kaggle://...`: a preset of KerasHub; see `download_preset`.

    Args:
        source: the path or the name.
        owner: the public function that was called, for errors.
        weights: whether the weights are wanted; without them only the small files are downloaded.

    Returns:
        A directory, checked against the hub's hashes; or `source` itself.

    Raises:
        CheckpointError: neither a path nor a name of this kind; and all that `hub_snapshot` raises.

    Examples:
        >>> resolve(Path("a/directory"), owner="load_backbone") == Path("a/directory")
        True
        >>> REPOSITORIES["bert_base_uncased"]
        'google-bert/bert-base-uncased'
    """
    if not isinstance(source, str):
        return source
    if source.startswith(KERASHUB_PREFIXES):
        return download_preset(source, owner=owner, weights=weights)
    refusal = functools.partial(_refusal, owner, source)
    if source.startswith(PREFIX):
        match = _NAME.fullmatch(source)
        if match is None:
            raise refusal("be hf://owner/name or hf://owner/name@REVISION", _cure(source.removeprefix(PREFIX)))
        return hub_snapshot(match["repository"], match["revision"], weights=weights, refusal=refusal)
    if Path(source).exists():
        return source
    if source in REPOSITORIES:
        return hub_snapshot(REPOSITORIES[source], None, weights=weights, refusal=refusal)
    raise refusal("be an existing directory", _cure(source))


def _refusal(owner: str, source: str, rule: str, cure: str) -> CheckpointError:
    return CheckpointError(checks.message(owner, "source", rule, source, cure))


def _cure(name: str) -> str:
    """What the user may have meant."""
    close = difflib.get_close_matches(name, REPOSITORIES, n=1, cutoff=_SLIP)
    if close:
        return f"Did you mean the preset {close[0]!r}, which is {PREFIX}{REPOSITORIES[close[0]]}?"
    if re.fullmatch(_REPOSITORY, name, re.ASCII):
        return f"If it is a repository of the HuggingFace hub, say {PREFIX + name!r}."
    return f"Give a local directory, a preset such as {next(iter(REPOSITORIES))!r}, or hf://owner/name."
