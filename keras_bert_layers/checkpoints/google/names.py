"""The tensors of a checkpoint of google-research/bert that may be ignored: other heads, and the state of training."""

from __future__ import annotations

_HEADS = {
    "cls/squad/": "a question answering head",
    "cls/": "a pretraining head",
    "output_weights": "a classification head",
    "output_bias": "a classification head",
}

# The last part of the names of the slots that an optimizer or an average has for each weight. google-research/bert,
# optimization.py: adam_m and adam_v, also for LAMB; the others are those of TensorFlow's own optimizers and averages.
_SLOTS = frozenset(
    {"adam_m", "adam_v", "lamb_m", "lamb_v", "Adam", "Adam_1", "LAMB", "LAMB_1", "Momentum", "RMSProp", "RMSProp_1"}
) | {"Adagrad", "Adadelta", "Adadelta_1", "Ftrl", "Ftrl_1", "ExponentialMovingAverage"}

_COUNTERS = frozenset({"global_step", "beta1_power", "beta2_power", "loss_scale", "good_steps", "current_loss_scale"})


def ignored_reason(name: str) -> str | None:
    """Why a tensor without a row may be ignored; None if it may not.

    Args:
        name: the variable's name.

    Examples:
        >>> ignored_reason("bert/pooler/dense/bias/adam_m")
        "an optimizer's state"
        >>> ignored_reason("cls/seq_relationship/output_bias")
        'a pretraining head'
        >>> ignored_reason("bert/pooler/dense/scale") is None
        True
    """
    last = name.rpartition("/")[2]
    if last in _SLOTS or name in _COUNTERS:
        return "an optimizer's state"
    return next((reason for head, reason in _HEADS.items() if name.startswith(head)), None)
