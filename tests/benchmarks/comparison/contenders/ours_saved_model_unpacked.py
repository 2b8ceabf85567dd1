"""`ours_saved_model` without a second, packed copy of its weights in memory, which is TensorFlow's default.

Slower at one text, smaller in memory. The files are those of `ours_saved_model`.
"""

from __future__ import annotations

import os

from comparison.contenders import ours_saved_model
from comparison.contenders.ours_saved_model import encoder, matrix_product

__all__ = ["encoder", "matrix_product", "start"]


def start() -> dict[str, str]:
    os.environ["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] = "0"  # read when the first product runs
    return ours_saved_model.start()
