#!/usr/bin/env bash
# ONNX Runtime 1.32.0 computes operations of a graph whose results nothing reads, at every run and at every level of
# optimization. What a model holds as a function that nothing calls costs nothing.
#
# A good guess is that dead operations are removed when the model is loaded, as unused constants are (with a warning). So
# a second branch that is kept in a file for another use, or what is left when an output was removed, slows every answer
# down. Cutting the graph down to its outputs (`onnx.utils.extract_model`) takes them out.
#
# Output seen (milliseconds; times vary, their ratio is some 100):
#   one product: 1
#   one product, and twenty that nothing reads: 34
#   the same, and all optimizations: 21
#   one product, and twenty in a function that nothing calls: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat >"$folder/try.py" <<'EOF'
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MATRIX = numpy_helper.from_array(np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32), "matrix")
X = np.ones((50, 1000), np.float32)
USED = [helper.make_node("MatMul", ["x", "matrix"], ["y"])]
UNUSED = [helper.make_node("MatMul", [f"dead_{row}" if row else "x", "matrix"], [f"dead_{row + 1}"]) for row in range(20)]
VERSIONS = [helper.make_opsetid("", 20)]


def milliseconds(nodes, functions=(), level="ORT_ENABLE_EXTENDED"):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    graph = helper.make_graph(nodes, "graph", [x], [y], [MATRIX])
    versions = [*VERSIONS, *([helper.make_opsetid("local", 1)] if functions else [])]
    model = helper.make_model(graph, opset_imports=versions, functions=list(functions), ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    session.run(None, {"x": X})
    times = []
    for _ in range(15):
        start = time.perf_counter()
        session.run(None, {"x": X})
        times.append(time.perf_counter() - start)
    return 1000 * sorted(times)[7]


alone, both = milliseconds(USED), milliseconds([*USED, *UNUSED])
every = milliseconds([*USED, *UNUSED], level="ORT_ENABLE_ALL")
function = helper.make_function("local", "unused", ["x", "matrix"], ["dead_20"], UNUSED, VERSIONS)
apart = milliseconds(USED, [function])
print(f"one product: {alone:.0f}")
print(f"one product, and twenty that nothing reads: {both:.0f}")
print(f"the same, and all optimizations: {every:.0f}")
print(f"one product, and twenty in a function that nothing calls: {apart:.0f}")
assert both > 5 * alone, "what nothing reads costs little now"
assert every > 5 * alone, "all optimizations remove it now"
assert apart < 3 * alone, "a function that nothing calls costs something now"
EOF
"$folder/env/bin/python" "$folder/try.py"
