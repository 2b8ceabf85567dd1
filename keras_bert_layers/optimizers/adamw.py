"""AdamW with BERT's settings: `adamw`, and `google_adamw` without bias correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.optimizers._bert_optimizer import UNDECAYED, BertOptimizer, fused_adam, in_place_adam, settings


def adamw(
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 5e-5,
    *,
    weight_decay: float = 0.01,
    clip_norm: float | None = 1.0,
    exclude_from_weight_decay: Sequence[str] = UNDECAYED,
    rate_factors: Mapping[str, float] | None = None,
    gradient_accumulation_steps: int = 1,
) -> keras.optimizers.AdamW:
    """AdamW without decay of biases and LayerNorm, also after loading a model, and with global norm clipping.

        m = 0.9 m + 0.1 g;  v = 0.999 v + 0.001 g^2;  w = w - rate * 0.01 w
        w = w - rate * m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-8)

    This is PyTorch's AdamW, and so that of transformers. It corrects the bias of both moments, as Keras's does and
    Google's optimizer, `google_adamw`, does not. Epsilon is added after the correction; Keras adds it before.

    Args:
        learning_rate: a float or a schedule, such as `WarmupLinearDecay`. The paper fine-tunes with 2e-5 to 5e-5.
        weight_decay: the share of a weight to subtract in each step, times the learning rate.
        clip_norm: the largest global norm of the gradients; None does not clip.
        exclude_from_weight_decay: regular expressions. A weight whose path contains one of them, such as
            `"embedding/token_embedding"` or `"layer_norm"`, does not decay.
        rate_factors: regular expression -> factor. The learning rate of a weight is multiplied by the factor of the
            first expression that its path contains; `layer_wise_rates` makes them for a model.
        gradient_accumulation_steps: how many batches make one update, with the mean of their gradients. Schedules count
            updates, and decay and clipping are done once per update.

    Returns:
        A new optimizer, with epsilon 1e-8, the default of transformers.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range.

    Examples:
        >>> adamw(3e-5).get_config()["epsilon"]
        1e-08

    References:
        Loshchilov and Hutter 2017, arXiv:1711.05101; Devlin et al. 2018, arXiv:1810.04805, appendix A.3.
    """
    shared = settings(learning_rate, weight_decay, clip_norm, exclude_from_weight_decay, gradient_accumulation_steps)
    return BertAdamW(epsilon=1e-8, rate_factors=rate_factors, **shared)


def layer_wise_rates(model: keras.Model, decay: float = 0.9) -> dict[str, float]:
    """The factors of layer-wise learning rates, for `adamw(rate_factors=...)`: lower blocks learn more slowly.

    The head has the full rate, block `i` of `L` the factor `decay ** (L - i)`, and the embedding `decay ** (L + 1)`. A
    block that all layers share counts as one, `L = 1`.

    Args:
        model: a task, or a `BertBackbone`.
        decay: the factor from one block to the one below it, above 0.

    Returns:
        Regular expression of the paths of weights -> factor.

    Raises:
        TypeError: `model` has no encoder.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=2, num_heads=2, intermediate_dim=16)
        >>> layer_wise_rates(kbl.BertBackbone(config), 0.5)
        {'encoder_block_1/': 0.5, 'encoder_block_0/': 0.25, '^embedding/': 0.125}

    References:
        Howard and Ruder 2018, ULMFiT, arXiv:1801.06146, section 3.2; Zhang et al. 2021, arXiv:2006.05987, section 7.
    """
    config: Any = getattr(getattr(model, "backbone", model), "config", None)
    if not hasattr(config, "num_layers"):
        raise TypeError(checks.message("layer_wise_rates", "model", "be a task or a BertBackbone", model))
    checks.positive_number("layer_wise_rates", "decay", decay)
    parts: Any = getattr(model, "backbone", model).parts
    names = [*dict.fromkeys(reversed(parts.block_names(config.num_layers)))]
    found = {f"{name}/": decay ** (index + 1) for index, name in enumerate(names)}
    return {**found, "^embedding/": decay ** (len(names) + 1)}


def google_adamw(
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 5e-5,
    *,
    weight_decay: float = 0.01,
    clip_norm: float | None = 1.0,
    exclude_from_weight_decay: Sequence[str] = UNDECAYED,
    gradient_accumulation_steps: int = 1,
) -> keras.optimizers.AdamW:
    """The AdamW with which Google trained BERT: no bias correction, epsilon 1e-6, decay 0.01, global norm clipped to 1.

        m = 0.9 m + 0.1 g;  v = 0.999 v + 0.001 g^2;  w = w - rate * (m / (sqrt(v) + 1e-6) + 0.01 w)

    Without the correction, the first steps are up to 6.6 times as long as those of `adamw`, so it needs a warm-up:
    `GoogleWarmupLinearDecay` is Google's. After a few thousand steps the two are alike.

    Args:
        learning_rate: a float or a schedule. Google pretrains with 1e-4 and fine-tunes with 2e-5 to 5e-5.
        weight_decay: the share of a weight to subtract in each step, times the learning rate.
        clip_norm: the largest global norm of the gradients; None does not clip.
        exclude_from_weight_decay: regular expressions. A weight whose path contains one of them does not decay; without
            the argument, biases and LayerNorm do not.
        gradient_accumulation_steps: how many batches make one update, with the mean of their gradients. Schedules count
            updates, and decay and clipping are done once per update.

    Returns:
        A new optimizer.

    Raises:
        TypeError, ValueError: an argument of another kind or out of range.

    Examples:
        >>> from keras_bert_layers.optimizers import GoogleWarmupLinearDecay
        >>> optimizer = google_adamw(GoogleWarmupLinearDecay(1e-4, 1_000_000, num_warmup_steps=10_000))
        >>> optimizer.get_config()["epsilon"]
        1e-06

    References:
        `create_optimizer` and `AdamWeightDecayOptimizer` in google-research/bert `optimization.py`; Devlin et al. 2018,
        arXiv:1810.04805, appendix A.2.
    """
    shared = settings(learning_rate, weight_decay, clip_norm, exclude_from_weight_decay, gradient_accumulation_steps)
    return GoogleAdamW(epsilon=1e-6, **shared)


@register
class BertAdamW(BertOptimizer, keras.optimizers.AdamW):
    """Keras's AdamW with PyTorch's epsilon and with weights left out of the decay by name.

    A step is one fused operation on TensorFlow. Keras's config does not include the excluded weights, so a plain AdamW
    loaded from a `.keras` file would decay all weights. With `amsgrad`, the step is Keras's own, epsilon included.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._steps_before: Any = Untracked({})

    def restart(self, variables: Sequence[Tensor]) -> None:
        """Counts the steps of some weights from here on, for bias correction; functions traced before do not.

        Weights that it was not built for are left out.
        """
        known, num_steps = set(map(id, self._trainable_variables)), int(ops.convert_to_numpy(self.iterations))
        for variable in (variable for variable in variables if id(variable) in known):
            index = self._get_variable_index(variable)
            for moments in (self._momentums[index], self._velocities[index]):
                moments.assign(ops.zeros(moments.shape, moments.dtype))
            self._steps_before.value[self._var_key(variable)] = num_steps

    @property
    def steps_before(self) -> list[int]:
        """How many steps were before those of each weight; it is no variable, so files of tasks store it apart."""
        return [self._steps_before.value.get(self._var_key(variable), 0) for variable in self._trainable_variables]

    @steps_before.setter
    def steps_before(self, steps: Sequence[int]) -> None:
        keys = map(self._var_key, self._trainable_variables)
        self._steps_before.value = dict(zip(keys, map(int, steps), strict=True))

    def update_step(
        self, gradient: Tensor, variable: Tensor, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule
    ) -> None:
        """Updates one weight and its moments."""
        learning_rate = self._rate_of(variable, learning_rate)
        self._decay(variable, learning_rate)
        if self.amsgrad:
            super().update_step(gradient, variable, learning_rate)
            return
        num_steps = self.iterations + 1 - self._steps_before.value.get(self._var_key(variable), 0)
        rate, step = ops.cast(learning_rate, variable.dtype), ops.cast(num_steps, variable.dtype)
        powers = ops.power(self.beta_1, step), ops.power(self.beta_2, step)
        # sqrt(v / c) + epsilon is (sqrt(v) + epsilon * sqrt(c)) / sqrt(c), with c = 1 - beta_2^t.
        root = ops.sqrt(1 - powers[1])
        if keras.backend.backend() == "tensorflow":
            epsilon = self.epsilon * root
            fused_adam(self, gradient, variable, learning_rate=rate, epsilon=epsilon, powers=powers)
            return
        rate, epsilon = rate * root / (1 - powers[0]), self.epsilon * root
        if keras.backend.backend() == "torch":
            in_place_adam(self, gradient, variable, rate=rate, epsilon=epsilon)
            return
        first, second = self._move_moments(gradient, variable)
        self.assign_sub(variable, first / (ops.sqrt(second) + epsilon) * rate)


@register
class GoogleAdamW(BertOptimizer, keras.optimizers.AdamW):
    """AdamW without bias correction; see `google_adamw`."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.amsgrad:
            raise ValueError(checks.message("GoogleAdamW", "amsgrad", "be False", True))

    def update_step(
        self, gradient: Tensor, variable: Tensor, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule
    ) -> None:
        """Updates one weight and its moments."""
        learning_rate = self._rate_of(variable, learning_rate)
        self._decay(variable, learning_rate)  # Google adds the decay to the change, which does not depend on it
        if keras.backend.backend() == "tensorflow":
            fused_adam(self, gradient, variable, learning_rate=learning_rate, epsilon=self.epsilon)
            return
        rate = ops.cast(learning_rate, variable.dtype)
        if keras.backend.backend() == "torch":
            in_place_adam(self, gradient, variable, rate=rate, epsilon=self.epsilon)
            return
        first, second = self._move_moments(gradient, variable)
        self.assign_sub(variable, rate * first / (ops.sqrt(second) + self.epsilon))
