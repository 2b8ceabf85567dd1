"""Keras's AdamW with the settings that BERT is fine-tuned with."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal.registration import register

UNDECAYED = ("bias", "gamma", "beta")
# Keras adds epsilon before the second moment is corrected for its start at zero, PyTorch after: in the first step, that
# is as if Keras's were 30 times as large. At 1e-6, MiniLM's weights moved 0.7 times as far in 40 steps as in PyTorch.
EPSILON = 1e-8


@register
class BertAdamW(keras.optimizers.AdamW):
    """Keras's AdamW with the weights that it leaves undecayed in its class.

    Keras's own config does not hold them, so an AdamW read from a `.keras` file would decay everything from then on.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.exclude_from_weight_decay(var_names=UNDECAYED)


def adamw(learning_rate: Any = 5e-5, *, weight_decay: float = 0.01, clip_norm: float = 1.0) -> keras.optimizers.AdamW:
    """AdamW that leaves biases and LayerNorm undecayed, also after a reload, and clips gradients to a global norm.

    Unlike Google's own, it corrects the bias of its moments, as transformers' and Keras's do.

    Args:
        learning_rate: a number or a schedule, such as `WarmupLinearDecay`. The paper fine-tunes at 2e-5 to 5e-5.
        weight_decay: the share of a weight taken off a step, times the learning rate.
        clip_norm: the largest norm of all gradients together.

    Returns:
        A new optimizer, with epsilon 1e-8, which is transformers' default.

    Examples:
        >>> adamw(3e-5).get_config()["epsilon"]
        1e-08

    References:
        Loshchilov and Hutter 2017, arXiv:1711.05101; Devlin et al. 2018, arXiv:1810.04805, appendix A.3;
        `create_optimizer` in google-research/bert `optimization.py`.
    """
    return BertAdamW(learning_rate=learning_rate, weight_decay=weight_decay, epsilon=EPSILON, global_clipnorm=clip_norm)
