"""`export_search` and `replace_documents`: what Keras finds, in a fresh process, in ONNX Runtime and in `serve`."""

import errno
import importlib.util
import json
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_bert_layers as kbl
from keras_bert_layers.cli.rest_model import SavedModelRestModel
from keras_bert_layers.export import read_model_card, replace_documents
from keras_bert_layers.export.onnx import check_path
from keras_bert_layers.export.search import replacement

ASK = Path(__file__).parents[1] / "ask_saved_model.py"
DOCUMENTS = [
    "a good film",
    "bad night",
    "",
    "film film film",
    "bad night",
    "unhappy films !",
    "good",
    "a [MASK] night ?",
]
IDS = [f"d{row}" for row in range(len(DOCUMENTS))]
QUERIES = ["good film", "", "bad night", "\N{SNOWMAN} 日本 ни", "night " * 20_000]
OTHERS = {"x": "a good film", "y": "unhappy", "z": "a good film"}
TOP_K = 3
# Float32 sums in another order, and numbers of 16 bits.
TOLERANCE = 1e-5

with_onnx = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_extensions") is None, reason="needs the extra onnx"
)


def expected(encoder, documents, ids):
    """The best documents and their scores, from the vectors of Keras."""
    queries, vectors = encoder.encode_queries(QUERIES, verbose=0), encoder.encode_documents(documents, verbose=0)
    if encoder.compares_cosines:
        queries, vectors = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (queries, vectors))
    scores = np.round((queries @ vectors.T).astype(np.float64), 5)  # equal texts have equal scores
    best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP_K]
    return np.array(ids, object)[best], np.array(documents, object)[best], np.take_along_axis(scores, best, axis=1)


def check(found, encoder, documents=DOCUMENTS, ids=IDS):
    names, texts, scores = expected(encoder, documents, ids)
    found = {name: as_text(value) for name, value in found.items()}
    assert found["id"].tolist() == names.tolist()
    assert found["text"].tolist() == texts.tolist()
    np.testing.assert_allclose(found["score"], scores, atol=2 * TOLERANCE, rtol=TOLERANCE)  # one is of the rounding


def as_text(values):
    values = np.asarray(values)
    is_bytes = values.dtype == object and values.size and isinstance(values.flat[0], bytes)
    return np.vectorize(bytes.decode, otypes=[object])(values) if is_bytes else values


def ask_saved_model(path):
    answers = tf.saved_model.load(str(path)).signatures["serving_default"](query=tf.constant(QUERIES))
    return {name: value.numpy() for name, value in answers.items()}


def ask_onnx(path):
    """In ONNX Runtime, in a process without TensorFlow."""
    program = (
        "import json, sys, numpy, onnxruntime, onnxruntime_extensions\n"
        "options = onnxruntime.SessionOptions()\n"
        "options.register_custom_ops_library(onnxruntime_extensions.get_library_path())\n"
        "session = onnxruntime.InferenceSession(sys.argv[1], options)\n"
        "values = session.run(None, {'query': numpy.array(json.loads(sys.stdin.read()), object)})\n"
        "names = [put.name for put in session.get_outputs()]\n"
        "print(json.dumps({name: value.tolist() for name, value in zip(names, values)}))\n"
    )
    command, asked = [sys.executable, "-c", program, str(path)], json.dumps(QUERIES)
    ran = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return {name: np.array(value) for name, value in json.loads(ran.stdout).items()}


@pytest.fixture
def encoder(new_backbone, preprocessor):
    prompts = {"query": "film ", "other": "bad "}
    return kbl.BertSentenceEncoder(new_backbone(), preprocessor=preprocessor, prompts=prompts, default_prompt="other")


@pytest.fixture
def searched(encoder, tmp_path):
    return encoder.export_search(tmp_path / "search", DOCUMENTS, IDS, vectors="int8", top_k=TOP_K, version=3, verbose=0)


