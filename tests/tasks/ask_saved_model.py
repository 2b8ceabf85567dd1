"""Runs a SavedModel in a process that has `tensorflow` and `tensorflow_text` only, as a server does.

`python ask_saved_model.py MODEL REQUESTS ANSWERS`: REQUESTS is a pickled list of `(signature, inputs)`, the inputs a
dictionary of arrays. ANSWERS becomes a pickled dictionary of `answers`, one dictionary of arrays per request;
`modules`, the names of all imported modules; and `modules_of_tensorflow`, the names of those that came with the two
imports below.
"""

import pickle
import sys
from pathlib import Path

import tensorflow as tf
import tensorflow_text  # noqa: F401 - registers the operations of the tokenizer

MODULES_OF_TENSORFLOW = sorted(sys.modules)


def main(model: str, requests: str, answers: str) -> None:
    signatures = tf.saved_model.load(model).signatures
    found: list[dict] = []
    for name, inputs in pickle.loads(Path(requests).read_bytes()):
        outputs = signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
        found.append({key: value.numpy() for key, value in outputs.items()})
    result = {"answers": found, "modules": sorted(sys.modules), "modules_of_tensorflow": MODULES_OF_TENSORFLOW}
    Path(answers).write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
