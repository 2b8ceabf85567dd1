"""A process with ONNX Runtime alone: reads models with their inputs, and writes the answers by name, or the error."""

import pickle
import sys

import onnxruntime


def main():
    # Where onnx is, onnxruntime_extensions imports transformers and torch too, for tools that nothing here uses.
    sys.modules["onnx"] = None
    from onnxruntime_extensions import get_library_path

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    options.log_severity_level = 3
    session, last = None, None
    while True:
        try:
            model, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if model != last:  # most files are used several times
                session, last = onnxruntime.InferenceSession(model, options), model
            names = [output.name for output in session.get_outputs()]
            answer = dict(zip(names, session.run(None, inputs), strict=True))
        except Exception as error:  # reported to the test that sent it; others continue
            answer = RuntimeError(str(error))
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
