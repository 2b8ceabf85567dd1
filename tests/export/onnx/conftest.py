import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

RUNTIME = Path(__file__).with_name("runtime.py")


@pytest.fixture(scope="session")
def ask():
    """Asks an ONNX file as a user does, in a process without TensorFlow: texts to the answers by name."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxruntime_extensions")
    with subprocess.Popen([sys.executable, RUNTIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runtime:

        def ask(model, texts):
            content = model if isinstance(model, bytes) else Path(model).read_bytes()
            pickle.dump((content, np.array(texts, object)), runtime.stdin)
            runtime.stdin.flush()
            answer = pickle.load(runtime.stdout)
            if isinstance(answer, RuntimeError):
                raise answer
            return answer

        yield ask
        runtime.stdin.close()
