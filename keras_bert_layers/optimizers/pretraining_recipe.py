"""`PretrainingRecipe`: how BERT was pretrained, in numbers."""

from dataclasses import dataclass

import keras

from keras_bert_layers.optimizers.adamw import google_adamw
from keras_bert_layers.optimizers.schedules import GoogleWarmupLinearDecay


@dataclass(frozen=True, kw_only=True)
class PretrainingRecipe:
    """How BERT was pretrained: rows, steps and the optimizer. `dataclasses.replace` makes a smaller one.

    Args:
        batch_size: rows in a step.
        num_steps: steps in all.
        short_length: tokens of a row in the first steps, where attention costs less.
        max_length: tokens of a row in the last steps, which train the positions that the first ones never saw.
        short_share: the share of the steps on short rows, in [0, 1].
        learning_rate: the rate to which the warm-up rises; after it, the rate falls linearly to 0.
        num_warmup_steps: steps of the warm-up, fewer than `num_steps`.
        weight_decay: of all weights but biases and LayerNorms.

    Examples:
        >>> import dataclasses
        >>> PretrainingRecipe().phases
        ((128, 900000), (512, 100000))
        >>> PretrainingRecipe().num_tokens
        42598400000
        >>> small = dataclasses.replace(PretrainingRecipe(), batch_size=32, num_steps=20_000, num_warmup_steps=1_000)
        >>> small.optimizer().weight_decay
        0.01

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, appendix A.2.
    """

    batch_size: int = 256
    num_steps: int = 1_000_000
    short_length: int = 128
    max_length: int = 512
    short_share: float = 0.9
    learning_rate: float = 1e-4
    num_warmup_steps: int = 10_000
    weight_decay: float = 0.01

    @property
    def phases(self) -> tuple[tuple[int, int], ...]:
        """The length of rows, and for how many steps: the short rows, then the long ones."""
        num_short = round(self.short_share * self.num_steps)
        return (self.short_length, num_short), (self.max_length, self.num_steps - num_short)

    @property
    def num_tokens(self) -> int:
        """How many tokens are read in all, padding among them."""
        return self.batch_size * sum(length * num_steps for length, num_steps in self.phases)

    def optimizer(self) -> keras.optimizers.AdamW:
        """A new optimizer, Google's AdamW with Google's schedule, for all phases together.

        Raises:
            TypeError, ValueError: a number that is out of range.
        """
        rate = GoogleWarmupLinearDecay(self.learning_rate, self.num_steps, num_warmup_steps=self.num_warmup_steps)
        return google_adamw(rate, weight_decay=self.weight_decay)
