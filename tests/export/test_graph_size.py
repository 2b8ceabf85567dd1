"""What signatures have in common is written to a SavedModel once."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor

MEGABYTE = 1_000_000
# Operations of which every signature that computes something has some.
OF_THE_MODEL, OF_THE_TOKENIZER = "FusedBatchNormV3", "FastWordpieceTokenizeWithOffsets"


def called(node):
    """The names that a node may call a function by."""
    values = node.attr.values()
    return {
        node.op,
        *(value.func.name for value in values),
        *(func.name for value in values for func in value.list.func),
    }


def operations(folder):
    """How often each operation occurs in the function library, and in what the signature `token_ids` calls."""
    meta_graph = SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]
    functions = {func.signature.name: func.node_def for func in meta_graph.graph_def.library.function}
    output = next(iter(meta_graph.signature_def["token_ids"].outputs.values())).name
    found, new = set(), [node for node in meta_graph.graph_def.node if node.name == output.split(":")[0]]
    while new:
        names = set().union(*map(called, new)) & functions.keys() - found
        found |= names
        new = [node for name in names for node in functions[name]]

    def count(names):
        return collections.Counter(node.op for name in names for node in functions[name])

    return count(functions), count(found)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


TASKS = {
    "vectors": kbl.BertSentenceEncoder,
    "search": kbl.BertDualEncoder,
    "answers": kbl.BertQuestionAnswerer,
    "choices": kbl.BertMultipleChoice,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_the_model_and_the_tokenizer_are_written_once(name, backbone, preprocessor, tmp_path):
    if name == "answers":
        preprocessor = SpanPreprocessor(preprocessor.tokenizer, 9, stride=2)
    TASKS[name](backbone, preprocessor=preprocessor).export(tmp_path / "model")
    all_signatures, token_ids = operations(tmp_path / "model")
    assert all_signatures[OF_THE_MODEL] == token_ids[OF_THE_MODEL] > 0
    # For few texts, for many texts in four parts, and for a text that needs care; answers need offsets too.
    assert all_signatures[OF_THE_TOKENIZER] == (12 if name == "answers" else 6)


@pytest.mark.slow
def test_bert_base(minilm, tmp_path):
    backbone = kbl.BertBackbone(kbl.presets.preset_config("bert_base_uncased"))
    task = kbl.BertClassifier(backbone, 2, preprocessor=kbl.load_preprocessor(minilm))
    task.export(tmp_path / "model")
    assert size(tmp_path / "model") <= 4 * sum(int(np.prod(weight.shape)) for weight in task.weights) + 4 * MEGABYTE
    tf.saved_model.load(str(tmp_path / "model"))
