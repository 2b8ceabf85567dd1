"""`export` of every task, in every dtype."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert_layers as kbl
from keras_bert_layers.data import read_glue, read_squad
from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.preprocessing import SpanPreprocessor
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.serving.answers import as_text
from keras_bert_layers.tasks.serving.export import copy_in_dtype

HERE = Path(__file__).parents[1]
TEXTS = ["a good film", "unhappy [MASK] !", "", "bad , bad night [MASK] .", "\N{SNOWMAN} films"]
OTHERS = ["night ?", "good film", "a [MASK]", "un", "."]
QUESTIONS = ["night ?", "good film", "a", "un", ""]
CHOICES = [["good", "bad", ""], ["a", "film", "night"], ["bad", "", ""], ["a film", "un", ""], ["!", "?", "."]]
MULTI_LABEL = "multi_label_classification"
TAGS = ["O", "B-place", "I-place"]
# bfloat16 has 8 bits. Two layers of large random weights lose some of them; measured 0.05 in logits.
TOLERANCE = 0.15
# The same bfloat16 operations in two processes, summed in another order.
TRACE_TOLERANCE = 0.02
# Real weights are smaller and their errors cancel out: measured 0.99991 at least.
COSINE = 0.999
MEGABYTE = 1_000_000

# Task -> how it is made, and the columns of `serving_default`.
CASES = {
    "classifier": (lambda b, p: kbl.BertClassifier(b, class_names=["bad", "good"], preprocessor=p), (TEXTS,)),
    "labels": (lambda b, p: kbl.BertClassifier(b, 3, problem_type=MULTI_LABEL, preprocessor=p), (TEXTS,)),
    "number": (lambda b, p: kbl.BertClassifier(b, problem_type="regression", preprocessor=p), (TEXTS,)),
    "tags": (lambda b, p: kbl.BertTokenClassifier(b, TAGS, preprocessor=p), (TEXTS,)),
    "field": (lambda b, p: kbl.BertTokenClassifier(b, TAGS, crf=True, preprocessor=p), (TEXTS,)),
    "answers": (
        lambda b, p: kbl.BertQuestionAnswerer(b, SpanPreprocessor(p.tokenizer, 9, stride=2)),
        (QUESTIONS, TEXTS),
    ),
    "choices": (lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p), (TEXTS, CHOICES)),
    "masks": (lambda b, p: kbl.BertMaskedLM(b, p, top_k=1), (TEXTS,)),
    "pretrainer": (lambda b, p: kbl.BertPretrainer(b, p, top_k=1), (TEXTS, OTHERS)),
    "vectors": (lambda b, p: kbl.BertSentenceEncoder(b, "max", projection_dim=7, preprocessor=p), (TEXTS,)),
    "search": (lambda b, p: kbl.BertDualEncoder(b, preprocessor=p), (TEXTS,)),
    "ranking": (kbl.BertCrossEncoder, (TEXTS, OTHERS)),
}


@pytest.fixture(params=CASES)
def case(request):
    return request.param


@pytest.fixture
def task(case, backbone, preprocessor):
    """A task with random weights that are large enough for decided answers."""
    return CASES[case][0](backbone, preprocessor)


@pytest.fixture
def columns(case):
    return [tf.constant(column) for column in CASES[case][1]]


def ids_of(task, columns):
    """What the signature `token_ids` is given: the ids of `tokenize`."""
    signatures = {signature.name: signature for signature in task.signatures()}
    ids = signatures["tokenize"].function(*columns)
    inputs = []
    for name, (shape, _) in signatures["token_ids"].inputs.items():
        windows_as_rows = len(shape) == 2 and len(ids[name].shape) == 3
        inputs.append(tf.reshape(ids[name], (-1, ids[name].shape[-1])) if windows_as_rows else ids[name])
    return inputs


def serve_ids(task, inputs):
    """What the signature `token_ids` answers, computed at once: less work than a trace."""
    (function,) = (signature.function for signature in task.signatures() if signature.name == "token_ids")
    return {name: np.asarray(value) for name, value in function(*inputs).items()}


def assert_near(found, expected, *, tolerance):
    """Floats are float32 and near, all else is equal."""
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        if values.dtype.kind == "f":
            assert values.dtype == np.float32
            np.testing.assert_allclose(found[name], values, atol=tolerance, rtol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def ask(folder, model, requests):
    """The answers of a SavedModel in a process that has TensorFlow and tensorflow_text only."""
    (folder / "requests").write_bytes(pickle.dumps(requests))
    command = [sys.executable, "-I", HERE / "ask_saved_model.py", model, "requests", "answers"]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-3000:]
    found = pickle.loads((folder / "answers").read_bytes())
    assert "keras_bert_layers" not in found["modules"]
    return found["answers"]


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def cosines(first, second):
    """Of unit vectors."""
    return np.sum(first * second, axis=-1)


@pytest.mark.slow
def test_bfloat16_answers_are_near_those_of_float32(task, columns):
    ids = ids_of(task, columns)
    found = serve_ids(copy_in_dtype(task, "bfloat16"), ids)
    assert_near(found, serve_ids(task, ids), tolerance=TOLERANCE)


@pytest.mark.exhaustive
def test_saved_model_of_every_task_in_a_fresh_process(case, task, columns, tmp_path):
    task.export(tmp_path / "half", dtype="bfloat16")
    signature = task.signatures()[0]
    request = dict(zip(signature.inputs, map(np.asarray, columns), strict=True))
    found = as_text(ask(tmp_path, "half", [("serving_default", request)])[0])
    x = tuple(CASES[case][1])
    expected = copy_in_dtype(task, "bfloat16").answer(x if len(x) > 1 else x[0])
    expected["bytes_cut"] = np.zeros(len(x[0]), np.int32)
    assert_near(found, expected, tolerance=TRACE_TOLERANCE)


@pytest.mark.slow
def test_a_mixed_task_in_float32_and_bfloat16(backbone, preprocessor, tmp_path):
    exact = kbl.BertClassifier(backbone, 2)
    mixed = copy_in_dtype(exact, "mixed_bfloat16")
    ids = preprocessor(TEXTS)
    expected = {"logits": exact(ids).numpy()}
    for dtype, tolerance in (("float32", 1e-5), ("bfloat16", TOLERANCE)):
        mixed.export(tmp_path / dtype, dtype=dtype, warm_up=False)
        served = tf.saved_model.load(str(tmp_path / dtype)).signatures["token_ids"]
        assert_near({"logits": served(**ids)["logits"].numpy()}, expected, tolerance=tolerance)
        written = tf.train.load_checkpoint(str(tmp_path / dtype / "variables" / "variables"))
        formats = set(written.get_variable_to_dtype_map().values()) & {tf.float32, tf.bfloat16}
        assert formats == {tf.float32, tf.as_dtype(dtype)}
    assert mixed.dtype_policy.name == "mixed_bfloat16"


@pytest.fixture(scope="module")
def encoder(minilm):
    return kbl.load_task(minilm)


@pytest.fixture(scope="module")
def half(encoder, tmp_path_factory):
    """MiniLM's SavedModel in bfloat16."""
    path = tmp_path_factory.mktemp("half") / "model"
    encoder.export(path, dtype="bfloat16", warm_up=False)
    return path


