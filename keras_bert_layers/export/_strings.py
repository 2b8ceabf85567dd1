"""Whether strings can be exported here."""

from __future__ import annotations

from keras_bert_layers.preprocessing import _engine


def check_strings() -> None:
    """Raises a RuntimeError where text is read in Python, which a SavedModel cannot hold."""
    if not _engine.text_engine().IN_GRAPH:
        raise RuntimeError(
            "`export`: signatures of strings need tensorflow-text, whose operations read text inside the SavedModel. "
            "Received: tensorflow-text is not installed; there is none for Windows. Export the ids alone: "
            '`write_saved_model(path, [s for s in task.signatures() if s.name == "token_ids"])`. Or save the task with '
            '`task.save("model.keras")`, and load and export it on Linux or a Mac.'
        )
