import numpy as np
import pytest


@pytest.fixture(scope="session")
def ask():
    """Asks an ONNX file as a user does: texts to the answers by name."""
    onnxruntime = pytest.importorskip("onnxruntime")
    extensions = pytest.importorskip("onnxruntime_extensions")

    def ask(model, texts):
        options = onnxruntime.SessionOptions()
        options.register_custom_ops_library(extensions.get_library_path())
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), options)
        answers = session.run(None, {"text": np.array(texts, object)})
        return dict(zip([output.name for output in session.get_outputs()], answers, strict=True))

    return ask
