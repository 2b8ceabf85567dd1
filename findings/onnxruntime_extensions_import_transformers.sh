#!/usr/bin/env bash
# onnxruntime-extensions 0.15.2: importing it imports transformers, if that is installed, and so torch too.
#
# One would think that a library of custom operations is as light as ONNX Runtime beside it: an ONNX file with its
# tokenizer inside needs nothing of transformers. But the package's `__init__` imports its converters, and these try
# `import transformers`. In an image that holds both, as most do, a process that serves such a file takes two to three
# seconds longer to its first answer, and holds what these imports hold. Nothing says so: where transformers is missing,
# the import is passed over in silence. All that a session needs is the path of the compiled library in the package's
# folder, which `importlib.util.find_spec` finds without an import.
#
# Seen: transformers is in `sys.modules` after `import onnxruntime_extensions`; the operations work from the path alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet onnxruntime==1.32.0 onnxruntime-extensions==0.15.2 \
    transformers==5.24.0 onnx==1.22.0
cat >"$folder/program.py" <<'END'
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

imported = "import sys, onnxruntime_extensions; print('transformers' in sys.modules)"
found = subprocess.run([sys.executable, "-c", imported], capture_output=True, text=True, check=True).stdout.strip()
print("transformers is imported:", found)
assert found == "True"

folder = Path(importlib.util.find_spec("onnxruntime_extensions").origin).parent
(library,) = (path for path in folder.glob("_extensions_pydll.*") if path.suffix in (".so", ".pyd"))
graph = helper.make_graph(
    [helper.make_node("StringLength", ["text"], ["length"], domain="ai.onnx.contrib")],
    "graph",
    [helper.make_tensor_value_info("text", TensorProto.STRING, ["batch"])],
    [helper.make_tensor_value_info("length", TensorProto.INT64, ["batch"])],
)
versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.contrib", 1)]
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(str(library))
model = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString()
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
lengths = session.run(None, {"text": np.array(["three", "more"], object)})[0].tolist()
print("the operations work without the import:", lengths, "onnxruntime_extensions" not in sys.modules)
assert lengths == [5, 4] and "onnxruntime_extensions" not in sys.modules
END
"$folder/environment/bin/python" "$folder/program.py"