@pytest.mark.slow
def test_vectors_of_real_weights(encoder):
    texts = (HERE.parent / "checkpoints" / "minilm_texts.txt").read_text(encoding="utf-8").split("\n")[:64]
    texts = sorted(texts, key=len)[3::4]  # short and long ones, and the longest
    half = copy_in_dtype(encoder, "bfloat16")
    for start in range(0, 16, 8):
        ids = encoder.preprocessor(texts[start : start + 8])
        vectors = half(ids)
        assert vectors.dtype == tf.float32
        assert cosines(vectors.numpy(), encoder(ids).numpy()).min() >= COSINE


@pytest.mark.slow
def test_size_is_half(encoder, half):
    weights = sum(int(np.prod(weight.shape)) for weight in encoder.weights)
    # Beside the weights: 2.0 MB of the tokenizer's tables, 1.2 MB of graph with two loops over parts of a batch (0.06).
    assert size(half) <= 2 * weights + 3.3 * MEGABYTE


@pytest.mark.exhaustive
def test_vectors_of_a_thousand_texts_in_a_fresh_process(encoder, half, shared_data):
    texts = read_glue(shared_data / "glue" / "SST-2" / "dev.tsv.gz", "SST-2").first[:800]
    texts += list(dict.fromkeys(read_squad(shared_data / "squad" / "xquad-en.json.gz").contexts))[:200]
    texts = sorted(texts, key=len)
    requests = [("serving_default", {"text": np.array(texts[start : start + 50])}) for start in range(0, 1000, 50)]
    vectors = np.concatenate([answer["embedding"] for answer in ask(half.parent, "model", requests)])
    found = cosines(vectors, encoder.answer(texts, batch_size=50)["embedding"])
    print(f"cosine to float32: {found.min():.6f} at least, {found.mean():.6f} on average")
    assert found.min() >= COSINE