def test_answers_of_keras_of_a_fresh_process_and_of_serve(encoder, searched, tmp_path):
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    asked = np.array([query.encode() for query in QUERIES], object)
    requests.write_bytes(pickle.dumps([("serving_default", {"query": asked}), ("document", {"text": asked})]))
    subprocess.run([sys.executable, ASK, searched, requests, answers], check=True, capture_output=True)
    found = pickle.loads(answers.read_bytes())
    check(found["answers"][0], encoder)
    assert found["answers"][0]["bytes_cut"].tolist() == [0, 0, 0, 0, 20_000]
    assert found["answers"][1]["embedding"].shape == (len(QUERIES), 15)
    assert "keras_bert_layers" not in found["modules"]
    server = SavedModelRestModel(searched, name="search", version=3)
    server.warm_up()
    reply = server.answer("POST", "/v1/models/search:predict", json.dumps({"inputs": {"query": QUERIES[:1]}}).encode())
    best = json.loads(reply[0])["outputs"]
    assert best["id"] == [as_text(found["answers"][0]["id"])[0].tolist()]
    assert read_model_card(searched)["search"] == {
        **{"candidates": 6, "documents": 8, "ids": "string", "reranked": 3, "texts": 7},
        **{"top_k": 3, "vectors": "int8"},
    }


def test_replaces_documents_by_a_new_version(encoder, searched):
    replaced = replace_documents(searched.parent, OTHERS)
    assert replaced == searched.parent / "4"
    check(ask_saved_model(replaced), encoder, list(OTHERS.values()), list(OTHERS))
    check(ask_saved_model(searched), encoder)
    card = read_model_card(replaced)
    assert (card["search"]["documents"], card["search"]["texts"]) == (3, 2)
    assert card["weights_sha256"] != read_model_card(searched)["weights_sha256"]
    assert card["graph_sha256"] == read_model_card(searched)["graph_sha256"]
    assert replace_documents(replaced, []) == replaced  # in place: no folder of versions
    assert {name: value.shape for name, value in ask_saved_model(replaced).items()} == {
        **dict.fromkeys(("id", "text", "score"), (len(QUERIES), 0)),
        "bytes_cut": (len(QUERIES),),
    }
    with pytest.raises(ValueError, match="`ids` must be strings"):
        replace_documents(searched.parent, ["good"])
    with pytest.raises(FileNotFoundError, match="`path` must be an exported search"):
        replace_documents(searched.parent.parent, ["good"])


