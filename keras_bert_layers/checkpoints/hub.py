"""`resolve`: downloads a published model by its name."""

import difflib
import os
import re
from pathlib import Path

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.huggingface.hub_snapshot import hub_snapshot
from keras_bert_layers.checkpoints.kerashub.preset import PREFIXES as KERASHUB_PREFIXES
from keras_bert_layers.checkpoints.kerashub.preset import download_preset
from keras_bert_layers.presets import PRESETS

PREFIX = "hf://"

# Preset -> the repository of the HuggingFace hub that holds its weights.
#
# Their config.json states "gelu", the erf form in transformers, although Google trained with the tanh form. The file
# decides, so the outputs are those of transformers.
REPOSITORIES = {
    name: f"google/{name}" if name.startswith("bert_uncased_L-") else f"google-bert/{name.replace('_', '-')}"
    for name in PRESETS
}

_REPOSITORY = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_NAME = re.compile(rf"{PREFIX}(?P<repository>{_REPOSITORY})(?:@(?P<revision>(?!\S*\.\.)[^\s/]\S*))?", re.ASCII)
# From this similarity on, an unknown name is taken for a misspelt preset.
_TYPO_CUTOFF = 0.8


def resolve(source: str | os.PathLike[str], *, owner: str, weights: bool = True) -> str | os.PathLike[str]:
    """Returns the local directory of a source and downloads it if needed; a path is returned as it is.

    - `hf://owner/name` or `hf://owner/name@REVISION`: a repository of the HuggingFace hub; the revision is a branch, a
      tag or a commit. Files that are not in huggingface_hub's cache are downloaded into it.
    - The name of a preset, such as `"bert_uncased_L-2_H-128_A-2"`, unless a local file has that name: the repository in
      `REPOSITORIES`.
    - `kerashub://NAME` or `kaggle://...`: a preset of KerasHub; see `download_preset`.

    Args:
        source: the path or the name.
        owner: the public function that was called, for errors.
        weights: whether to download the weights too, or only the small files.

    Returns:
        A directory, checked against the hub's hashes; or `source` itself.

    Raises:
        CheckpointError: `source` is neither a path nor such a name; and as for `hub_snapshot`.

    Examples:
        >>> resolve(Path("a/directory"), owner="load_backbone") == Path("a/directory")
        True
        >>> REPOSITORIES["bert_base_uncased"]
        'google-bert/bert-base-uncased'
    """
    if not isinstance(source, str):
        return source
    if not source.strip():
        # As a path it would be the working directory.
        raise CheckpointError(checks.message(owner, "source", "name a checkpoint", source, _cure(source)))
    if source.startswith(KERASHUB_PREFIXES):
        return download_preset(source, owner=owner, weights=weights)

    def refusal(rule: str, cure: str) -> CheckpointError:
        return CheckpointError(checks.message(owner, "source", rule, source, cure))

    if source.startswith(PREFIX):
        match = _NAME.fullmatch(source)
        if match is None:
            raise refusal("be hf://owner/name or hf://owner/name@REVISION", _cure(source.removeprefix(PREFIX)))
        return hub_snapshot(match["repository"], match["revision"], weights=weights, refusal=refusal)
    # A TensorFlow checkpoint is named by the prefix of its files.
    if Path(source).exists() or Path(f"{source}.index").exists():
        return source
    if source in REPOSITORIES:
        return hub_snapshot(REPOSITORIES[source], None, weights=weights, refusal=refusal)
    raise refusal("be an existing directory", _cure(source))


def _cure(name: str) -> str:
    """A suggestion for an unknown name."""
    close = difflib.get_close_matches(name, REPOSITORIES, n=1, cutoff=_TYPO_CUTOFF)
    if close:
        return f"Did you mean the preset {close[0]!r}, which is {PREFIX}{REPOSITORIES[close[0]]}?"
    if re.fullmatch(_REPOSITORY, name, re.ASCII):
        return f"If it is a repository of the HuggingFace hub, use {PREFIX + name!r}."
    return f"Give a local directory, a preset such as {next(iter(REPOSITORIES))!r}, or hf://owner/name."
