#!/usr/bin/env bash
# TensorFlow 2.21.0: one `tf.gather` (or `tf.nn.embedding_lookup`) of a `tf.Variable` makes every later read of that
# variable copy all of it, in every function and for good, until the process ends.
#
# A good guess is that reading rows changes nothing. But a gather of the variable itself puts it into the mode for sparse
# access, in which `ReadVariableOp` copies. So a matrix that is an embedding and the weights of a product too (tied
# weights, a table of vectors that is searched and looked up) is copied at every step; with 205 MB that is some 30 ms in
# place of 0.2. A gather of the value, `tf.gather(variable.read_value(), ids)`, does not do so, and Keras 3's `Embedding`
# gathers in this way.
#
# Output seen (milliseconds of a function that reads one row of the variable's value; times vary, their ratio is 100):
#   before any gather: 0.2
#   after a gather of the value: 0.2
#   after a gather of the variable: 32.2
#   after a new value was assigned: 35.9
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet tensorflow==2.21.0
cat >"$folder/try.py" <<'EOF'
import time

import tensorflow as tf

variable = tf.Variable(tf.zeros([400_000, 128]))


@tf.function
def first_row():
    return variable.read_value()[0]


def milliseconds():
    first_row()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        first_row()
        times.append(time.perf_counter() - start)
    return 1000 * sorted(times)[7]


before = milliseconds()
print(f"before any gather: {before:.1f}")
tf.gather(variable.read_value(), [0])
of_value = milliseconds()
print(f"after a gather of the value: {of_value:.1f}")
tf.gather(variable, [0])
of_variable = milliseconds()
print(f"after a gather of the variable: {of_variable:.1f}")
variable.assign(tf.ones([400_000, 128]))
assigned = milliseconds()
print(f"after a new value was assigned: {assigned:.1f}")
assert of_value < 5 * before, "a gather of the value costs something now"
assert of_variable > 10 * before, "a gather of the variable no longer makes reads copies"
assert assigned > 10 * before, "an assignment ends the copies now"
EOF
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= "$folder/env/bin/python" "$folder/try.py"
