"""Fusion of a padding-free backbone by TensorFlow on x86: few operations, with all else inside the products.

No test can check how long a graph takes; a test can check that it stays fused.
"""

import collections
import platform

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig, BertSentenceEncoder

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow" or platform.machine() not in ("x86_64", "AMD64"),
    reason="oneDNN fuses TensorFlow's graphs on x86",
)
NUM_LAYERS = 2
NUM_GROUPS = 2


def operations(folder):
    """How often each operation stands in the optimized graph of the signature `token_ids`, with what is fused in it."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(folder)).signature_def["token_ids"]
        ids = {
            "token_ids": np.arange(4 * 32, dtype="int32").reshape(4, 32) % 9,
            "segment_ids": np.zeros((4, 32), "int32"),
        }
        ids["padding_mask"] = np.ones((4, 32), "int32")
        metadata = tf.compat.v1.RunMetadata()
        session.run(
            [output.name for output in signature.outputs.values()],
            {signature.inputs[name].name: values for name, values in ids.items()},
            options=tf.compat.v1.RunOptions(trace_level=3, output_partition_graphs=True),
            run_metadata=metadata,
        )
    nodes = [node for graph in metadata.partition_graphs for node in graph.node]
    return collections.Counter("+".join([node.op, *_fused(node)]) for node in nodes)


def uses_onednn():
    from tensorflow.python.util import _pywrap_util_port

    return _pywrap_util_port.IsMklEnabled()


def _fused(node):
    return [name.decode() for name in node.attr["fused_ops"].list.s]


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_a_block_is_four_products_two_of_heads_for_each_group_of_rows_and_two_norms(dtype, tmp_path):
    if not uses_onednn():
        pytest.skip("TensorFlow uses oneDNN on a processor with AVX512_VNNI or AMX, or with TF_ENABLE_ONEDNN_OPTS=1")
    config = BertConfig(vocabulary_size=9, hidden_dim=64, num_layers=NUM_LAYERS, num_heads=2, intermediate_dim=128)
    BertSentenceEncoder(BertBackbone(config)).export(tmp_path / "model", dtype=dtype)
    found = operations(tmp_path / "model")
    assert found["_MklNativeFusedMatMul+BiasAdd"] == NUM_LAYERS  # query, key and value together
    assert found["_MklNativeFusedMatMul+BiasAdd+GeluExact"] == NUM_LAYERS
    assert found["_MklNativeFusedMatMul+BiasAdd+Add"] == 2 * NUM_LAYERS  # with the residuals
    assert found["_MklFusedBatchMatMulV2+Mul+Add"] == NUM_GROUPS * NUM_LAYERS  # with scale and mask
    assert found["_MklBatchMatMulV2"] == NUM_GROUPS * NUM_LAYERS
    assert found["_MklLayerNorm"] == 2 * NUM_LAYERS + 1  # and the embedding's
    assert found["_MklSoftmax"] == NUM_GROUPS * NUM_LAYERS
    assert found["Mean"] == 2 * found["_MklLayerNorm"]  # of the norms of few tokens, step by step
    assert found["MatMul"] == found["BatchMatMulV2"] == 0