def test_errors_leave_nothing(backbone, preprocessor, tmp_path):
    task = kbl.BertSentenceEncoder(backbone, preprocessor=preprocessor)
    options = r"be one of \[None, 'bfloat16', 'float32'\]\. Received: dtype="
    with pytest.raises(ValueError, match=rf"`BertSentenceEncoder`: `dtype` must {options}'int8'\.$"):
        task.export(tmp_path / "model", dtype="int8")
    with pytest.raises(ValueError, match=rf"{options}'float16'\. On a CPU float16 is no faster than float32"):
        task.export(tmp_path / "model", dtype="float16")
    with pytest.raises(ValueError, match=r"`filepath` must name a folder\. .*For an ONNX file, give format=\"onnx\"\."):
        task.export(tmp_path / "model.onnx")
    with pytest.raises(ValueError, match=r"`filepath` must name a folder\. .*is written by `save`"):
        task.export(tmp_path / "model.keras")
    with pytest.raises(TypeError, match="unexpected keyword argument 'opset_version'"):
        task.export(tmp_path / "model", dtype="bfloat16", opset_version=18)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError):
        task.export(tmp_path, dtype="bfloat16")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_refuses_before_it_copies(backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr("keras_bert_layers.tasks.serving.export.copy_in_dtype", lambda *_: pytest.fail("copied"))
    with pytest.raises(RuntimeError, match="on the TensorFlow backend only"):
        kbl.BertClassifier(backbone, 2).export(tmp_path / "model", dtype="bfloat16")


@pytest.fixture(scope="module")
def compiled(new_backbone):
    """A task of ids that is compiled by XLA, and that pads therefore."""
    task = kbl.BertClassifier(new_backbone(), 2)
    task.compile(jit_compile=True)
    return task


@pytest.fixture(scope="module")
def served_ids(compiled, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    compiled.export(path)
    return tf.saved_model.load(str(path)).signatures["token_ids"]


def test_padding_is_left_out_however_the_task_is_compiled(compiled, served_ids):
    graph = served_ids.graph.as_graph_def()
    assert "Where" in {node.op for function in graph.library.function for node in function.node_def}
    assert compiled.jit_compile
    assert not compiled.backbone.padding_free


def requests_of(model):
    """The warm-up requests beside a SavedModel."""
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    for record in tf.data.TFRecordDataset(str(model / "assets.extra" / "tf_serving_warmup_requests")):
        request = prediction_log_pb2.PredictionLog.FromString(record.numpy()).predict_log.request
        inputs = {name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()}
        yield request.model_spec.signature_name, inputs


def assert_every_request_has_an_answer(model):
    served = tf.saved_model.load(str(model)).signatures
    asked = [(name, served[name](**inputs), len(next(iter(inputs.values())))) for name, inputs in requests_of(model)]
    assert {name for name, _, _ in asked} == set(served)
    for name, answers, rows in asked:
        assert {len(answer) for answer in answers.values()} == {rows}, name
        assert all(np.isfinite(answer).all() for answer in answers.values() if answer.dtype.is_floating), name


@pytest.mark.exhaustive
def test_warm_up_of_every_task(task, tmp_path):
    task.export(tmp_path / "model", max_bytes=1000)
    assert_every_request_has_an_answer(tmp_path / "model")


@pytest.mark.slow
@pytest.mark.parametrize("truncation", ["only_first", "only_second"])
def test_warm_up_of_pairs_of_which_one_gives_way(truncation, new_backbone, tokenizer, tmp_path):
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=9, truncation=truncation)
    kbl.BertCrossEncoder(new_backbone(), preprocessor).export(tmp_path / "model")
    assert_every_request_has_an_answer(tmp_path / "model")


def test_versions_and_no_warm_up(new_backbone, tmp_path):
    task = kbl.BertSentenceEncoder(new_backbone())
    assert task.export(tmp_path, version=1, warm_up=False) == tmp_path / "1"
    assert task.export(tmp_path, version="next", warm_up=False) == tmp_path / "2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
    assert sorted(path.name for path in (tmp_path / "2").iterdir()) == [
        "assets",
        "fingerprint.pb",
        "model_card.json",
        "saved_model.pb",
        "variables",
    ]
    with pytest.raises(FileExistsError, match=r"The next free version is 3\."):
        task.export(tmp_path, version=2)


@pytest.mark.slow
def test_no_more_than_max_bytes_are_read(new_backbone, preprocessor, tmp_path):
    task = kbl.BertTokenClassifier(new_backbone(), TAGS, preprocessor=preprocessor)
    task.export(tmp_path / "model", max_bytes=16, warm_up=False)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    long, short = (served(text=tf.constant([text])) for text in ("film film film film film film", "film film film f"))
    assert long.pop("bytes_cut").numpy().tolist() == [13]
    assert short.pop("bytes_cut").numpy().tolist() == [0]
    assert_near(
        {name: value.numpy() for name, value in long.items()},
        {name: value.numpy() for name, value in short.items()},
        tolerance=0,
    )
    with pytest.raises(ValueError, match="`BertTokenClassifier`: `max_bytes` must be at least 16"):
        task.export(tmp_path / "other", max_bytes=3)


def test_ids_that_a_server_has_padded_are_refused(served_ids):
    ids = {"token_ids": [[2, 5, 3, 2]], "segment_ids": [[0, 0, 0, 0]], "padding_mask": [[1, 1, 1, 1]]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="`BertClassifier`: no row of `token_ids` must end in"):
        served_ids(**{name: tf.constant(values) for name, values in ids.items()})
    ids["padding_mask"] = [[1, 1, 1, 0]]
    assert served_ids(**{name: tf.constant(values) for name, values in ids.items()})["logits"].shape == (1, 2)


def values_of(model):
    return [keras.ops.convert_to_numpy(weight).astype("float32") for weight in model.weights]


def test_weights_are_rounded_and_heads_stay_float32(backbone, preprocessor):
    classifier = kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor, name="critic")
    copy = copy_in_dtype(classifier, "bfloat16")
    head = {id(weight) for weight in copy.get_layer("classification_head").weights}
    assert [weight.dtype for weight in copy.weights if id(weight) in head] == ["float32", "float32"]
    assert {weight.dtype for weight in copy.weights if id(weight) not in head} == {"bfloat16"}
    for ours, theirs in zip(values_of(copy), values_of(classifier), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2**-8)  # bfloat16 keeps 8 bits
    assert {**copy.get_config(), "backbone": None} == {**classifier.get_config(), "backbone": None}


