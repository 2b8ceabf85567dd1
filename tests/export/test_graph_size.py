"""What signatures have in common stands in a SavedModel once."""

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


def operations(folder):
    """How often each operation stands in the function library."""
    saved = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    functions = saved.meta_graphs[0].graph_def.library.function
    return collections.Counter(node.op for function in functions for node in function.node_def)


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


TASKS = {
    "vectors": (kbl.BertSentenceEncoder, lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p)),
    "search": (kbl.BertDualEncoder, lambda b, p: kbl.BertDualEncoder(b, preprocessor=p)),
    "answers": (
        kbl.BertQuestionAnswerer,
        lambda b, p: kbl.BertQuestionAnswerer(b, SpanPreprocessor(p.tokenizer, 9, stride=2)),
    ),
    "choices": (kbl.BertMultipleChoice, lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p)),
}


@pytest.mark.parametrize("name", TASKS)
def test_the_model_and_the_tokenizer_stand_there_once(name, backbone, preprocessor, tmp_path):
    make_without, make = TASKS[name]
    make_without(backbone).export(tmp_path / "ids")
    make(backbone, preprocessor).export(tmp_path / "texts")
    ids, texts = operations(tmp_path / "ids"), operations(tmp_path / "texts")
    assert texts[OF_THE_MODEL] == ids[OF_THE_MODEL]
    # Of few texts, of many in four parts, and of a text that needs care; the answers need offsets besides.
    assert texts[OF_THE_TOKENIZER] == (12 if name == "answers" else 6)


@pytest.mark.slow
def test_bert_base(minilm, tmp_path):
    backbone = kbl.BertBackbone(kbl.presets.preset_config("bert_base_uncased"))
    task = kbl.BertClassifier(backbone, 2, preprocessor=kbl.load_preprocessor(minilm))
    task.export(tmp_path / "model")
    assert size(tmp_path / "model") <= 4 * sum(int(np.prod(weight.shape)) for weight in task.weights) + 4 * MEGABYTE
    tf.saved_model.load(str(tmp_path / "model"))
