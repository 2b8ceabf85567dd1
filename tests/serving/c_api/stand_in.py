"""A server in Python that replaces `serve.c` where there is no C compiler: the same arguments, the same bytes.

It runs a session of TensorFlow 1, which loads a SavedModel as the C API does, and loads the operations of
tensorflow_text without importing it. Started as `python -I stand_in.py MODEL …`.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(Path(__file__).parents[1]))

import tensorflow as tf
from c_api import tensors

NOT_FOUND = 5
INVALID_ARGUMENT = 3


def resident_bytes() -> int:
    """0 where there is no /proc."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * resource.getpagesize() if path.exists() else 0


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def disable_xla() -> None:
    """The call with which TensorFlow Serving's main refuses XLA."""
    name = "libtensorflow_cc.2.dylib" if sys.platform == "darwin" else "libtensorflow_cc.so.2"
    ctypes.CDLL(str(Path(tf.sysconfig.get_lib()) / name))["_ZN10tensorflow21DisableXlaCompilationEv"]()


def read_request(stream) -> tuple[str, int, dict]:
    name = tensors.read_string(stream).decode()
    repeats, count = tensors.read_numbers(stream, "II")
    return name, repeats, {tensors.read_string(stream).decode(): tensors.read_tensor(stream) for _ in range(count)}


def run(session, signature, inputs, repeats: int) -> tuple[dict, list[float]]:
    """The last outputs, and the seconds of each run."""
    feeds = {signature.inputs[name].name: values for name, values in inputs.items()}
    fetches = {name: info.name for name, info in signature.outputs.items()}
    seconds = []
    for _ in range(repeats):
        start = time.monotonic()
        outputs = session.run(fetches, feeds)
        seconds.append(time.monotonic() - start)
    return outputs, seconds


def answer(session, signatures, request) -> bytes:
    """The bytes of the answer to a request."""
    name, repeats, inputs = request
    code, message, outputs, seconds = 0, "", {}, []
    if name not in signatures:
        code, message = NOT_FOUND, "the model has no signature of this name"
    elif not inputs.keys() <= signatures[name].inputs.keys():
        code, message = INVALID_ARGUMENT, "the signature has no input of this name"
    else:
        try:
            outputs, seconds = run(session, signatures[name], inputs, repeats)
        except tf.errors.OpError as error:
            code, message = error.error_code, error.message
    head = tensors.numbers("I", code) + tensors.string(message.encode())
    times = tensors.numbers(f"I{len(seconds)}d", len(seconds), *seconds)
    memory = tensors.numbers("QQI", resident_bytes(), peak_bytes(), len(outputs))
    values = (tensors.string(key.encode()) + tensors.tensor(array) for key, array in outputs.items())
    return b"".join([head, times, memory, *values])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--ops", action="append", default=[])
    parser.add_argument("--config", type=Path)
    parser.add_argument("--no-xla", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    for library in options.ops:
        tf.load_op_library(library)
    if options.no_xla:
        disable_xla()
    config = tf.compat.v1.ConfigProto()
    if options.config is not None:
        config.ParseFromString(options.config.read_bytes())
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    signatures = tf.compat.v1.saved_model.load(session, ["serve"], options.model).signature_def
    sys.stdout.buffer.write(tensors.string(tf.__version__.encode()))
    sys.stdout.buffer.write(tensors.numbers("d", time.monotonic() - start))
    sys.stdout.buffer.flush()
    while sys.stdin.buffer.peek(1):
        sys.stdout.buffer.write(answer(session, signatures, read_request(sys.stdin.buffer)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
