import numpy as np
import pytest

from keras_bert_layers._internal import checks


@pytest.mark.parametrize(("cure", "end"), [("", ""), ("Scale them.", " Scale them.")])
def test_every_row_names_the_first_wrong_row(cure, end):
    rows = np.array([0.5, 2.0, np.nan])
    checks.every_row("Owner", "every number must be small", rows[:1], rows[:1] < 1, cure)
    with pytest.raises(ValueError, match=f"^`Owner`: every number must be small. Received: 2.0 in row 1.{end}$"):
        checks.every_row("Owner", "every number must be small", rows, rows < 1, cure)
