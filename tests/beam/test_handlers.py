"""`RunInference` with our handlers: the answers of the model itself, bad rows alone, nothing twice."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import keras_bert_layers as kbl
from keras_bert_layers.beam import SavedModelHandler

# Rows are the same sums in a step of another length.
TOLERANCE = 1e-6
# Sums in another order, by another library.
ONNX_TOLERANCE = 1e-5
WORDS = ["a good film", "bad", "", "unhappy night , BAD film !", "Ünhappy", "night ? " * 7]
TEXTS = [f"{words} {'good ' * (number % 5)}{number}" for number, words in enumerate(WORDS * 7)]
PAIRS = [(text, second) for text, second in zip(TEXTS, reversed(TEXTS), strict=True)]


@pytest.fixture
def beam():
    return pytest.importorskip("apache_beam", reason="needs Apache Beam, from the extra `beam`")


@pytest.fixture
def run(beam, tmp_path):
    """Runs a pipeline in this process: the results, failed rows and failed batches, and its counters."""
    from apache_beam.ml.inference.base import RunInference

    def run(handler, rows, *, runner="FnApiRunner"):
        pipeline = beam.Pipeline(runner)
        good, bad = pipeline | beam.Create(rows) | RunInference(handler).with_exception_handling()
        for number, found in enumerate([good, bad.failed_inferences, *bad.failed_preprocessing]):

            def write(value, path=str(tmp_path / str(number))):
                with open(path, "ab") as file:
                    pickle.dump(value, file)

            _ = found | f"Write {number}" >> beam.combiners.ToList() | f"Dump {number}" >> beam.Map(write)
        result = pipeline.run()
        result.wait_until_finish()
        values = [pickle.loads((tmp_path / str(number)).read_bytes()) for number in range(3)]
        counters = {found.key.metric.name: found for found in result.metrics().query()["counters"]}
        return *values, counters

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("beam")


@pytest.fixture
def classifier(backbone, preprocessor, folder):
    path = folder / "classifier"
    if not path.exists():
        kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor).export(path)
    return path


@pytest.fixture
def answerer(backbone, preprocessor, folder):
    path = folder / "answerer"
    if not path.exists():
        kbl.BertQuestionAnswerer(backbone, preprocessor=preprocessor).export(path)
    return path


def check(found, rows, path):
    """Each row has one result, equal to what the SavedModel itself answers to it."""
    assert sorted(result.example for result in found) == sorted(rows)
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    for result in found:
        texts = [result.example] if isinstance(result.example, str) else result.example
        names = ["text"] if len(texts) == 1 else ["question", "context"]
        wanted = serve(**{name: tf.constant([text]) for name, text in zip(names, texts, strict=True)})
        assert set(result.inference) == set(wanted)
        assert result.model_id == str(path)
        for name, tensor in wanted.items():
            value, expected = result.inference[name], tensor.numpy()[0]
            if isinstance(expected, bytes):
                assert value == expected.decode()
            else:
                assert value.shape == expected.shape
                np.testing.assert_allclose(value, expected, atol=TOLERANCE, rtol=0)


def test_rows_have_the_answers_of_the_model(run, classifier):
    handler = SavedModelHandler(classifier, max_step_bytes=200)
    good, batches, rows, counters = run(handler, TEXTS)
    check(good, TEXTS, classifier)
    assert (batches, rows) == ([], [])
    counter = counters["num_inferences"]
    assert (counter.key.metric.namespace, counter.committed) == (handler.get_metrics_namespace(), len(TEXTS))


def test_pairs_in_the_order_of_the_task(run, answerer):
    good, *_ = run(SavedModelHandler(answerer), PAIRS)
    check(good, PAIRS, answerer)


def test_the_runner_of_each_name(beam, classifier, tmp_path):
    """As a user writes it: the default runner, without exception handling, and a result that the next step can read."""
    from apache_beam.ml.inference.base import RunInference

    with beam.Pipeline("DirectRunner") as pipeline:
        labels = (
            pipeline
            | beam.Create(TEXTS)
            | RunInference(SavedModelHandler(classifier))
            | beam.Map(lambda result: result.inference["label"])
        )
        labels | beam.io.WriteToText(str(tmp_path / "labels"))
    lines = [line for path in tmp_path.glob("labels*") for line in path.read_text().splitlines()]
    assert len(lines) == len(TEXTS)
    assert set(lines) <= {"bad", "good"}


@pytest.mark.parametrize(
    ("row", "received"),
    [(3, "int"), (b"film", "bytes"), (None, "NoneType"), (("a", "b"), "tuple of 2: str"), ({"text": "a"}, "dict")],
)
def test_a_bad_row_fails_alone(run, classifier, row, received):
    good, batches, (bad,), _ = run(SavedModelHandler(classifier), [*TEXTS[:9], row, *TEXTS[9:]])
    check(good, TEXTS, classifier)
    assert batches == []
    found, (kind, message, _) = bad
    assert (found, kind) == (row, TypeError)
    assert f"`SavedModelHandler`: each row must be a string. Received: {received}." in message


@pytest.mark.parametrize(
    ("row", "received"),
    [("ab", "str"), (("a", 1), "tuple of 2: int, str"), (("a", "b", "c"), "tuple of 3: str"), (None, "NoneType")],
)
def test_a_bad_pair(beam, answerer, row, received):
    handler = SavedModelHandler(answerer)
    message = f"`SavedModelHandler`: each row must be a tuple of 2 strings, question and context. Received: {received}."
    with pytest.raises(TypeError, match=message):
        handler.check_row(row)
    with pytest.raises(TypeError, match=message):  # with `check_rows=False`, before anything is computed
        handler.run_inference([PAIRS[0], row], None)


class FailsOnce(SavedModelHandler):
    """Fails with the first batch of each process, after it was computed."""

    failures = 0

    def run_inference(self, batch, model, inference_args=None):
        found = super().run_inference(batch, model, inference_args)
        if not FailsOnce.failures:
            FailsOnce.failures += 1
            raise OSError("lost")
        return found


def test_a_bundle_that_is_run_again_duplicates_nothing(beam, classifier, tmp_path):
    from apache_beam.ml.inference.base import RunInference

    FailsOnce.failures = 0
    seen = tmp_path / "seen"

    def write(results):
        seen.write_bytes(pickle.dumps(results))

    with beam.Pipeline("BundleBasedDirectRunner") as pipeline:
        results = pipeline | beam.Create(TEXTS) | RunInference(FailsOnce(classifier))
        _ = results | beam.combiners.ToList() | beam.Map(write)
    assert FailsOnce.failures == 1
    check(pickle.loads(seen.read_bytes()), TEXTS, classifier)


def test_a_newer_model_takes_over(beam, classifier, backbone, preprocessor, tmp_path):
    """As with `watch_model_pattern`, whose side input is given here."""
    from apache_beam.ml.inference.base import ModelMetadata, RunInference

    path = kbl.BertClassifier(backbone, class_names=["no", "yes"], preprocessor=preprocessor).export(tmp_path / "new")
    seen = tmp_path / "seen"

    def write(results):
        seen.write_bytes(pickle.dumps(results))

    with beam.Pipeline("FnApiRunner") as pipeline:
        newest = pipeline | "Newest" >> beam.Create([ModelMetadata(str(path), "new")])
        inference = RunInference(SavedModelHandler(classifier), model_metadata_pcoll=newest)
        _ = pipeline | beam.Create(TEXTS) | inference | beam.combiners.ToList() | beam.Map(write)
    check(pickle.loads(seen.read_bytes()), TEXTS, path)


def test_keys(beam, run, classifier):
    from apache_beam.ml.inference.base import KeyedModelHandler

    handler = SavedModelHandler(classifier, check_rows=False)
    keyed = KeyedModelHandler(handler).with_preprocess_fn(lambda row: (row[0], handler.check_row(row[1])))
    good, batches, (bad,), _ = run(keyed, [*enumerate(TEXTS), (99, None)])
    assert sorted(key for key, _ in good) == [*range(len(TEXTS))]
    assert all(result.example == TEXTS[key] for key, result in good)
    check([result for _, result in good], TEXTS, classifier)
    assert (batches, bad[0]) == ([], (99, None))


def test_steps_hold_rows_of_similar_length(beam, classifier):
    handler, widths = SavedModelHandler(classifier, max_step_bytes=30), []

    def model(texts):
        widths.append([len(text) for text in texts])
        return {"size": np.array(widths[-1])}

    rows = ["x" * size for size in (3, 40, 10, 9, 1, 10, 2)]
    found = handler.run_inference(rows, model)
    assert widths == [[40], [10, 10, 9], [3, 2, 1]]
    assert [result.inference["size"] for result in found] == [len(row) for row in rows]
    assert handler.get_num_bytes(["é", "ab"]) == 4
    assert list(handler.run_inference([], model)) == []


def test_arguments(beam, classifier):
    with pytest.raises(FileNotFoundError, match="no model_card"):
        SavedModelHandler("nowhere")
    with pytest.raises(ValueError, match=r"`signature` must be one of \['serving_default'"):
        SavedModelHandler(classifier, "serve")
    with pytest.raises(ValueError, match=r"take strings of shape \(batch,\)"):
        SavedModelHandler(classifier, "token_ids")
    with pytest.raises(ValueError, match="`max_step_bytes` must be at least 1"):
        SavedModelHandler(classifier, max_step_bytes=0)
    with pytest.raises(ValueError, match="`inference_args` must be None"):
        SavedModelHandler(classifier).validate_inference_args({"a": 1})


ONNX_PROGRAM = """
import pickle, sys
import apache_beam as beam
from apache_beam.ml.inference.base import RunInference
import keras_bert_layers as kbl

