#!/usr/bin/env bash
# TensorFlow 2.21.0: a variable that is made eagerly leaves some 36 KB behind for its name, for good.
#
# One would think that a `tf.Variable` costs its value, and that its name is a label. But the operation that makes its
# handle has the name as an attribute (`debug_name`), and TensorFlow keeps one compiled kernel for each set of
# attributes. So a program that makes 2,000 variables of four numbers each, under new names, and drops them, holds 70 MB
# more at its end; under one name it holds nothing more, and makes each four times as fast. Keras 3 is met by it in every
# loop that makes models, as layers and models are numbered: a search for hyperparameters, cross-validation.
#
# What frees it, besides `keras.utils.clear_session()`: setting a seed. `tf.random.set_seed` drops all kernels, which
# also makes the next call of every eager operation slow once.
#
# Seen: "one name 0 MB, new names 70 MB, new names after a seed 1 MB", give or take a few.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet tensorflow==2.21.0
cat >"$folder/program.py" <<'END'
import gc
import os

import tensorflow as tf

VALUE = tf.zeros([4])


def megabytes_left(names):
    """How much more memory the process holds after variables of these names were made and dropped."""
    before = resident()
    for name in names:
        tf.Variable(VALUE, name=name)
    return resident() - before


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


megabytes_left(["warm_up"] * 2000)
one_name = megabytes_left(["one"] * 2000)
new_names = megabytes_left([f"first_{number}" for number in range(2000)])
tf.random.set_seed(1)
after_seed = megabytes_left([f"second_{number}" for number in range(2000)])
print(f"one name {one_name:.0f} MB, new names {new_names:.0f} MB, new names after a seed {after_seed:.0f} MB")
assert one_name < 10, "variables of one name leave nothing"
assert new_names > 40, "each new name leaves some 36 KB"
assert after_seed < 0.5 * new_names, "setting a seed freed what the first names had left"
END
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= "$folder/environment/bin/python" "$folder/program.py"