def test_the_model_stays_as_it_was(backbone):
    classifier = kbl.BertClassifier(backbone, 3)
    classifier.compile(optimizer="sgd", loss="mse", metrics=[], jit_compile=True)
    before, functions = values_of(classifier), (classifier.train_function, classifier.predict_function)
    copy = copy_in_dtype(classifier, "bfloat16")
    assert copy.backbone is not classifier.backbone
    assert classifier.dtype_policy.name == backbone.dtype_policy.name == "float32"
    assert (classifier.loss, type(classifier.optimizer), classifier.jit_compile) == ("mse", keras.optimizers.SGD, True)
    assert (classifier.train_function, classifier.predict_function) == functions
    for ours, theirs in zip(values_of(classifier), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_float32_and_back(backbone):
    half = copy_in_dtype(kbl.BertClassifier(backbone, 3), "bfloat16")
    again = copy_in_dtype(half, "float32")
    assert {weight.dtype for weight in again.weights} == {"float32"}
    for ours, theirs in zip(values_of(again), values_of(half), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_every_backbone_of_a_model(backbone):
    other = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(backbone))
    other.name = "documents"
    copy = copy_in_dtype(kbl.BertDualEncoder(backbone, other), "bfloat16")
    assert [part.compute_dtype for part in backbones_of(copy)] == ["bfloat16", "bfloat16"]


class Growing(kbl.BertClassifier):
    """Comes back from its config with more classes."""

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return super().from_config({**config, "num_classes": 5}, custom_objects)


def test_weights_that_the_config_does_not_make(backbone):
    with pytest.raises(ValueError, match="`export`: `dtype` must be None. Received: dtype='bfloat16'. The model's"):
        copy_in_dtype(Growing(backbone, 3), "bfloat16")


@pytest.fixture
def host_task(backbone, vocabulary, host_engine):
    preprocessor = kbl.BertPreprocessor(kbl.BertTokenizer(vocabulary), max_length=9)
    return kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)