path, rows, target = pickle.load(sys.stdin.buffer)

def write(results):
    with open(target, "wb") as file:
        pickle.dump(results, file)

with beam.Pipeline("FnApiRunner") as pipeline:
    results = pipeline | beam.Create(rows) | RunInference(kbl.beam.OnnxHandler(path, max_step_bytes=200))
    _ = results | beam.Map(tuple) | beam.combiners.ToList() | beam.Map(write)
assert "tensorflow" not in sys.modules
"""


def test_onnx_files_answer_as_saved_models(beam, run, classifier, backbone, preprocessor, tmp_path):
    for package in ("onnx", "onnxruntime", "onnxruntime_extensions"):
        pytest.importorskip(package)
    task = kbl.BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)
    saved = task.export(tmp_path / "model")
    path = task.export(tmp_path / "model.onnx", format="onnx")
    texts = ["good\0 bad night", *TEXTS]
    request = pickle.dumps((str(path), texts, str(tmp_path / "found")))
    subprocess.run([sys.executable, "-c", ONNX_PROGRAM], input=request, check=True)
    found = {text: answers for text, answers, _ in pickle.loads((tmp_path / "found").read_bytes())}
    good, *_ = run(SavedModelHandler(saved), texts)
    assert len(found) == len(good) == len(texts)
    for result in good:
        answers = found[result.example]
        assert set(answers) == {"label", "probabilities", "num_tokens", "bytes_cut"}
        assert answers["label"] == result.inference["label"]
        wanted = result.inference["probabilities"]
        np.testing.assert_allclose(answers["probabilities"], wanted, atol=ONNX_TOLERANCE, rtol=0)


def test_beam_is_imported_by_its_handlers_alone():
    code = (
        "import sys, keras_bert_layers as kbl; kbl.beam; dir(kbl.beam); assert 'apache_beam' not in sys.modules;"
        "sys.modules.update(dict.fromkeys(['apache_beam', 'apache_beam.ml', 'apache_beam.ml.inference.base']));"
        "kbl.beam.OnnxHandler('model.onnx')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (line,) = found.stderr.splitlines()[-1:]
    assert line == (
        "ModuleNotFoundError: `OnnxHandler`: needs Apache Beam. "
        'Install it with `pip install "keras-bert-layers[beam]"`.'
    )
