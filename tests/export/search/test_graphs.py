"""The searches of SavedModels and of ONNX files: what a sort of all scores in float64 finds."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.export.search import saved_model_graph
from keras_bert_layers.export.search.corpus import CANDIDATES, VECTORS, corpus_arrays, read_corpus
from keras_bert_layers.export.search.onnx_graph import OnnxGraph
from keras_bert_layers.export.search.saved_model_graph import SavedModelGraph

TOP_K, QUERIES = 4, 40
# Float32 sums of products of numbers of some 1; numbers of 16 bits for int8 and binary: 3e-5 of the largest in a sum.
TOLERANCE = {"float32": 2e-6, "int8": 2e-4, "binary": 2e-4}


def made(num_texts, width, times):
    """A corpus in which each text is several documents, its vectors and those of queries."""
    generator = np.random.default_rng(num_texts)
    corpus = read_corpus("export_search", [f"text {row % max(num_texts, 1)}" for row in range(num_texts * times)])
    vectors, queries = (generator.normal(size=(rows, width)).astype(np.float32) for rows in (num_texts, QUERIES))
    return corpus, vectors, queries


def expected(corpus, vectors, queries):
    """The best documents and their scores, by float64; of equal scores the first documents."""
    scores = (queries.astype(np.float64) @ vectors.T.astype(np.float64))[:, corpus.rows]
    best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP_K]
    return best, np.take_along_axis(scores, best, axis=1)


def options(kind, num_texts):
    # So many candidates that signs find all.
    return {"top_k": TOP_K, "candidates": max(num_texts, CANDIDATES[kind] * TOP_K), "rerank": None, "reranked": TOP_K}


def by_tensorflow(corpus, vectors, queries, kind):
    graph = SavedModelGraph(corpus_arrays(corpus, vectors, kind), **options(kind, len(corpus.texts)))
    specs = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None, queries.shape[1]])]
    answers = tf.function(graph.answers, input_signature=specs, autograph=False)
    found = answers(tf.constant([""] * len(queries)), queries)
    return {name: value.numpy() for name, value in found.items()}


def by_onnx_runtime(corpus, vectors, queries, kind):
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from keras_bert_layers.export.onnx import FLOAT, STRING, Graph

    graph = Graph()
    asked, given = graph.input("query", STRING), graph.input("vectors", FLOAT)
    search = OnnxGraph(graph, corpus_arrays(corpus, vectors, kind), **options(kind, len(corpus.texts)))
    model = graph.model({"query": (None,)}, search.answers(asked, given))
    model.graph.input.append(onnx.helper.make_tensor_value_info("vectors", FLOAT, ["batch", queries.shape[1]]))
    del model.opset_import[-1]  # of texts, which are not read here
    session = onnxruntime.InferenceSession(model.SerializeToString())
    values = session.run(None, {"query": np.array([""] * len(queries), object), "vectors": queries})
    return dict(zip((put.name for put in session.get_outputs()), values, strict=True))


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize(("num_texts", "width", "times"), [(0, 3, 1), (1, 64, 2), (3, 5, 9), (700, 70, 2)])
@pytest.mark.parametrize("search", [by_tensorflow, by_onnx_runtime])
def test_finds_what_a_sort_of_all_scores_finds(search, num_texts, width, times, kind, monkeypatch):
    monkeypatch.setattr(saved_model_graph, "_STEP_NUMBERS", 512 * 32)  # several steps
    corpus, vectors, queries = made(num_texts, width, times)
    found = search(corpus, vectors, queries, kind)
    best, scores = expected(corpus, vectors, queries)
    assert found["id"].tolist() == best.tolist()
    assert found["text"].astype(str).tolist() == [[f"text {row % max(num_texts, 1)}" for row in rows] for rows in best]
    np.testing.assert_allclose(found["score"], scores, atol=TOLERANCE[kind] * width**0.5, rtol=0)


def test_many_queries_are_answered_a_few_at_a_time():
    corpus, vectors, queries = made(9, 5, 1)
    many = by_tensorflow(corpus, vectors, np.repeat(queries, 3, axis=0), "float32")["id"]
    assert many.tolist() == np.repeat(by_tensorflow(corpus, vectors, queries, "float32")["id"], 3, axis=0).tolist()