def test_strings_are_refused_before_anything_is_written(host_task, tmp_path):
    message = (
        "`export`: signatures of strings need tensorflow-text, whose operations read text inside the SavedModel. "
        "Received: tensorflow-text is not installed; there is none for Windows. Export the ids alone: "
        '`write_saved_model(path, [s for s in task.signatures() if s.name == "token_ids"])`. Or save the task with '
        '`task.save("model.keras")`, and load and export it on Linux or a Mac.'
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        host_task.export(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_ids_are_exported(host_task, tmp_path):
    """By the way out that the message names."""
    write_saved_model(tmp_path / "model", [s for s in host_task.signatures() if s.name == "token_ids"])
    inputs = {name: tf.cast(ids, tf.int32) for name, ids in host_task.preprocessor(TEXTS).items()}
    found = tf.saved_model.load(tmp_path / "model").signatures["token_ids"](**inputs)["logits"]
    np.testing.assert_allclose(found, host_task(inputs), atol=1e-5)  # float32, in another order


def test_a_tokenizer_in_another_signature(host_task, tmp_path):
    signature = Signature(
        "count", lambda text: {"x": host_task.preprocessor(text)["token_ids"]}, {"text": ((2,), "string")}
    )
    with pytest.raises(ValueError, match=r"'PyFuncStateless' in .* Tokenizers need tensorflow-text for that\."):
        write_saved_model(tmp_path / "model", [signature])
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_was_saved_elsewhere(backbone, preprocessor, vocabulary, tmp_path, request):
    """A `.keras` file holds no engine: both ways, the ids are the same."""
    made_elsewhere = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
    made_elsewhere.save(tmp_path / "model.keras")
    host = request.getfixturevalue("host_engine")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.preprocessor.tokenizer._encoder._word_pieces._model, host.WordPieceModel)
    for name, ids in preprocessor(TEXTS).items():
        np.testing.assert_array_equal(loaded.preprocessor(TEXTS)[name], ids)
