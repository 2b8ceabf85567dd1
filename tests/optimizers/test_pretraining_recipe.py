import dataclasses

import numpy as np
import pytest

from keras_bert_layers.optimizers import PretrainingRecipe


def test_rows_and_rates_are_those_of_the_paper():
    """Appendix A.2: 256 rows, a million steps, nine tenths of them on 128 tokens; the rates are Google's code's."""
    recipe = PretrainingRecipe()
    assert recipe.num_tokens == 256 * (900_000 * 128 + 100_000 * 512)
    optimizer = recipe.optimizer()
    config = optimizer.get_config()
    assert (config["weight_decay"], config["epsilon"], config["global_clipnorm"]) == (0.01, 1e-6, 1.0)
    assert (config["beta_1"], config["beta_2"]) == (0.9, 0.999)
    schedule = optimizer._learning_rate
    found = [float(schedule(step)) for step in (0, 5_000, 10_000, 500_000, 1_000_000)]
    np.testing.assert_allclose(found, [0, 5e-5, 9.9e-5, 5e-5, 0], rtol=1e-5)  # float32


def test_smaller_recipes():
    small = dataclasses.replace(PretrainingRecipe(), num_steps=15, num_warmup_steps=3, short_share=0.5)
    assert small.phases == ((128, 8), (512, 7))
    with pytest.raises(ValueError, match="num_warmup_steps"):
        dataclasses.replace(small, num_warmup_steps=15).optimizer()
