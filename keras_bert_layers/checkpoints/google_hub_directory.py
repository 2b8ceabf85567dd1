"""`GoogleHubDirectory`: Google's weights beside HuggingFace's config, as Google's small BERTs lie on the hub."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from keras_bert_layers.checkpoints import google_names
from keras_bert_layers.checkpoints.checkpoint import StatedTask
from keras_bert_layers.checkpoints.google_prefix import checkpoint_prefix, has_checkpoint
from keras_bert_layers.checkpoints.google_tasks import google_tasks
from keras_bert_layers.checkpoints.huggingface_directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.tensor_file import TensorFile
from keras_bert_layers.checkpoints.tf1_checkpoint import Tf1Checkpoint
from keras_bert_layers.checkpoints.weight_row import Layout


class GoogleHubDirectory(HuggingFaceDirectory):
    """A HuggingFace directory whose weights are a TensorFlow checkpoint with Google's names.

    The repositories `google/bert_uncased_L-..._H-..._A-...` hold a `config.json`, `bert_model.ckpt.*` and a pickle of
    the same weights. Config and tokenizer are read as HuggingFace means them, so that the outputs are those of
    transformers: "gelu" is the erf form, although Google trained with the tanh form. The weights come from the
    checkpoint, which holds numbers only and needs neither torch nor TensorFlow.

    Args:
        source: the directory, which exists.
        owner: the public function that was called, for errors.

    References:
        Turc et al. 2019, https://arxiv.org/abs/1908.08962; files as in https://huggingface.co/google.
    """

    layout = Layout.GOOGLE

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory holds a `config.json` and a TensorFlow checkpoint, and no safetensors."""
        return (source / "config.json").is_file() and has_checkpoint(source) and not any(source.glob("*.safetensors"))

    def open_weights(self) -> TensorFile:
        """The variables of the checkpoint.

        Raises:
            CheckpointError: see `checkpoint_prefix` and `Tf1Checkpoint`.
        """
        return Tf1Checkpoint(checkpoint_prefix(self.root, owner=self.owner))

    def stated_tasks(self) -> tuple[StatedTask, ...]:
        """What the variables' names tell."""
        return google_tasks(self.open_weights().infos)

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """The table has Google's names as they are."""
        return {name: name for name in names}

    def ignored_reason(self, name: str) -> str | None:
        """Heads and optimizers' states may be left out."""
        return google_names.ignored_reason(name)
