"""`check_plain_bert`: refuses a config that a dialect with BERT alone cannot say."""

from __future__ import annotations

from keras_bert_layers._internal import checks
from keras_bert_layers.config import BertConfig


def check_plain_bert(owner: str, config: BertConfig, dialect: str) -> None:
    """ValueError for the fields in which BERT's relatives differ.

    Args:
        owner: the public function that was called.
        config: the encoder's config.
        dialect: whose BERT it is, for the error.
    """
    cure = "This is a relative of BERT: save it in HuggingFace's layout, or a `.keras` file."
    for name, is_plain, rule in (
        ("num_segments", config.num_segments > 0, "be at least 1"),
        ("position_offset", config.position_offset == 0, "be 0"),
        ("pooler_activation", config.pooler_activation == "tanh", "be 'tanh'"),
    ):
        if not is_plain:
            raise ValueError(checks.message(owner, name, f"{rule} for {dialect}", getattr(config, name), cure))
