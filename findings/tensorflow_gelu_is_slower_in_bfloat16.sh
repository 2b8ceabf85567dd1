#!/usr/bin/env bash
# TensorFlow 2.21.0 on a CPU: `tf.nn.gelu(x, approximate=False)` of bfloat16 takes over twice as long as of
# float32, and longer than casting to float32, computing there, and casting back; with its gradient too.
#
# It is written with `erfc`, for whose bfloat16 there are no vector instructions, while float32's has them. Half the bytes
# let one guess the reverse, as it is for products of matrices on the same processor. It is met wherever GELU is not
# fused into a product: in training under `mixed_bfloat16`, and behind a split, as in the gated layers of newer encoders.
#
# Output seen (AMD EPYC, 5th generation, one thread):
#   forward: bfloat16 2.6 of float32's time, by casts 1.2
#   with the gradient: bfloat16 2.3 of float32's time, by casts 1.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/python" -m pip install --quiet tensorflow==2.21.0
cat >"$folder/try.py" <<'EOF'
import time

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def by_casts(inputs):
    return tf.cast(tf.nn.gelu(tf.cast(inputs, tf.float32), approximate=False), inputs.dtype)


def directly(inputs):
    return tf.nn.gelu(inputs, approximate=False)


def with_gradient(function):
    def compute(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = function(inputs)
        return tape.gradient(outputs, inputs)

    return compute


def seconds(functions, inputs):
    """The least processor time of each function, taken in turns."""
    best = [float("inf")] * len(functions)
    for _ in range(25):
        for place, function in enumerate(functions):
            start = time.process_time()
            function(inputs[place])
            best[place] = min(best[place], time.process_time() - start)
    return best


wide = tf.random.stateless_normal((1024, 1536), (1, 2))
half = tf.cast(wide, tf.bfloat16)
for name, change in (("forward", lambda function: function), ("with the gradient", with_gradient)):
    functions = [tf.function(change(each)) for each in (directly, directly, by_casts)]
    in_float32, in_bfloat16, cast = seconds(functions, [wide, half, half])
    print(f"{name}: bfloat16 {in_bfloat16 / in_float32:.1f} of float32's time, by casts {cast / in_float32:.1f}")
    assert in_bfloat16 > 1.4 * in_float32
    assert in_bfloat16 > 1.2 * cast
EOF
TF_CPP_MIN_LOG_LEVEL=3 "$folder/env/bin/python" "$folder/try.py" 2>/dev/null
