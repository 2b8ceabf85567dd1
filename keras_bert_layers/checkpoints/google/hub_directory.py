"""`GoogleHubDirectory`: Google's weights with HuggingFace's config, as in the hub's repositories of small BERTs."""

from __future__ import annotations

from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint import Checkpoint, TrainedHead
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tf1_checkpoint import Tf1Checkpoint
from keras_bert_layers.checkpoints.google import names as google_names
from keras_bert_layers.checkpoints.google.heads import google_heads
from keras_bert_layers.checkpoints.google.prefix import checkpoint_prefix, has_checkpoint
from keras_bert_layers.checkpoints.huggingface.adapter import ADAPTER_CONFIG
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.weights.row import Layout


class GoogleHubDirectory(HuggingFaceDirectory):
    """A HuggingFace directory whose weights are a TensorFlow checkpoint with Google's names.

    The repositories `google/bert_uncased_L-..._H-..._A-...` hold a `config.json`, `bert_model.ckpt.*` and a pickle of
    the same weights. Config and tokenizer are read as transformers reads them, so that the outputs are equal: "gelu" is
    the erf form, although Google trained with the tanh form. The weights come from the checkpoint, which holds tensors
    only and needs neither torch nor TensorFlow.

    References:
        Turc et al. 2019, https://arxiv.org/abs/1908.08962; files as in https://huggingface.co/google.
    """

    layout = Layout.GOOGLE

    @staticmethod
    def describes(source: Path) -> bool:
        """Whether a directory holds a `config.json` and a TensorFlow checkpoint, no safetensors and no adapter."""
        others = (*source.glob("*.safetensors"), *source.glob(ADAPTER_CONFIG))
        return (source / "config.json").is_file() and has_checkpoint(source) and not others

    def open_weights(self) -> TensorFile:
        """Opens the variables of the checkpoint.

        Raises:
            CheckpointError: see `checkpoint_prefix` and `Tf1Checkpoint`.
        """
        return Tf1Checkpoint(checkpoint_prefix(self.root, chosen=self.weights_file, owner=self.owner))

    def trained_heads(self) -> tuple[TrainedHead, ...]:
        """The heads by the variables' names."""
        return google_heads(self.weights.infos)

    # The table has Google's names.
    table_name = Checkpoint.table_name

    def ignored_reason(self, name: str) -> str | None:
        """Heads and optimizer states may be ignored."""
        return google_names.ignored_reason(name)
