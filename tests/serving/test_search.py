"""A search, with its corpus and a cross-encoder, in a process without Python."""

import numpy as np
import pytest
import tensorflow as tf
from c_api.cases import ODD_TEXTS

import keras_bert_layers as kbl
from keras_bert_layers.tasks.serving.answers import as_text

CONFIG = {"hidden_dim": 21, "num_layers": 1, "num_heads": 3, "intermediate_dim": 35, "max_sequence_length": 41}
# Float32 sums in another order.
TOLERANCE = 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_equals_the_same_graph_in_python(kind, minilm, start, texts, tmp_path):
    preprocessor = kbl.load_preprocessor(minilm, max_length=37)
    config = kbl.BertConfig(vocabulary_size=preprocessor.tokenizer.vocabulary_size(), initializer_range=0.3, **CONFIG)
    encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=preprocessor)
    cross_encoder = kbl.BertCrossEncoder(kbl.BertBackbone(config), preprocessor=preprocessor)
    options = {"vectors": kind, "top_k": 5, "cross_encoder": cross_encoder if kind == "binary" else None}
    documents = [text.decode(errors="replace") for text in texts]
    path = encoder.export_search(tmp_path / "search", documents, verbose=0, **options)
    with start(path, older=True) as server:  # the operations of an older one
        found = server.ask("serving_default", {"query": texts})
        vectors = server.ask("document", {"text": np.array(ODD_TEXTS, object)})
    assert (found.message, vectors.message) == ("", "")
    asked = tf.saved_model.load(str(path)).signatures["serving_default"](query=tf.constant(texts))
    expected = as_text({name: value.numpy() for name, value in asked.items()})
    outputs = as_text(found.outputs)
    np.testing.assert_allclose(outputs.pop("score"), expected.pop("score"), atol=TOLERANCE)
    assert {name: value.tolist() for name, value in outputs.items()} == {
        name: value.tolist() for name, value in expected.items()
    }
    assert vectors.outputs["embedding"].shape == (len(ODD_TEXTS), 21)