def test_a_full_disk_leaves_the_old_documents(encoder, searched, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(replacement, "_write_variables", full)
    with pytest.raises(OSError, match=r"`replace_documents`: `path` must be on a disk with room") as caught:
        replace_documents(searched, OTHERS)
    assert caught.value.errno == errno.ENOSPC
    assert [child.name for child in searched.parent.iterdir()] == ["3"]
    check(ask_saved_model(searched), encoder)


# Replaces the documents again and again, by three and by two.
REPLACER = """
import sys
from keras_bert_layers.export import replace_documents
for number in range(100):
    replace_documents(sys.argv[1], {"x": "good", "y": "bad", "z": "film"} if number % 2 else {"x": "good", "y": "film"})
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_killed_replacement_leaves_a_whole_search(searched):
    for seconds in np.random.default_rng(0).uniform(0, 1, 3):
        with subprocess.Popen([sys.executable, "-c", REPLACER, searched], stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            time.sleep(seconds)
            child.kill()
        found = ask_saved_model(searched)
        assert {name.decode() for name in found["id"][0]} in ({"x", "y"}, {"x", "y", "z"})
        assert read_model_card(searched)["search"]["documents"] == found["id"].shape[1]


@with_onnx
@pytest.mark.usefixtures("traces_nothing")
def test_onnx_file_answers_and_is_replaced(encoder, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "search.onnx"
    options = {"vectors": "binary", "top_k": TOP_K, "format": "onnx", "verbose": 0}
    assert encoder.export_search(path, dict(zip(IDS, DOCUMENTS, strict=True)), **options) == path
    check(ask_onnx(path), encoder)
    monkeypatch.setattr("keras_bert_layers.export.onnx.onnx_file.MAX_BYTES", 10_000)  # as of more than 2 GB
    others = OTHERS | {"\N{SNOWMAN}": "日本 \0 night " * 700}
    assert replace_documents(path, others) == path
    check(ask_onnx(path), encoder, list(others.values()), list(others))
    assert sorted(tmp_path.iterdir()) == [path, path.with_name("search.onnx.data")]
    constants = {tensor.name: tensor for tensor in onnx.load(path, load_external_data=False).graph.initializer}
    assert constants["search_texts"].data_location == onnx.TensorProto.EXTERNAL
    monkeypatch.undo()
    replace_documents(path, {})
    assert list(tmp_path.iterdir()) == [path]  # the weights beside it are gone
    path.write_bytes(b"no ONNX file")
    with pytest.raises(ValueError, match="`path` must be an exported search"):
        replace_documents(path, OTHERS)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="an ONNX file needs the package onnx"):
        replace_documents(path, OTHERS)


@with_onnx
@pytest.mark.slow
def test_two_encoders_and_a_cross_encoder(new_backbone, preprocessor, tmp_path):
    encoder = kbl.BertDualEncoder(new_backbone(), new_backbone(seed=1), preprocessor=preprocessor, normalize=False)
    cross_encoder = kbl.BertCrossEncoder(new_backbone(seed=2), preprocessor=preprocessor)
    head = cross_encoder.get_layer("classification_head").dense
    head.kernel.assign(np.random.default_rng(0).normal(size=head.kernel.shape))
    numbers = list(range(10, 10 + len(DOCUMENTS)))
    options = {"top_k": TOP_K, "verbose": 0}
    path = tmp_path / "search.onnx"
    check(ask_onnx(encoder.export_search(path, DOCUMENTS, numbers, format="onnx", **options)), encoder, ids=numbers)
    options["cross_encoder"] = cross_encoder
    saved = ask_saved_model(encoder.export_search(tmp_path / "search", DOCUMENTS, numbers, warm_up=False, **options))
    onnx = ask_onnx(encoder.export_search(path, DOCUMENTS, numbers, format="onnx", **options))
    for row, query in enumerate(QUERIES[:3]):
        ranked = cross_encoder.rank(query, DOCUMENTS, top_k=TOP_K)
        for found in (saved, onnx):
            assert [numbers.index(name) for name in found["id"][row]] == [each["corpus_id"] for each in ranked]
            np.testing.assert_allclose(found["score"][row], [each["score"] for each in ranked], atol=TOLERANCE)


def test_static_encoder(preprocessor, tmp_path):
    backbone = kbl.tasks.StaticBackbone(vocabulary_size=preprocessor.tokenizer.vocabulary_size(), hidden_dim=7)
    encoder = kbl.BertStaticEncoder(backbone, preprocessor=preprocessor)
    documents = [text for text in DOCUMENTS if text]
    found = ask_saved_model(encoder.export_search(tmp_path / "search", documents, top_k=TOP_K, verbose=0))
    assert (
        found["id"][0].tolist() == np.argsort(-encoder.similarity(QUERIES[0], documents)[0], kind="stable")[:3].tolist()
    )


@pytest.mark.parametrize("vectors", [pytest.param("float32", marks=pytest.mark.slow), "int8"])
def test_a_vector_for_each_token(new_backbone, preprocessor, vectors, tmp_path):
    options = {"query_length": 6, "query_expansion": "unattended", "skiplist": ["!", "[UNK]", "[CLS]", "[SEP]"]}
    options |= {"prompts": {"query": "bad ", "document": "film "}}
    encoder = kbl.BertMultiVectorEncoder(new_backbone(), 5, preprocessor=preprocessor, **options)
    options = {"vectors": vectors, "top_k": TOP_K, "version": 1, "warm_up": vectors == "float32", "verbose": 0}
    path = encoder.export_search(tmp_path / "search", DOCUMENTS, IDS, **options)
    check_tokens(ask_saved_model(path), encoder, DOCUMENTS, IDS)
    others = {"x": "\N{SNOWMAN} film", "y": "ni !", "z": "日本 good \N{SNOWMAN} film", "w": "日本 night " * 200}
    replaced = replace_documents(path.parent, others)
    check_tokens(ask_saved_model(replaced), encoder, list(others.values()), list(others))
    if vectors == "float32":
        assert ask_saved_model(replace_documents(replaced, {}))["start"].shape == (len(QUERIES), 0)
    for options, said in [
        ({"vectors": "binary"}, "`vectors` must be"),
        ({"format": "onnx"}, "`format` must be 'tf_saved_model'"),
    ]:
        with pytest.raises(ValueError, match=said):
            encoder.export_search(tmp_path / "other.onnx", DOCUMENTS, **options)


@pytest.mark.slow
def test_sparse_vectors(new_backbone, preprocessor, tmp_path):
    options = {"max_active_dims": 5, "prompts": {"query": "bad ", "document": "film "}}
    encoder = kbl.BertSparseEncoder(new_backbone(), preprocessor=preprocessor, **options)
    path = encoder.export_search(tmp_path / "search", DOCUMENTS, IDS, top_k=TOP_K, version=1, verbose=0)
    others = OTHERS | {"w": "日本 night " * 200}
    for documents, ids in ((DOCUMENTS, IDS), (list(others.values()), list(others))):
        found, scores = ask_saved_model(path), np.round(encoder.similarity(QUERIES, documents).astype(np.float64), 5)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP_K]
        np.testing.assert_allclose(found["score"], np.take_along_axis(scores, best, axis=1), atol=2 * TOLERANCE)
        assert as_text(found["id"]).tolist() == np.array(ids, object)[best].tolist()
        path = replace_documents(path.parent, others)
    assert ask_saved_model(replace_documents(path, {}))["id"].shape == (len(QUERIES), 0)
    for options in ({"vectors": "int8"}, {"format": "onnx"}):
        with pytest.raises(ValueError, match=f"`{next(iter(options))}` must be '.*' for sparse vectors"):
            encoder.export_search(tmp_path / "other.onnx", DOCUMENTS, **options)


def check_tokens(found, encoder, documents, ids):
    """Ids and scores are those of Keras, and the bytes those of the token with the largest cosine."""
    scores = np.round(encoder.similarity(QUERIES, documents).astype(np.float64), 5)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP_K]
    assert as_text(found["id"]).tolist() == np.array(ids, object)[best].tolist()
    np.testing.assert_allclose(found["score"], np.take_along_axis(scores, best, axis=1), atol=6 * TOLERANCE)
    vectors = encoder.encode_queries(QUERIES, verbose=0)
    for query, row in enumerate(best):
        for place, text in enumerate(documents[number] for number in row):
            inputs = encoder.pipeline.side("document")
            tokens = inputs.preprocessor.with_offsets([text], prompt=inputs.prompt)
            (read,) = encoder.run({name: tokens[name] for name in encoder.input["document"]}, "document").numpy()
            cosines = (vectors[query] @ read.T).max(axis=0)
            bytes_of = np.stack([tokens["starts"][0], tokens["ends"][0]], axis=1)
            cosines[(bytes_of[:, 0] >= bytes_of[:, 1]) | ~read.any(axis=1)] = -9
            best_token = bytes_of[cosines.argmax()] if cosines.max() > -9 else [0, 0]
            assert [found["start"][query, place], found["end"][query, place]] == list(best_token)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"format": "h5"}, ValueError, "`format` must be one of"),
        ({"vectors": "uint8"}, ValueError, "`vectors` must be one of"),
        ({"top_k": 0}, ValueError, "`top_k` must be at least 1"),
        ({"max_bytes": 3}, ValueError, "`max_bytes` must be"),
        ({"cross_encoder": "a"}, TypeError, "`cross_encoder` must be a BertCrossEncoder"),
        ({"format": "onnx", "version": 1}, ValueError, "`version` must be None"),
        ({"format": "onnx"}, ValueError, r"`filepath` must end with '.onnx'"),
        ({"ids": ["a"]}, ValueError, "`ids` must have an id for each document"),
    ],
    ids=range(8),
)
def test_what_is_no_search_is_refused(encoder, options, kind, said, tmp_path):
    with pytest.raises(kind, match=said):
        encoder.export_search(tmp_path / "search", DOCUMENTS, **options)
    assert not any(tmp_path.iterdir())


def test_other_tasks_have_no_search(new_backbone, preprocessor):
    with pytest.raises(AttributeError, match="`BertClassifier` has no `export_search`. Encoders of texts have it"):
        kbl.BertClassifier(new_backbone(), 2, preprocessor=preprocessor).export_search("search", DOCUMENTS)
    assert check_path("search.onnx") == Path("search.onnx")
